//! The narrow kind of JSON Schema that a model may be asked for, and the check of its answers (inference 6.2, 6.4).
//!
//! A schema outside this kind is refused: everything in it is finite (each string has `maxLength` or is an `enum`,
//! each array has `maxItems`, each integer has both bounds, each object lists all its members), so no answer can run
//! on for ever. Because the kind is closed, the check of an answer is a few lines of our own and is the same code in
//! the engine process and in core.

use serde_json::{Map, Value};

/// Deepest nesting of a schema.
const MAX_DEPTH: usize = 8;
/// Longest string that a schema may allow, in characters.
const MAX_STRING: u64 = 4_096;
/// Longest array that a schema may allow.
const MAX_ITEMS: u64 = 64;

/// Why a schema or an answer was refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The schema is outside the allowed kind.
    #[error("schema at `{at}`: {what}")]
    Schema {
        /// JSON pointer into the schema.
        at: String,
        /// What is wrong.
        what: &'static str,
    },
    /// The answer does not follow the schema.
    #[error("answer at `{at}`: {what}")]
    Answer {
        /// JSON pointer into the answer.
        at: String,
        /// What is wrong.
        what: &'static str,
    },
}

fn refuse<T>(at: &str, what: &'static str) -> Result<T, Error> {
    Err(Error::Schema {
        at: at.to_owned(),
        what,
    })
}

fn mismatch<T>(at: &str, what: &'static str) -> Result<T, Error> {
    Err(Error::Answer {
        at: at.to_owned(),
        what,
    })
}

/// Checks that `schema` is of the allowed kind.
///
/// # Errors
/// [`Error::Schema`] with the place and the reason.
pub fn check(schema: &Value) -> Result<(), Error> {
    check_at(schema, "", 0)
}

fn check_at(schema: &Value, at: &str, depth: usize) -> Result<(), Error> {
    if depth > MAX_DEPTH {
        return refuse(at, "nested too deeply");
    }
    let Some(map) = schema.as_object() else {
        return refuse(at, "not an object");
    };
    if map.contains_key("enum") {
        return check_enum(map, at);
    }
    match map.get("type").and_then(Value::as_str) {
        Some("object") => check_object(map, at, depth),
        Some("array") => check_array(map, at, depth),
        Some("string") => {
            only(map, at, &["maxLength", "minLength"])?;
            match map.get("maxLength").and_then(Value::as_u64) {
                Some(1..=MAX_STRING) => Ok(()),
                Some(_) | None => refuse(at, "a string needs `maxLength` from 1 to 4096"),
            }
        }
        Some("integer") => {
            only(map, at, &["minimum", "maximum"])?;
            let bound = |key| map.get(key).and_then(Value::as_i64);
            match (bound("minimum"), bound("maximum")) {
                (Some(low), Some(high)) if low <= high => Ok(()),
                _ => refuse(at, "an integer needs `minimum` and `maximum`"),
            }
        }
        Some("boolean") => only(map, at, &[]),
        Some(_) | None => refuse(at, "the type is missing or not allowed"),
    }
}

fn only(map: &Map<String, Value>, at: &str, allowed: &[&str]) -> Result<(), Error> {
    let known =
        |key: &str| matches!(key, "type" | "title" | "description") || allowed.contains(&key);
    if map.keys().all(|key| known(key)) {
        Ok(())
    } else {
        refuse(at, "a keyword is not allowed here")
    }
}

fn check_enum(map: &Map<String, Value>, at: &str) -> Result<(), Error> {
    only(map, at, &["enum"])?;
    let texts = map.get("enum").and_then(Value::as_array);
    match texts {
        Some(list) if !list.is_empty() && list.iter().all(Value::is_string) => Ok(()),
        Some(_) | None => refuse(
            at,
            "an `enum` needs at least one text and nothing but texts",
        ),
    }
}

fn check_object(map: &Map<String, Value>, at: &str, depth: usize) -> Result<(), Error> {
    only(map, at, &["properties", "required", "additionalProperties"])?;
    if map.get("additionalProperties") != Some(&Value::Bool(false)) {
        return refuse(at, "an object needs `additionalProperties: false`");
    }
    let Some(properties) = map.get("properties").and_then(Value::as_object) else {
        return refuse(at, "an object needs `properties`");
    };
    let required = map.get("required").and_then(Value::as_array);
    let all = required.is_some_and(|list| {
        list.len() == properties.len()
            && list
                .iter()
                .all(|key| key.as_str().is_some_and(|key| properties.contains_key(key)))
    });
    if !all {
        return refuse(at, "an object needs every member in `required`");
    }
    for (key, value) in properties {
        check_at(value, &format!("{at}/properties/{key}"), depth + 1)?;
    }
    Ok(())
}

fn check_array(map: &Map<String, Value>, at: &str, depth: usize) -> Result<(), Error> {
    only(map, at, &["items", "minItems", "maxItems"])?;
    match map.get("maxItems").and_then(Value::as_u64) {
        Some(1..=MAX_ITEMS) => {}
        Some(_) | None => return refuse(at, "an array needs `maxItems` from 1 to 64"),
    }
    match map.get("items") {
        Some(items) => check_at(items, &format!("{at}/items"), depth + 1),
        None => refuse(at, "an array needs `items`"),
    }
}

/// Parses an answer and checks it against a schema that passed [`check`].
///
/// # Errors
/// [`Error::Answer`] with the place and the reason.
pub fn parse(schema: &Value, text: &str) -> Result<Value, Error> {
    let Ok(value) = serde_json::from_str::<Value>(text) else {
        return mismatch("", "not JSON");
    };
    validate(schema, &value, "")?;
    Ok(value)
}

fn validate(schema: &Value, value: &Value, at: &str) -> Result<(), Error> {
    if let Some(list) = schema.get("enum").and_then(Value::as_array) {
        return if list.contains(value) {
            Ok(())
        } else {
            mismatch(at, "not one of the offered texts")
        };
    }
    let number = |key: &str| schema.get(key).and_then(Value::as_u64);
    match (schema.get("type").and_then(Value::as_str), value) {
        (Some("object"), Value::Object(map)) => validate_object(schema, map, at),
        (Some("array"), Value::Array(list)) => {
            let count = list.len() as u64;
            if number("maxItems").is_none_or(|max| count > max)
                || number("minItems").is_some_and(|min| count < min)
            {
                return mismatch(at, "the number of items is out of bounds");
            }
            let items = schema.get("items").unwrap_or(&Value::Null);
            for (index, item) in list.iter().enumerate() {
                validate(items, item, &format!("{at}/{index}"))?;
            }
            Ok(())
        }
        (Some("string"), Value::String(text)) => {
            let count = text.chars().count() as u64;
            if number("maxLength").is_none_or(|max| count > max)
                || number("minLength").is_some_and(|min| count < min)
            {
                return mismatch(at, "the length is out of bounds");
            }
            Ok(())
        }
        (Some("integer"), Value::Number(given)) => {
            let bound = |key: &str| schema.get(key).and_then(Value::as_i64);
            match (given.as_i64(), bound("minimum"), bound("maximum")) {
                (Some(given), Some(low), Some(high)) if (low..=high).contains(&given) => Ok(()),
                _ => mismatch(at, "the number is out of bounds"),
            }
        }
        (Some("boolean"), Value::Bool(_)) => Ok(()),
        _ => mismatch(at, "the type is wrong"),
    }
}

fn validate_object(schema: &Value, map: &Map<String, Value>, at: &str) -> Result<(), Error> {
    let empty = Map::new();
    let properties = schema
        .get("properties")
        .and_then(Value::as_object)
        .unwrap_or(&empty);
    if map.len() != properties.len() {
        return mismatch(at, "a member is missing or too many");
    }
    for (key, inner) in properties {
        match map.get(key) {
            Some(value) => validate(inner, value, &format!("{at}/{key}"))?,
            None => return mismatch(at, "a member is missing or too many"),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::{check, parse};

    fn draft() -> Value {
        json!({"type": "object", "additionalProperties": false,
            "required": ["hypothesis", "summary", "citations", "n", "b"],
            "properties": {
                "hypothesis": {"enum": ["H1", "H2"]},
                "summary": {"type": "string", "maxLength": 5},
                "citations": {"type": "array", "minItems": 1, "maxItems": 2, "items": {"enum": ["E1"]}},
                "n": {"type": "integer", "minimum": 1, "maximum": 3},
                "b": {"type": "boolean"}}})
    }

    #[test]
    fn the_schema_of_a_draft_is_of_the_allowed_kind() {
        assert_eq!(check(&draft()), Ok(()));
    }

    #[test]
    fn a_schema_is_refused_when_its_answers_could_be_endless_or_open() {
        for bad in [
            json!(true),
            json!({"type": "string"}),
            json!({"type": "number"}),
            json!({"type": "string", "maxLength": 5_000}),
            json!({"type": "string", "maxLength": 5, "pattern": "a"}),
            json!({"type": "array", "items": {"enum": ["a"]}}),
            json!({"type": "integer", "minimum": 1}),
            json!({"enum": []}),
            json!({"enum": [1]}),
            json!({"$ref": "#/a"}),
            json!({"type": "object", "properties": {}, "required": []}),
            json!({"type": "object", "additionalProperties": false, "required": [],
                "properties": {"a": {"type": "boolean"}}}),
            json!({"type": "object", "additionalProperties": false, "required": [],
                "properties": {}, "x-guidance": {}}),
        ] {
            assert!(check(&bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn an_answer_is_accepted_only_when_it_follows_the_schema() {
        let schema = draft();
        let good = r#"{"hypothesis":"H2","summary":"däéöü","citations":["E1"],"n":3,"b":true}"#;
        assert!(parse(&schema, good).is_ok());
        for bad in [
            "",
            "[]",
            r#"{"hypothesis":"H3","summary":"","citations":["E1"],"n":3,"b":true}"#,
            r#"{"hypothesis":"H1","summary":"123456","citations":["E1"],"n":3,"b":true}"#,
            r#"{"hypothesis":"H1","summary":"","citations":[],"n":3,"b":true}"#,
            r#"{"hypothesis":"H1","summary":"","citations":["E1","E1","E1"],"n":3,"b":true}"#,
            r#"{"hypothesis":"H1","summary":"","citations":["E2"],"n":3,"b":true}"#,
            r#"{"hypothesis":"H1","summary":"","citations":["E1"],"n":4,"b":true}"#,
            r#"{"hypothesis":"H1","summary":"","citations":["E1"],"n":1.5,"b":true}"#,
            r#"{"hypothesis":"H1","summary":"","citations":["E1"],"n":1,"b":1}"#,
            r#"{"hypothesis":"H1","summary":"","citations":["E1"],"n":1}"#,
            r#"{"hypothesis":"H1","summary":"","citations":["E1"],"n":1,"b":true,"c":1}"#,
        ] {
            assert!(parse(&schema, bad).is_err(), "{bad}");
        }
    }
}
