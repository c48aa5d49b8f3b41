//! Error signatures (D3): what a failure says about where it happened.

use std::collections::{BTreeMap, BTreeSet};

use super::Cite;
use super::board::Board;
use super::kinds::ResourceKind;
use super::logs::{self, Level, Record};
use super::view::View;
use crate::model::Millis;

/// Most signatures that are kept.
const SIGNATURES_MAX: usize = 64;
/// Most lines of a record that are read.
const LINES_MAX: usize = 80;

/// A place in source code.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Frame {
    /// Last part of the path.
    pub(super) file: String,
    /// Line, when told.
    pub(super) line: Option<u32>,
    /// Function, when told.
    pub(super) function: Option<String>,
}

/// One kind of failure of one service.
#[derive(Clone, Debug)]
pub(super) struct Signature<'v> {
    pub(super) service: &'v str,
    /// Type of the exception, or empty.
    pub(super) exception: String,
    /// Own frames, innermost last.
    pub(super) frames: Vec<Frame>,
    /// Names in quotes: keys, fields, tables.
    pub(super) names: BTreeSet<String>,
    /// Routes and paths that start with a slash.
    pub(super) routes: BTreeSet<String>,
    /// Identifiers of its message.
    pub(super) idents: BTreeSet<String>,
    /// Other services that it names.
    pub(super) peers: BTreeSet<String>,
    /// Resources that it says are used up.
    pub(super) resources: BTreeSet<ResourceKind>,
    pub(super) count: u32,
    pub(super) first: Millis,
    pub(super) last: Millis,
    pub(super) instances: BTreeSet<&'v str>,
    pub(super) cites: Vec<Cite>,
}

/// Reads the error records that are fresh, or whose failure is, into signatures, most frequent first.
pub(super) fn run<'v>(view: &'v View<'v>, board: &mut Board<'v>) {
    let fresh: BTreeSet<(String, String)> = logs::fresh_keys(view, board)
        .into_iter()
        .map(|(service, text)| (service.to_owned(), text.to_owned()))
        .collect();
    let split = board
        .onset
        .as_ref()
        .map(|o| o.at.plus(-board.width_ms.max(1_000)));
    let mut found: BTreeMap<(&str, String, String), Signature<'_>> = BTreeMap::new();
    let mut old: BTreeSet<(&str, String, String)> = BTreeSet::new();
    for record in logs::records(view) {
        let Some(head) = record.head().filter(|_| record.level >= Level::Error) else {
            continue;
        };
        let key = (record.service.to_owned(), logs::mask(head.text));
        let fresh = fresh.contains(&key);
        let one = read(view, &record);
        let place = one.frames.last().map_or(key.1, |f| {
            format!("{}:{}", f.file, f.function.clone().unwrap_or_default())
        });
        let id = (record.service, one.exception.clone(), place);
        if split.is_some_and(|split| record.at < split) {
            old.insert(id);
            continue;
        }
        // Another fault before may have worn the same line around another failure.
        if !fresh && (old.contains(&id) || one.exception.is_empty()) {
            continue;
        }
        let room = found.len() < SIGNATURES_MAX;
        match found.get_mut(&id) {
            Some(known) => merge(known, one),
            None if room => {
                found.insert(id, one);
            }
            None => {}
        }
    }
    let mut all: Vec<Signature<'_>> = found.into_values().collect();
    all.sort_by(|a, b| b.count.cmp(&a.count).then_with(|| a.first.cmp(&b.first)));
    board.signatures = all;
}

fn merge<'v>(known: &mut Signature<'v>, one: Signature<'v>) {
    known.count = known.count.saturating_add(1);
    known.first = known.first.min(one.first);
    known.last = known.last.max(one.last);
    known.instances.extend(one.instances);
    // Many records of one kind may differ in what they name; a bounded union is kept.
    if known.names.len() < 32 {
        known.names.extend(one.names);
    }
    if known.routes.len() < 32 {
        known.routes.extend(one.routes);
    }
    known.peers.extend(one.peers);
    known.resources.extend(one.resources);
    if known.cites.len() < 6 {
        known.cites.extend(one.cites.into_iter().take(2));
    }
}

fn read<'v>(view: &View<'_>, record: &Record<'v>) -> Signature<'v> {
    let mut one = Signature {
        service: record.service,
        exception: String::new(),
        frames: Vec::new(),
        names: BTreeSet::new(),
        routes: BTreeSet::new(),
        idents: BTreeSet::new(),
        peers: BTreeSet::new(),
        resources: BTreeSet::new(),
        count: 1,
        first: record.at,
        last: record.at,
        instances: BTreeSet::from([record.instance]),
        cites: record.head().map(|h| h.cite).into_iter().collect(),
    };
    for row in record.rows.iter().take(LINES_MAX) {
        // A trace may be one line with escaped line ends.
        for text in row.text.split("\\n") {
            if let Some(frame) = frame(text) {
                one.frames.push(frame);
                one.cites.push(row.cite);
            } else {
                words(view, text, &mut one);
                if let Some(exception) = exception(text) {
                    one.exception = exception;
                    one.cites.push(row.cite);
                }
            }
        }
    }
    one.cites.dedup();
    one
}

/// Text that marks a frame of a library and not of the service.
const FOREIGN: &[&str] = &[
    "site-packages",
    "dist-packages",
    "/lib/python",
    "node_modules",
    "node:internal",
    "/usr/lib",
    "/usr/local/lib",
    "at java.",
    "at javax.",
    "at jdk.",
    "at sun.",
    "at org.springframework.",
    "at System.",
    "at Microsoft.",
    "/rustc/",
    "/.cargo/",
    "<frozen",
    "/go/src/",
];

/// Reads a frame of the service's own code in the forms of the usual languages.
fn frame(text: &str) -> Option<Frame> {
    let text = text.trim();
    if FOREIGN.iter().any(|mark| text.contains(mark)) {
        return None;
    }
    quoted_frame(text).or_else(|| colon_frame(text))
}

/// `File "a/b.py", line 12, in name`
fn quoted_frame(text: &str) -> Option<Frame> {
    let rest = text.strip_prefix("File ")?;
    let rest = rest.trim_start_matches(['"', '\'']);
    let (path, rest) = rest.split_once(['"', '\''])?;
    let number = rest.split_once("line ").map(|(_, r)| digits(r))?;
    let function = rest.split_once(" in ").map(|(_, f)| f.trim().to_owned());
    Some(Frame {
        file: base(path).to_owned(),
        line: number.parse().ok(),
        function: function.filter(|f| !f.starts_with('<')),
    })
}

/// `at pkg.Class.method(File.java:12)`, `at name (path/file.js:12:5)`, `path/file.go:12`
fn colon_frame(text: &str) -> Option<Frame> {
    let at = text.strip_prefix("at ");
    let place = match (at, text.rfind('(')) {
        (Some(_), Some(open)) => text.get(open.saturating_add(1)..)?,
        (Some(rest), None) => rest,
        (None, _) => text.split_whitespace().next()?,
    };
    let (path, rest) = place.split_once(':')?;
    let (stem, extension) = base(path).rsplit_once('.')?;
    let code = !stem.is_empty()
        && extension.len() <= 5
        && extension.bytes().all(|b| b.is_ascii_alphabetic());
    let number = digits(rest);
    if !code || number.is_empty() {
        return None;
    }
    let function = at.and_then(|rest| {
        let name = rest.split([' ', '(']).next()?;
        Some(name.rsplit('.').next()?.to_owned())
    });
    Some(Frame {
        file: base(path).to_owned(),
        line: number.parse().ok(),
        function: function.filter(|f| !f.is_empty() && !f.contains(':')),
    })
}

fn digits(text: &str) -> &str {
    let end = text.bytes().take_while(u8::is_ascii_digit).count();
    text.get(..end).unwrap_or("")
}

/// The last part of a path.
pub(super) fn base(path: &str) -> &str {
    path.rsplit(['/', '\\']).next().unwrap_or(path)
}

/// The type of an exception: a capitalised word that ends like one, or a dotted name of such.
fn exception(text: &str) -> Option<String> {
    let ends = [
        "Error",
        "Exception",
        "Fault",
        "Failure",
        "Interrupt",
        "Timeout",
    ];
    let mut words = text.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_' || c == '.'));
    words
        .find(|word| {
            let name = word.rsplit('.').next().unwrap_or(word);
            name.len() > 6
                && name.starts_with(|c: char| c.is_ascii_uppercase())
                && ends.iter().any(|end| name.ends_with(end))
        })
        .map(|word| word.rsplit('.').next().unwrap_or(word).to_owned())
}

fn words(view: &View<'_>, text: &str, one: &mut Signature<'_>) {
    for name in quoted(text) {
        one.names.insert(name);
    }
    for word in
        text.split(|c: char| c.is_whitespace() || matches!(c, ',' | ';' | '"' | '\'' | '(' | ')'))
    {
        let value = word.rsplit('=').next().unwrap_or(word);
        if value.len() > 1 && value.starts_with('/') {
            let plain = value.split(['?', '#']).next().unwrap_or(value);
            one.routes
                .insert(plain.trim_end_matches([':', '.']).to_owned());
        }
    }
    for ident in identifiers(text).filter(|i| is_telling(i)) {
        if one.idents.len() < 64 {
            one.idents.insert(ident.to_owned());
        }
    }
    for service in view.inventory.iter().filter(|s| *s != one.service) {
        if identifiers(text).any(|w| w == service) || text.contains(&format!("{service}:")) {
            one.peers.insert(service.clone());
        }
    }
    one.resources.extend(resource(text));
}

/// Runs of letters, digits, `_` and `-`.
fn identifiers(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_' || c == '-'))
        .filter(|w| !w.is_empty())
}

/// True for words that look like names of code and not like prose.
pub(super) fn is_telling(word: &str) -> bool {
    let inner_capital = word
        .chars()
        .zip(word.chars().skip(1))
        .any(|(a, b)| a.is_ascii_lowercase() && b.is_ascii_uppercase());
    let has_letter = word.bytes().any(|b| b.is_ascii_alphabetic());
    word.len() >= 4 && has_letter && (word.contains('_') || inner_capital)
}

/// Short single words in quotes.
fn quoted(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    for quote in ['\'', '"', '`'] {
        for (i, part) in text.split(quote).enumerate() {
            let simple = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
            let word = part.len() >= 2 && part.len() <= 64 && part.chars().all(simple);
            if i % 2 == 1 && word && part.bytes().any(|b| b.is_ascii_alphabetic()) {
                found.push(part.to_owned());
            }
        }
    }
    found
}

/// The resource that a message says is used up. Words of operating systems and of the field only.
fn resource(text: &str) -> Option<ResourceKind> {
    let text = text.to_ascii_lowercase();
    let has = |words: &[&str]| words.iter().any(|w| text.contains(w));
    if has(&[
        "no space left",
        "enospc",
        "disk full",
        "file too large",
        "efbig",
        "disk quota",
    ]) {
        return Some(ResourceKind::Disk);
    }
    if has(&[
        "out of memory",
        "memoryerror",
        "outofmemory",
        "oomkilled",
        "cannot allocate memory",
    ]) {
        return Some(ResourceKind::Memory);
    }
    if has(&["too many open files", "emfile"]) {
        return Some(ResourceKind::Descriptors);
    }
    let pool = has(&["pool", "too many connections", "connection slots"]);
    let out = has(&[
        "exhaust",
        "timeout",
        "timed out",
        "no free",
        "too many",
        "remaining",
        "wait",
    ]);
    (pool && out).then_some(ResourceKind::Pool)
}

#[cfg(test)]
mod tests {
    use super::{Frame, exception, frame, is_telling, quoted, resource};
    use crate::diagnosis::kinds::ResourceKind;

    fn found(text: &str) -> Option<(String, Option<u32>, Option<String>)> {
        frame(text).map(
            |Frame {
                 file,
                 line,
                 function,
             }| (file, line, function),
        )
    }

    #[test]
    fn frames_of_several_languages_are_read() {
        let some =
            |f: &str, l: u32, n: Option<&str>| Some((f.to_owned(), Some(l), n.map(str::to_owned)));
        assert_eq!(
            found("  File \"/srv/a/shop.py\", line 12, in price"),
            some("shop.py", 12, Some("price"))
        );
        assert_eq!(
            found("\tat com.acme.Till.price(Till.java:31)"),
            some("Till.java", 31, Some("price"))
        );
        assert_eq!(
            found("    at price (/srv/till/price.js:4:17)"),
            some("price.js", 4, Some("price"))
        );
        assert_eq!(
            found("\t/srv/till/price.go:88 +0x1d"),
            some("price.go", 88, None)
        );
        assert_eq!(
            found("  File \"/usr/lib/python3/http/server.py\", line 3, in run"),
            None
        );
        assert_eq!(found("2026-01-31T08:00:00Z ERROR x"), None);
    }

    #[test]
    fn exceptions_and_names_are_read() {
        assert_eq!(exception("KeyError: 'zone'").as_deref(), Some("KeyError"));
        assert_eq!(
            exception("java.lang.IllegalStateException: x").as_deref(),
            Some("IllegalStateException")
        );
        assert_eq!(exception("ERROR no such thing"), None);
        assert_eq!(quoted("KeyError: 'zone' for \"a b\""), ["zone"]);
        assert!(is_telling("tax_rate") && is_telling("taxRate") && !is_telling("failed"));
    }

    #[test]
    fn messages_about_resources_are_understood() {
        assert_eq!(
            resource("[Errno 28] No space left on device"),
            Some(ResourceKind::Disk)
        );
        assert_eq!(
            resource("connection pool exhausted"),
            Some(ResourceKind::Pool)
        );
        assert_eq!(resource("pool ready"), None);
    }
}
