//! The bodies of the guard's routes (guard 3.1): strict JSON, exactly the members shown.

use std::collections::BTreeMap;

use super::judge::{Collect, Outcome, SpendRequest};
use super::policy::is_id;
use super::{Code, Ending, Problem};
use crate::canon::{self, Limits, MAX_INT, Value, What};

/// Longest body (guard 3.1).
pub const MAX_BODY: usize = 16 << 10;

/// Deepest nesting (guard 5.1.1).
const MAX_DEPTH: usize = 4;

/// A body that has exactly the wanted members.
struct Body(BTreeMap<String, Value>);

impl Body {
    fn parse(bytes: &[u8], members: &[&str]) -> Result<Self, Problem> {
        let limits = Limits {
            max_bytes: MAX_BODY,
            max_depth: MAX_DEPTH,
        };
        let value = canon::parse(bytes, limits).map_err(|e| problem_of(&e))?;
        value
            .exactly(members)
            .cloned()
            .map(Self)
            .ok_or_else(|| malformed("a member is missing or unknown"))
    }

    fn text(&self, key: &str) -> Result<String, Problem> {
        let text = self.0.get(key).and_then(Value::as_text);
        text.map(str::to_owned).ok_or_else(|| wrong(key))
    }

    fn text_or_null(&self, key: &str) -> Result<Option<String>, Problem> {
        match self.0.get(key) {
            Some(Value::Null) => Ok(None),
            _ => self.text(key).map(Some),
        }
    }

    fn value(&self, key: &str) -> Result<Value, Problem> {
        self.0.get(key).cloned().ok_or_else(|| wrong(key))
    }

    /// `job` is an id, `fence` within 1..2^53-1 (guard 3.1).
    fn lease(&self) -> Result<(String, i64), Problem> {
        let job = self.text("job").ok().filter(|job| is_id(job));
        let fence = self.0.get("fence").and_then(Value::as_int);
        let fence = fence.filter(|fence| (1..=MAX_INT).contains(fence));
        Ok((
            job.ok_or_else(|| wrong("job"))?,
            fence.ok_or_else(|| wrong("fence"))?,
        ))
    }
}

fn malformed(text: impl Into<String>) -> Problem {
    Problem::new(Code::Malformed, text)
}

fn wrong(key: &str) -> Problem {
    malformed(format!("`{key}` is missing or of another type"))
}

/// A bad number inside the parameters is a bad parameter; everything else is bad structure
/// (guard 3.3).
fn problem_of(error: &canon::Error) -> Problem {
    let inside = error
        .path
        .first()
        .is_some_and(|key| key == "change" || key == "target");
    match error.what {
        What::TooLong => Problem::new(Code::TooLarge, Code::TooLarge.title()),
        What::Number if inside => Problem::new(Code::ParamsInvalid, error.to_string()),
        What::Number
        | What::TooDeep
        | What::Utf8
        | What::Bom
        | What::End
        | What::Byte
        | What::Trailing
        | What::DuplicateKey
        | What::Escape
        | What::Control => malformed(error.to_string()),
    }
}

/// Body of `.../capability`.
///
/// # Errors
/// `malformed` or `too_large`.
pub fn collect(bytes: &[u8]) -> Result<Collect, Problem> {
    let body = Body::parse(bytes, &["job", "fence", "holder_proof"])?;
    let (job, fence) = body.lease()?;
    Ok(Collect {
        job,
        fence,
        proof: body.text("holder_proof")?,
    })
}

/// Body of `/v1/capabilities/spend`. A worker of this box is no witness, so its `seen` is null.
///
/// # Errors
/// `malformed`, `too_large`, or `params_invalid` for a bad number inside the parameters.
pub fn spend(bytes: &[u8]) -> Result<SpendRequest, Problem> {
    let members = [
        "capability",
        "action",
        "target",
        "change",
        "job",
        "fence",
        "holder_proof",
        "seen",
    ];
    let body = Body::parse(bytes, &members)?;
    let (job, fence) = body.lease()?;
    if !body.value("seen")?.is_null() {
        return Err(wrong("seen"));
    }
    Ok(SpendRequest {
        capability: body.text("capability")?,
        action: body.text("action")?,
        target: body.value("target")?,
        change: body.value("change")?,
        job,
        fence,
        proof: body.text("holder_proof")?,
    })
}

/// Body of `.../started`.
///
/// # Errors
/// `malformed` or `too_large`.
pub fn started(bytes: &[u8]) -> Result<(String, i64), Problem> {
    Body::parse(bytes, &["job", "fence"])?.lease()
}

/// Body of `.../outcome`.
///
/// # Errors
/// `malformed` or `too_large`.
pub fn outcome(bytes: &[u8]) -> Result<Outcome, Problem> {
    let body = Body::parse(
        bytes,
        &["job", "fence", "outcome", "code", "evidence_sha256"],
    )?;
    let (job, fence) = body.lease()?;
    Ok(Outcome {
        job,
        fence,
        ending: Ending {
            outcome: body.text("outcome")?,
            code: body.text("code")?,
            evidence_sha256: body.text_or_null("evidence_sha256")?,
        },
    })
}

#[cfg(test)]
mod tests {
    use super::{MAX_BODY, collect, outcome, spend, started};
    use crate::guard::{Code, Problem};

    fn body(change: &str) -> String {
        format!(
            r#"{{"capability":"a.b.c","action":"scale","target":{{"namespace":"acme","name":"checkout"}},"change":{change},"job":"job-1","fence":7,"holder_proof":"d.e.f","seen":null}}"#
        )
    }

    fn code<T>(result: Result<T, Problem>) -> Code {
        result.map(|_| ()).unwrap_err().code
    }

    /// guard 3.3, 10 P5: inside the parameters a number that is none is a bad parameter.
    #[test]
    fn a_number_in_another_spelling_inside_the_parameters_is_a_bad_parameter() {
        for number in ["40.0", "4e1", "-0", "9007199254740992", "040"] {
            let text = body(&format!(r#"{{"replicas":{number}}}"#));
            assert_eq!(
                code(spend(text.as_bytes())),
                Code::ParamsInvalid,
                "{number}"
            );
        }
        let outside = body("{}").replace("\"fence\":7", "\"fence\":7.0");
        assert_eq!(code(spend(outside.as_bytes())), Code::Malformed);
    }

    /// guard 3.1, 3.3, 10 P6
    #[test]
    fn duplicate_keys_and_members_too_many_or_too_few_are_malformed() {
        for text in [
            body(r#"{"replicas":6,"replicas":7}"#),
            body("{}").replace("\"seen\":null", "\"seen\":null,\"more\":1"),
            body("{}").replace(",\"seen\":null", ""),
            body("{}").replace("\"seen\":null", "\"seen\":\"note\""),
            body("{}").replace("job-1", "../job"),
            body("{}").replace("\"fence\":7", "\"fence\":0"),
            body(r#"{"a":{"b":{"c":{}}}}"#),
            format!("\u{feff}{}", body("{}")),
        ] {
            assert_eq!(code(spend(text.as_bytes())), Code::Malformed, "{text}");
        }
        assert!(spend(body("{}").as_bytes()).is_ok());
    }

    /// guard 3.1
    #[test]
    fn a_body_over_the_limit_is_too_large() {
        let big = vec![b' '; MAX_BODY + 1];
        assert_eq!(code(spend(&big)), Code::TooLarge);
    }

    /// guard 3.1
    #[test]
    fn the_small_bodies_are_read() {
        let lease = br#"{"job":"job-1","fence":7}"#;
        assert_eq!(started(lease).unwrap(), ("job-1".to_owned(), 7));
        let asked = collect(br#"{"job":"job-1","fence":7,"holder_proof":"x"}"#).unwrap();
        assert_eq!(asked.proof, "x");
        let text = br#"{"job":"job-1","fence":7,"outcome":"failed","code":"changed_since","evidence_sha256":null}"#;
        assert_eq!(outcome(text).unwrap().ending.code, "changed_since");
    }
}
