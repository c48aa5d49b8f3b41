//! The machine-readable conditions of a runbook (guardrails 11.3), read from its front matter:
//!
//! ```text
//! ---
//! sentinel: {action: rollback, requires: [deploy_within 30m, healthy till], forbids: [replicas < 2]}
//! ---
//! ```

use serde::{Deserialize, Serialize};

use super::RemediationClass;

/// Longest front matter in lines.
const MAX_LINES: usize = 64;

/// How a number is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Comparison {
    /// Less than.
    Below,
    /// Less than or equal.
    AtMost,
    /// Greater than.
    Above,
    /// Greater than or equal.
    AtLeast,
}

impl Comparison {
    /// True when `left` stands to `right` as the comparison says.
    #[must_use]
    pub fn holds(self, left: f64, right: f64) -> bool {
        match self {
            Self::Below => left < right,
            Self::AtMost => left <= right,
            Self::Above => left > right,
            Self::AtLeast => left >= right,
        }
    }
}

/// One condition that the interlocks can look at.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Predicate {
    /// A deploy of the target began at most so many milliseconds before the onset.
    DeployWithin(i64),
    /// The last value of a metric of the target.
    Metric {
        /// Metric name.
        name: String,
        /// Comparison.
        is: Comparison,
        /// With what.
        value: f64,
    },
    /// The number of instances of the target.
    Replicas {
        /// Comparison.
        is: Comparison,
        /// With what.
        value: f64,
    },
    /// The target keeps no state.
    Stateless,
    /// Every unit of this service is active.
    Healthy(String),
    /// This run has evidence of this tool.
    EvidenceKind(String),
    /// A firing alert has this label with this value.
    AlertLabel {
        /// Label.
        name: String,
        /// Value.
        value: String,
    },
    /// It could not be read; it is never true.
    Unreadable,
}

/// A condition and where it stands.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Condition {
    /// The words of the document.
    pub text: String,
    /// Line of the document, from 1.
    pub line: u32,
    /// What they say.
    pub predicate: Predicate,
}

/// The conditions of one action of a runbook.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Preconditions {
    /// The action.
    pub action: RemediationClass,
    /// What must be true.
    pub requires: Vec<Condition>,
    /// What must be false.
    pub forbids: Vec<Condition>,
}

/// What is wrong with a front matter. The reason names the line.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{document}:{line}: {reason}")]
pub struct FrontMatterError {
    /// File name.
    pub document: String,
    /// Line, from 1.
    pub line: u32,
    /// What is wrong.
    pub reason: String,
}

/// Reads the front matter of a document. Answers the conditions, if it has any, and every error:
/// a condition that cannot be read stays as one that is never true.
#[must_use]
pub fn front_matter(document: &str, text: &str) -> (Option<Preconditions>, Vec<FrontMatterError>) {
    let mut reader = Reader {
        document,
        errors: Vec::new(),
    };
    let found = reader.read(text);
    (found, reader.errors)
}

struct Reader<'a> {
    document: &'a str,
    errors: Vec<FrontMatterError>,
}

impl Reader<'_> {
    fn wrong(&mut self, line: u32, reason: String) {
        self.errors.push(FrontMatterError {
            document: self.document.to_owned(),
            line,
            reason,
        });
    }

    fn read(&mut self, text: &str) -> Option<Preconditions> {
        let mut lines = text.lines();
        if lines.next()?.trim_end() != "---" {
            return None;
        }
        let mut body: Vec<(u32, &str)> = Vec::new();
        let mut ended = false;
        for (number, line) in (2..).zip(lines.take(MAX_LINES)) {
            if line.trim_end() == "---" {
                ended = true;
                break;
            }
            body.push((number, line));
        }
        let start = body.iter().position(|(_, l)| l.starts_with("sentinel:"))?;
        let ours = body.iter().skip(start).enumerate();
        let mut ours: Vec<(u32, &str)> = ours
            .take_while(|(n, (_, l))| *n == 0 || l.starts_with([' ', '\t', '}']))
            .map(|(_, part)| *part)
            .collect();
        let first = ours.first().map_or(1, |(n, _)| *n);
        if let Some((_, head)) = ours.first_mut() {
            *head = head.strip_prefix("sentinel:").unwrap_or("");
        }
        if !ended {
            self.wrong(first, "the front matter has no end".to_owned());
        }
        self.members(first, &ours)
    }

    fn members(&mut self, first: u32, lines: &[(u32, &str)]) -> Option<Preconditions> {
        let mut action = None;
        let (mut requires, mut forbids) = (Vec::new(), Vec::new());
        for (line, name, value) in self.split_members(lines) {
            match name.as_str() {
                "action" => {
                    action = value.parse::<RemediationClass>().ok();
                    if action.is_none() {
                        self.wrong(line, format!("`{value}` is no action"));
                    }
                }
                "requires" => requires.extend(self.conditions(line, &value)),
                "forbids" => forbids.extend(self.conditions(line, &value)),
                _ => self.wrong(line, format!("unknown member `{name}`")),
            }
        }
        if action.is_none() && self.errors.is_empty() {
            self.wrong(first, "`action` is missing".to_owned());
        }
        Some(Preconditions {
            action: action?,
            requires,
            forbids,
        })
    }

    /// Members of the flow or block form: line, name, value.
    fn split_members(&mut self, lines: &[(u32, &str)]) -> Vec<(u32, String, String)> {
        let mut found: Vec<(u32, String, String)> = Vec::new();
        let mut depth = 0_i32;
        for (line, text) in lines {
            let text = text.trim();
            let text = text.strip_prefix('{').unwrap_or(text);
            let mut part = String::new();
            let mut parts = Vec::new();
            for c in text.chars() {
                match c {
                    '[' => depth = depth.saturating_add(1),
                    ']' => depth = depth.saturating_sub(1),
                    ',' if depth == 0 => {
                        parts.push(std::mem::take(&mut part));
                        continue;
                    }
                    '}' if depth == 0 => continue,
                    _ => {}
                }
                part.push(c);
            }
            parts.push(part);
            for part in parts {
                let part = part.trim();
                let item = part.strip_prefix("- ").map(str::trim);
                match (item, part.split_once(':'), found.last_mut()) {
                    _ if part.is_empty() => {}
                    (Some(item), _, Some((_, _, value))) => {
                        value.push_str(item);
                        value.push('\u{1f}');
                    }
                    (None, Some((name, value)), _) if !name.contains(['[', ' ']) => {
                        found.push((*line, name.to_owned(), value.trim().to_owned()));
                    }
                    (None, _, Some((_, _, value))) => value.push_str(part),
                    (Some(_), _, None) | (None, _, None) => {
                        self.wrong(*line, "a name and a colon are expected".to_owned());
                    }
                }
            }
        }
        found
    }

    fn conditions(&mut self, line: u32, value: &str) -> Vec<Condition> {
        value
            .trim_matches(['[', ']'])
            .split([',', '\u{1f}'])
            .map(|text| text.trim().trim_matches(['"', '\'']).trim())
            .filter(|text| !text.is_empty())
            .map(|text| {
                let predicate = parse(text).unwrap_or_else(|| {
                    self.wrong(line, format!("unknown predicate `{text}`"));
                    Predicate::Unreadable
                });
                Condition {
                    text: text.to_owned(),
                    line,
                    predicate,
                }
            })
            .collect()
    }
}

fn parse(text: &str) -> Option<Predicate> {
    let plain = text.replace(['(', ')'], " ");
    let words: Vec<&str> = plain.split_whitespace().collect();
    match words.as_slice() {
        ["stateless"] => Some(Predicate::Stateless),
        ["deploy_within", span] => millis(span).map(Predicate::DeployWithin),
        ["healthy", service] => Some(Predicate::Healthy((*service).to_owned())),
        ["evidence_kind", tool] => Some(Predicate::EvidenceKind((*tool).to_owned())),
        ["alert_label", pair] => pair
            .split_once('=')
            .map(|(name, value)| Predicate::AlertLabel {
                name: name.to_owned(),
                value: value.to_owned(),
            }),
        ["replicas", sign, number] => Some(Predicate::Replicas {
            is: comparison(sign)?,
            value: number.parse().ok()?,
        }),
        ["metric", name, sign, number] => Some(Predicate::Metric {
            name: (*name).to_owned(),
            is: comparison(sign)?,
            value: number.parse().ok()?,
        }),
        _ => None,
    }
}

fn comparison(sign: &str) -> Option<Comparison> {
    match sign {
        "<" => Some(Comparison::Below),
        "<=" => Some(Comparison::AtMost),
        ">" => Some(Comparison::Above),
        ">=" => Some(Comparison::AtLeast),
        _ => None,
    }
}

fn millis(span: &str) -> Option<i64> {
    let at = span.find(|c: char| !c.is_ascii_digit())?;
    let number: i64 = span.get(..at)?.parse().ok()?;
    let factor = match span.get(at..)? {
        "s" => 1_000,
        "m" => 60_000,
        "h" => 3_600_000,
        "d" => 86_400_000,
        _ => return None,
    };
    number.checked_mul(factor)
}

#[cfg(test)]
mod tests {
    use super::{Comparison, Predicate, front_matter};
    use crate::model::RemediationClass;

    #[test]
    fn r11_3_both_forms_of_a_front_matter_are_read() {
        for text in [
            "---\nsentinel: {action: rollback, requires: [deploy_within 30m, replicas >= 2], forbids: [alert_label severity=info]}\n---\n# A\n",
            "---\ntitle: x\nsentinel:\n  action: rollback\n  requires:\n    - deploy_within(30m)\n    - replicas >= 2\n  forbids: [alert_label severity=info]\nowner: y\n---\n# A\n",
        ] {
            let (found, errors) = front_matter("a.md", text);
            assert_eq!(errors, [], "{text}");
            let found = found.unwrap();
            assert_eq!(found.action, RemediationClass::Rollback);
            let requires: Vec<_> = found.requires.iter().map(|c| c.predicate.clone()).collect();
            assert_eq!(
                requires,
                [
                    Predicate::DeployWithin(1_800_000),
                    Predicate::Replicas {
                        is: Comparison::AtLeast,
                        value: 2.0
                    },
                ]
            );
            assert_eq!(found.forbids.len(), 1);
        }
    }

    #[test]
    fn r11_3_an_unknown_predicate_is_an_error_with_file_and_line_and_is_never_true() {
        let text = "---\nsentinel:\n  action: restart\n  requires: [moon_is_full]\n---\n";
        let (found, errors) = front_matter("moon.md", text);
        assert_eq!(
            errors[0].to_string(),
            "moon.md:4: unknown predicate `moon_is_full`"
        );
        assert_eq!(found.unwrap().requires[0].predicate, Predicate::Unreadable);
        let (_, errors) = front_matter("b.md", "---\nsentinel: {action: dance}\n---\n");
        assert_eq!(errors[0].to_string(), "b.md:2: `dance` is no action");
    }

    #[test]
    fn a_document_without_front_matter_has_no_conditions() {
        assert_eq!(
            front_matter("a.md", "# A\n\nsentinel: {}\n"),
            (None, vec![])
        );
    }
}
