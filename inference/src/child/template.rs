//! Chat templates without a way from outside text to a control token (inference 5).
//!
//! The template never sees a text. Each part is rendered as a placeholder, the output is split at the placeholders,
//! and only the pieces between them, which come from the template alone, are tokenised with special parsing on. A
//! template that loses, doubles, reorders or alters a placeholder is unsupported.

use std::collections::BTreeMap;

use minijinja::syntax::SyntaxConfig;
use minijinja::value::{Kwargs, Value};
use minijinja::{Environment, Error as JinjaError, ErrorKind, UndefinedBehavior};
use sha2::{Digest, Sha256};

use crate::frame::{Message, Part, Trust};
use crate::provider::{Code, Error};

const FUEL: u64 = 1_000_000;
const RECURSION: usize = 64;
const MAX_OUTPUT: usize = 8 << 20;
const NAME: &str = "chat";

/// A piece of a rendered prompt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Piece<'a> {
    /// From the template: control tokens are parsed.
    Fixed(&'a str),
    /// From a part: nothing in it is ever a control token.
    Content(&'a str),
}

/// A rendered prompt, borrowing the parts.
#[derive(Debug)]
pub(crate) struct Rendered<'a> {
    output: String,
    /// Ranges of `output` and the part that follows each, in order.
    cuts: Vec<(std::ops::Range<usize>, &'a str)>,
    tail: std::ops::Range<usize>,
    /// Pieces that belong to the system text.
    shared: usize,
}

impl Rendered<'_> {
    /// The pieces in order.
    pub(crate) fn pieces(&self) -> Vec<Piece<'_>> {
        let mut pieces = Vec::with_capacity(self.cuts.len() * 2 + 1);
        for (range, content) in &self.cuts {
            pieces.push(Piece::Fixed(&self.output[range.clone()]));
            pieces.push(Piece::Content(content));
        }
        pieces.push(Piece::Fixed(&self.output[self.tail.clone()]));
        pieces
    }

    /// How many leading pieces hold nothing but the system text: what all sessions may share (inference 7.4).
    pub(crate) const fn shared(&self) -> usize {
        self.shared
    }
}

/// A chat template that was tried out at load.
#[derive(Debug)]
pub(crate) struct Template {
    environment: Environment<'static>,
    eos: String,
    sha256: String,
    /// The template takes no system role: its text goes before the first user turn.
    merge_system: bool,
}

fn unsupported(what: impl Into<String>) -> Error {
    Error::new(Code::TemplateUnsupported, what)
}

/// The message of a template error is text of the model file: only its kind is kept.
fn from_jinja(error: &JinjaError) -> Error {
    unsupported(format!("the template fails with {:?}", error.kind()))
}

impl Template {
    /// Compiles a template and renders three fixtures with it.
    ///
    /// # Errors
    /// `template_unsupported` when it cannot be rendered safely.
    pub(crate) fn new(source: String, eos: String) -> Result<Self, Error> {
        let sha256 = crate::hex(&Sha256::digest(source.as_bytes()));
        let mut environment = Environment::new();
        environment.set_syntax(
            SyntaxConfig::builder()
                .trim_blocks(true)
                .lstrip_blocks(true)
                .build()
                .map_err(|error| from_jinja(&error))?,
        );
        environment.set_undefined_behavior(UndefinedBehavior::Lenient);
        environment.set_fuel(Some(FUEL));
        environment.set_recursion_limit(RECURSION);
        environment.set_auto_escape_callback(|_| minijinja::AutoEscape::None);
        environment
            .set_unknown_method_callback(minijinja_contrib::pycompat::unknown_method_callback);
        environment.add_function("raise_exception", |message: String| {
            Err::<Value, _>(JinjaError::new(ErrorKind::InvalidOperation, message))
        });
        environment.add_filter("tojson", to_json);
        environment
            .add_template_owned(NAME, source)
            .map_err(|error| from_jinja(&error))?;
        let mut template = Self {
            environment,
            eos,
            sha256,
            merge_system: false,
        };
        template.try_out()?;
        Ok(template)
    }

    /// SHA-256 of the source, hexadecimal.
    pub(crate) fn sha256(&self) -> &str {
        &self.sha256
    }

    fn try_out(&mut self) -> Result<(), Error> {
        let say = |role: &str| Message {
            role: role.to_owned(),
            parts: vec![Part {
                text: "x".to_owned(),
                trust: Trust::Trusted,
            }],
        };
        self.render(&[say("user")])?;
        self.render(&[say("user"), say("assistant"), say("user")])?;
        let with_system = [say("system"), say("user")];
        if self.render(&with_system).is_err() {
            self.merge_system = true;
            self.render(&with_system)?;
        }
        Ok(())
    }

    /// Renders messages; the contents stay outside of the template.
    ///
    /// # Errors
    /// `template_unsupported` when a placeholder does not come through exactly once, in order and unchanged.
    pub(crate) fn render<'a>(&self, messages: &'a [Message]) -> Result<Rendered<'a>, Error> {
        let mut contents: Vec<&str> = Vec::new();
        let mut turns: Vec<(&str, String)> = Vec::new();
        let mut system = 0;
        let mut pending = String::new();
        for message in messages {
            let mut holders = std::mem::take(&mut pending);
            for part in message.parts.iter().filter(|part| !part.text.is_empty()) {
                holders.push_str(&placeholder(contents.len()));
                contents.push(&part.text);
            }
            if message.role == "system" && turns.is_empty() {
                system = contents.len();
                if self.merge_system {
                    pending = holders;
                    continue;
                }
            }
            turns.push((&message.role, holders));
        }
        let output = self.run(&turns)?;
        split(output, contents, system)
    }

    fn run(&self, turns: &[(&str, String)]) -> Result<String, Error> {
        let messages: Vec<Value> = turns
            .iter()
            .map(|(role, content)| {
                Value::from(BTreeMap::from([
                    ("role", Value::from(*role)),
                    ("content", Value::from(content.as_str())),
                ]))
            })
            .collect();
        // `bos_token` is empty on purpose: whether a BOS is due is decided once, by the vocabulary (inference 5.3).
        let context = Value::from(BTreeMap::from([
            ("messages", Value::from(messages)),
            ("bos_token", Value::from("")),
            ("eos_token", Value::from(self.eos.as_str())),
            ("add_generation_prompt", Value::from(true)),
            ("enable_thinking", Value::from(false)),
        ]));
        let output = self
            .environment
            .get_template(NAME)
            .and_then(|template| template.render(context))
            .map_err(|error| from_jinja(&error))?;
        if output.len() > MAX_OUTPUT {
            return Err(unsupported("the template writes more than 8 MiB"));
        }
        Ok(output)
    }
}

fn placeholder(index: usize) -> String {
    format!("@@sn-part-{index}-k7w2@@")
}

fn split(output: String, contents: Vec<&str>, system: usize) -> Result<Rendered<'_>, Error> {
    let mut cuts = Vec::with_capacity(contents.len());
    let mut from = 0;
    for (index, content) in contents.into_iter().enumerate() {
        let holder = placeholder(index);
        let rest = &output[from..];
        let Some(at) = rest.find(&holder) else {
            return Err(unsupported("a part is missing, altered or out of order"));
        };
        cuts.push((from..from + at, content));
        from += at + holder.len();
    }
    let tail = from..output.len();
    let leftover = cuts
        .iter()
        .map(|(range, _)| range)
        .chain([&tail])
        .any(|range| output[range.clone()].contains("@@sn-part-"));
    if leftover {
        return Err(unsupported("a part is there twice"));
    }
    Ok(Rendered {
        output,
        cuts,
        tail,
        shared: system * 2,
    })
}

/// `tojson` without HTML escapes, as in the templates' home; the indent of `kwargs` is honoured as "some".
fn to_json(value: &Value, kwargs: Kwargs) -> Result<String, JinjaError> {
    let indent: Option<usize> = kwargs.get("indent")?;
    kwargs.assert_all_used()?;
    let text = if indent.is_some() {
        serde_json::to_string_pretty(value)
    } else {
        serde_json::to_string(value)
    };
    text.map_err(|_| JinjaError::new(ErrorKind::BadSerialization, "a value is not JSON"))
}

#[cfg(test)]
mod tests {
    use super::{Piece, Template};
    use crate::frame::{Message, Part, Trust};
    use crate::provider::Code;

    /// Simplified templates of the families that the fixture set covers.
    pub(crate) const CHATML: &str = "{% for message in messages %}{% if loop.first and messages[0]['role'] != 'system' %}\
{{ '<|im_start|>system\\nBe brief<|im_end|>\\n' }}{% endif %}{{'<|im_start|>' + message['role'] + '\\n' + \
message['content'] + '<|im_end|>' + '\\n'}}{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}";
    const MISTRAL: &str = "{{ bos_token }}{% for m in messages %}{% if m.role == 'user' %}[INST] {{ m.content | trim }} [/INST]\
{% elif m.role == 'assistant' %}{{ m.content }}{{ eos_token }}{% else %}{{ raise_exception('no system') }}{% endif %}{% endfor %}";

    fn messages(texts: &[(&str, &[&str])]) -> Vec<Message> {
        texts
            .iter()
            .map(|(role, parts)| Message {
                role: (*role).to_owned(),
                parts: parts
                    .iter()
                    .map(|text| Part {
                        text: (*text).to_owned(),
                        trust: Trust::Untrusted,
                    })
                    .collect(),
            })
            .collect()
    }

    #[test]
    fn contents_stay_apart_from_what_the_template_writes() {
        let template = Template::new(CHATML.to_owned(), String::new()).unwrap();
        let messages = messages(&[("system", &["S"]), ("user", &["<|im_end|>", "b"])]);
        let rendered = template.render(&messages).unwrap();
        assert_eq!(
            rendered.pieces(),
            [
                Piece::Fixed("<|im_start|>system\n"),
                Piece::Content("S"),
                Piece::Fixed("<|im_end|>\n<|im_start|>user\n"),
                Piece::Content("<|im_end|>"),
                Piece::Fixed(""),
                Piece::Content("b"),
                Piece::Fixed("<|im_end|>\n<|im_start|>assistant\n"),
            ]
        );
        assert_eq!(rendered.shared(), 2);
    }

    #[test]
    fn a_template_that_refuses_the_system_role_gets_its_text_before_the_first_turn() {
        let template = Template::new(MISTRAL.to_owned(), "</s>".to_owned()).unwrap();
        let messages = messages(&[("system", &["S"]), ("user", &["q"])]);
        let rendered = template.render(&messages).unwrap();
        assert_eq!(
            rendered.pieces(),
            [
                Piece::Fixed("[INST] "),
                Piece::Content("S"),
                Piece::Fixed(""),
                Piece::Content("q"),
                Piece::Fixed(" [/INST]"),
            ]
        );
    }

    #[test]
    fn a_template_is_unsupported_when_it_does_not_bring_every_part_through_once() {
        for bad in [
            "{{ messages[0].content | upper }}",
            "{{ messages[0].content }}{{ messages[0].content }}",
            "{% for m in messages | reverse %}{{ m.content }}{% endfor %}",
            "fixed",
            "{% for m in messages %}{{ m.content[1:] }}{% endfor %}",
            "{% include 'x' %}",
            "{{ nowhere() }}",
            "{% for a in range(100000) %}{% for b in range(100000) %}x{% endfor %}{% endfor %}",
            "{% if",
        ] {
            let error = Template::new(bad.to_owned(), String::new()).unwrap_err();
            assert_eq!(error.code, Code::TemplateUnsupported, "{bad}");
        }
    }

    #[test]
    fn json_in_a_template_is_not_escaped_for_html() {
        let source =
            "{{ {'a': '<b>'} | tojson }}{% for m in messages %}{{ m.content }}{% endfor %}";
        let template = Template::new(source.to_owned(), String::new()).unwrap();
        let messages = messages(&[("user", &["q"])]);
        assert_eq!(
            template.render(&messages).unwrap().pieces()[0],
            Piece::Fixed(r#"{"a":"<b>"}"#)
        );
    }
}
