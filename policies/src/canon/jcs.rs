//! RFC 8785: one spelling for each value.

use super::Value;

/// Appends the JCS text of `value`.
pub(super) fn write(value: &Value, out: &mut String) {
    match value {
        Value::Null => out.push_str("null"),
        Value::Bool(true) => out.push_str("true"),
        Value::Bool(false) => out.push_str("false"),
        Value::Int(number) => out.push_str(&number.to_string()),
        Value::Text(text) => write_text(text, out),
        Value::List(items) => {
            out.push('[');
            for (i, item) in items.iter().enumerate() {
                if i > 0 {
                    out.push(',');
                }
                write(item, out);
            }
            out.push(']');
        }
        Value::Map(members) => {
            // RFC 8785 sorts by UTF-16 code units; the map's own order is by code points, which
            // differs for U+E000..U+FFFF against the supplementary planes.
            let mut sorted: Vec<_> = members.iter().collect();
            sorted.sort_by(|(a, _), (b, _)| a.encode_utf16().cmp(b.encode_utf16()));
            out.push('{');
            for (i, (key, item)) in sorted.into_iter().enumerate() {
                if i > 0 {
                    out.push(',');
                }
                write_text(key, out);
                out.push(':');
                write(item, out);
            }
            out.push('}');
        }
    }
}

fn write_text(text: &str, out: &mut String) {
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\u{8}' => out.push_str("\\b"),
            '\t' => out.push_str("\\t"),
            '\n' => out.push_str("\\n"),
            '\u{c}' => out.push_str("\\f"),
            '\r' => out.push_str("\\r"),
            c if c < ' ' => out.push_str(&format!("\\u{:04x}", u32::from(c))),
            c => out.push(c),
        }
    }
    out.push('"');
}

#[cfg(test)]
mod tests {
    use super::super::{Limits, parse};
    use super::*;

    #[test]
    fn keys_are_sorted_by_utf16_code_units() {
        // The order of RFC 8785 3.2.3's example.
        let keys = [
            "\u{20ac}",
            "\r",
            "\u{fb33}",
            "1",
            "\u{1f600}",
            "\u{80}",
            "\u{f6}",
        ];
        let text = Value::map(keys.map(|k| (k, Value::Null))).to_jcs();
        assert_eq!(
            text,
            "{\"\\r\":null,\"1\":null,\"\u{80}\":null,\"\u{f6}\":null,\"\u{20ac}\":null,\
             \"\u{1f600}\":null,\"\u{fb33}\":null}"
        );
    }

    #[test]
    fn control_characters_have_one_escape() {
        let text = Value::from("\u{0}\u{8}\t\n\u{b}\u{c}\r\u{1f}\"\\/\u{7f}€").to_jcs();
        assert_eq!(
            text,
            "\"\\u0000\\b\\t\\n\\u000b\\f\\r\\u001f\\\"\\\\/\u{7f}€\""
        );
    }

    proptest::proptest! {
        #[test]
        fn jcs_text_parses_back_to_the_same_value(keys in proptest::collection::vec(".{0,6}", 0..6), n in -super::super::MAX_INT..=super::super::MAX_INT) {
            let value = Value::map(keys.iter().map(|k| (k.clone(), Value::List(vec![Value::Int(n), Value::from(k.as_str())]))));
            let text = value.to_jcs();
            let back = parse(text.as_bytes(), Limits { max_bytes: 65_536, max_depth: 4 }).unwrap();
            proptest::prop_assert_eq!(&back, &value);
            proptest::prop_assert_eq!(back.to_jcs(), text);
        }

        #[test]
        fn an_independent_parser_reads_the_same_strings(text in ".{0,40}") {
            let jcs = Value::from(text.as_str()).to_jcs();
            let other: String = serde_json::from_str(&jcs).unwrap();
            proptest::prop_assert_eq!(other, text);
        }
    }
}
