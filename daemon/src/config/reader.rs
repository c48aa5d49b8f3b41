//! Typed reading of one TOML file that never stops at the first problem.
//!
//! Every value is asked for by name; what nobody asked for is an unknown key. So the set of keys
//! and the code that reads them cannot drift apart.

use std::collections::BTreeMap;
use std::ops::Range;

use toml_edit::{Document, Item, TableLike, Value};

use super::problem::{Level, Problem};

/// One file that is being read, and what was found wrong so far.
pub(super) struct Reader<'a> {
    file: &'a str,
    text: &'a str,
    /// Known keys of every table that was visited, for suggestions across tables.
    known: BTreeMap<String, Vec<&'static str>>,
    pub(super) problems: Vec<Problem>,
}

/// A table of the file, or its absence, with its dotted name.
#[derive(Clone)]
pub(super) struct Section<'a> {
    pub(super) name: String,
    table: Option<&'a dyn TableLike>,
    fallback: Option<&'a dyn TableLike>,
}

impl<'a> Section<'a> {
    /// The root of `doc`; keys that it lacks are looked up in `fallback`.
    pub(super) fn root(doc: &'a Document<String>, fallback: Option<&'a Document<String>>) -> Self {
        Self {
            name: String::new(),
            table: Some(doc.as_table()),
            fallback: fallback.map(|d| d.as_table() as &dyn TableLike),
        }
    }

    fn get(&self, key: &str) -> Option<&'a Item> {
        self.table
            .and_then(|t| t.get(key))
            .or_else(|| self.fallback.and_then(|t| t.get(key)))
    }

    fn own_key_span(&self, key: &str) -> Option<Range<usize>> {
        self.table?.get_key_value(key)?.0.span()
    }

    fn path(&self, key: &str) -> String {
        if self.name.is_empty() {
            key.to_owned()
        } else {
            format!("{}.{key}", self.name)
        }
    }
}

impl<'a> Reader<'a> {
    pub(super) fn new(file: &'a str, text: &'a str) -> Self {
        Self {
            file,
            text,
            known: BTreeMap::new(),
            problems: Vec::new(),
        }
    }

    /// Records an error at `span`.
    pub(super) fn error(
        &mut self,
        code: &'static str,
        span: Option<Range<usize>>,
        message: String,
        help: String,
    ) {
        self.report(Level::Error, code, span, message, help);
    }

    pub(super) fn report(
        &mut self,
        level: Level,
        code: &'static str,
        span: Option<Range<usize>>,
        message: String,
        help: String,
    ) {
        let (line, column, source_line, width) =
            span.map_or((0, 0, String::new(), 0), |s| locate(self.text, &s));
        self.problems.push(Problem {
            level,
            code,
            file: self.file.to_owned(),
            line,
            column,
            message,
            source_line,
            width,
            help,
        });
    }

    /// A sub-table. Absent is fine; another type is an error.
    pub(super) fn section<'s>(&mut self, parent: &Section<'s>, key: &'static str) -> Section<'s> {
        let name = parent.path(key);
        let mut pick = |from: Option<&'s dyn TableLike>| {
            let item = from.and_then(|t| t.get(key))?;
            let table = item.as_table_like();
            if table.is_none() {
                self.error(
                    "SN-0103",
                    item.span(),
                    format!("`{name}` must be a table"),
                    String::new(),
                );
            }
            table
        };
        let table = pick(parent.table);
        let fallback = pick(parent.fallback);
        Section {
            name,
            table,
            fallback,
        }
    }

    /// The named sub-tables of `[key.NAME]`.
    pub(super) fn named<'s>(
        &mut self,
        parent: &Section<'s>,
        key: &'static str,
    ) -> Vec<(String, Section<'s>)> {
        let section = self.section(parent, key);
        let Some(table) = section.table else {
            return Vec::new();
        };
        let mut found = Vec::new();
        for (name, item) in table.iter() {
            let path = section.path(name);
            match item.as_table_like() {
                Some(sub) => found.push((
                    name.to_owned(),
                    Section {
                        name: path,
                        table: Some(sub),
                        fallback: None,
                    },
                )),
                None => self.error(
                    "SN-0103",
                    section.own_key_span(name),
                    format!("`{path}` must be a table, `[{path}]`"),
                    String::new(),
                ),
            }
        }
        found
    }

    /// Tables of an array `key = [{...}, ...]`.
    pub(super) fn tables<'s>(
        &mut self,
        section: &Section<'s>,
        key: &'static str,
    ) -> Vec<Section<'s>> {
        let path = section.path(key);
        let Some(item) = section.get(key) else {
            self.missing(section, key);
            return Vec::new();
        };
        if let Some(array) = item.as_array_of_tables() {
            return array
                .iter()
                .map(|t| Section {
                    name: path.clone(),
                    table: Some(t),
                    fallback: None,
                })
                .collect();
        }
        let mut found = Vec::new();
        for value in item.as_array().into_iter().flatten() {
            match value.as_inline_table() {
                Some(t) => found.push(Section {
                    name: path.clone(),
                    table: Some(t),
                    fallback: None,
                }),
                None => self.error(
                    "SN-0103",
                    value.span(),
                    format!("each entry of `{path}` must be a table"),
                    String::new(),
                ),
            }
        }
        if item.as_array().is_none() {
            self.wrong(section, key, "an array of tables");
        }
        found
    }

    fn value<'s>(section: &Section<'s>, key: &str) -> Option<&'s Value> {
        section.get(key).and_then(Item::as_value)
    }

    fn wrong(&mut self, section: &Section<'_>, key: &str, wanted: &str) {
        let span = section.get(key).and_then(Item::span);
        let path = section.path(key);
        self.error(
            "SN-0103",
            span,
            format!("`{path}` must be {wanted}"),
            String::new(),
        );
    }

    fn missing(&mut self, section: &Section<'_>, key: &str) {
        let span = section.table.and_then(|t| {
            t.iter()
                .next()
                .and_then(|(k, _)| t.get_key_value(k)?.0.span())
        });
        self.error(
            "SN-0104",
            span,
            format!("`{}` is missing in [{}]", key, section.name),
            String::new(),
        );
    }

    /// Where a key of this section stands, for problems found later.
    pub(super) fn span(section: &Section<'_>, key: &str) -> Option<Range<usize>> {
        section.get(key).and_then(Item::span)
    }

    /// A text; the empty text stands in for one that is missing or of another type, which is an error.
    pub(super) fn text(&mut self, section: &Section<'_>, key: &'static str) -> String {
        match Self::value(section, key) {
            Some(v) => match v.as_str() {
                Some(s) => s.to_owned(),
                None => {
                    self.wrong(section, key, "a text");
                    String::new()
                }
            },
            None => {
                self.missing(section, key);
                String::new()
            }
        }
    }

    /// A text that may be absent.
    pub(super) fn text_or(
        &mut self,
        section: &Section<'_>,
        key: &'static str,
        default: &str,
    ) -> String {
        if section.get(key).is_some() {
            self.text(section, key)
        } else {
            default.to_owned()
        }
    }

    /// One word of a closed set, given back as its index.
    pub(super) fn word(
        &mut self,
        section: &Section<'_>,
        key: &'static str,
        words: &[&'static str],
    ) -> Option<usize> {
        let text = self.text(section, key);
        let found = words.iter().position(|w| *w == text);
        if found.is_none() && !text.is_empty() {
            let help = nearest(&text, words.iter().copied()).map_or_else(
                || format!("one of: {}", words.join(", ")),
                |w| format!("did you mean `{w}`?"),
            );
            let span = Self::span(section, key);
            self.error(
                "SN-0105",
                span,
                format!("`{}` does not know `{text}`", section.path(key)),
                help,
            );
        }
        found
    }

    /// An integer inside `range`.
    pub(super) fn int(
        &mut self,
        section: &Section<'_>,
        key: &'static str,
        range: std::ops::RangeInclusive<i64>,
    ) -> i64 {
        let start = *range.start();
        match Self::value(section, key).map(Value::as_integer) {
            Some(Some(n)) if range.contains(&n) => n,
            Some(Some(_) | None) => {
                self.wrong(
                    section,
                    key,
                    &format!("an integer from {} to {}", range.start(), range.end()),
                );
                start
            }
            None => {
                self.missing(section, key);
                start
            }
        }
    }

    /// A number (integer or decimal) of at least 0.
    pub(super) fn number(&mut self, section: &Section<'_>, key: &'static str) -> f64 {
        let value = Self::value(section, key);
        let Some(value) = value else {
            self.missing(section, key);
            return 0.0;
        };
        #[allow(clippy::cast_precision_loss, reason = "configured numbers are small")]
        let number = value
            .as_float()
            .or_else(|| value.as_integer().map(|n| n as f64));
        match number {
            Some(n) if n.is_finite() && n >= 0.0 => n,
            Some(_) | None => {
                self.wrong(section, key, "a number of at least 0");
                0.0
            }
        }
    }

    /// A duration with its unit, for example `"250ms"`, `"10m"`; given in ms.
    pub(super) fn duration(&mut self, section: &Section<'_>, key: &'static str) -> i64 {
        let text = self.text(section, key);
        if text.is_empty() {
            return 0;
        }
        if let Some(ms) = parse_duration(&text) {
            return ms;
        }
        self.wrong(
            section,
            key,
            "a duration with a unit (ms, s, m, h, d), for example \"10m\"",
        );
        0
    }

    /// A list of texts.
    pub(super) fn texts(&mut self, section: &Section<'_>, key: &'static str) -> Vec<String> {
        let Some(item) = section.get(key) else {
            return Vec::new();
        };
        let list: Option<Vec<String>> = item
            .as_array()
            .and_then(|a| a.iter().map(|v| v.as_str().map(str::to_owned)).collect());
        list.unwrap_or_else(|| {
            self.wrong(section, key, "an array of texts");
            Vec::new()
        })
    }

    /// Reports every key of `section` that is not in `known`.
    pub(super) fn close(&mut self, section: &Section<'_>, known: &[&'static str]) {
        self.known.insert(section.name.clone(), known.to_vec());
        let Some(table) = section.table else {
            return;
        };
        let unknown: Vec<String> = table
            .iter()
            .map(|(k, _)| k.to_owned())
            .filter(|k| !known.contains(&k.as_str()))
            .collect();
        for key in unknown {
            let place = if section.name.is_empty() {
                "at the top of the file".to_owned()
            } else {
                format!("in [{}]", section.name)
            };
            let help = self.suggest(&key, known);
            let span = section.own_key_span(&key);
            self.error(
                "SN-0102",
                span,
                format!("unknown key `{key}` {place}"),
                help,
            );
        }
    }

    fn suggest(&self, key: &str, known: &[&'static str]) -> String {
        if let Some(near) = nearest(key, known.iter().copied()) {
            return format!("did you mean `{near}`?");
        }
        for (table, keys) in &self.known {
            if let Some(near) = nearest(key, keys.iter().copied()) {
                return format!("`{near}` belongs to [{table}]");
            }
        }
        String::new()
    }
}

/// The nearest word: Damerau-Levenshtein distance of at most 2 and at most a third of the length
/// (operations 4.5).
fn nearest<'w>(word: &str, words: impl Iterator<Item = &'w str>) -> Option<&'w str> {
    words
        .map(|w| (strsim::damerau_levenshtein(word, w), w))
        .filter(|(d, w)| *d <= 2 && *d * 3 <= w.len().max(word.len()))
        .min()
        .map(|(_, w)| w)
}

/// Reads `250ms`, `4s`, `10m`, `6h`, `3d` as milliseconds.
fn parse_duration(text: &str) -> Option<i64> {
    let split = text.find(|c: char| !c.is_ascii_digit())?;
    let (digits, unit) = text.split_at(split);
    let factor = match unit {
        "ms" => 1,
        "s" => 1_000,
        "m" => 60_000,
        "h" => 3_600_000,
        "d" => 86_400_000,
        _ => return None,
    };
    digits.parse::<i64>().ok()?.checked_mul(factor)
}

/// Line, column (both from 1, in characters), the line itself and the width of a span in `text`.
pub(super) fn locate(text: &str, span: &Range<usize>) -> (usize, usize, String, usize) {
    let start = span.start.min(text.len());
    let before = text.get(..start).unwrap_or_default();
    let line = before.matches('\n').count() + 1;
    let line_start = before.rfind('\n').map_or(0, |i| i + 1);
    let column = text
        .get(line_start..start)
        .unwrap_or_default()
        .chars()
        .count()
        + 1;
    let source: String = text
        .get(line_start..)
        .unwrap_or_default()
        .lines()
        .next()
        .unwrap_or_default()
        .to_owned();
    let marked = text
        .get(start..span.end.min(text.len()))
        .unwrap_or_default();
    let width = marked
        .lines()
        .next()
        .unwrap_or_default()
        .chars()
        .count()
        .max(1);
    (line, column, source, width)
}

#[cfg(test)]
mod tests {
    use super::{nearest, parse_duration};

    #[test]
    fn durations_carry_a_unit_or_are_refused() {
        assert_eq!(parse_duration("250ms"), Some(250));
        assert_eq!(parse_duration("10m"), Some(600_000));
        for bad in ["", "10", "m", "1.5s", "-1s", "1 s", "99999999999999999d"] {
            assert_eq!(parse_duration(bad), None, "{bad}");
        }
    }

    #[test]
    fn a_suggestion_is_near_or_it_is_not_made() {
        assert_eq!(
            nearest("listn", ["listen", "names"].into_iter()),
            Some("listen")
        );
        assert_eq!(nearest("xyz", ["listen", "names"].into_iter()), None);
        assert_eq!(nearest("ab", ["cd"].into_iter()), None);
    }
}
