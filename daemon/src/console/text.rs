//! Hostile text: the one function through which outside text reaches a page, a terminal or a log.
//!
//! Alerts, labels, log lines, model output and runbooks are written by anybody. Here each code
//! point that cannot be seen, or that moves others about, becomes a visible mark (console 7.1,
//! guard 4.6). The pages get it without asking: [`Html`] is the escaper of every template, so a
//! value cannot reach a page around it.

use std::borrow::Cow;
use std::fmt::{self, Write};

use askama::filters::{Escaper, Safe};
use unicode_general_category::{GeneralCategory, get_general_category};

/// Makes every hidden code point of one inline value visible.
///
/// ```text
/// "a\u{202e}b" becomes `a\u{202e}b`, a line break becomes `\u{a}`
/// ```
#[must_use]
pub fn show(text: &str) -> Cow<'_, str> {
    marked(text, hidden)
}

/// As [`show`], for a block: line breaks and tabs stay.
#[must_use]
pub fn show_block(text: &str) -> Cow<'_, str> {
    marked(text, |c| !matches!(c, '\n' | '\t') && hidden(c))
}

/// As [`show_block`], for bytes: what is not UTF-8 is marked byte by byte, as in `\x9b`.
#[must_use]
pub fn show_bytes(bytes: &[u8]) -> String {
    let mut out = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        out.push_str(&show_block(chunk.valid()));
        for byte in chunk.invalid() {
            // Writing to a string cannot fail.
            let _ = write!(out, "\\x{byte:02x}");
        }
    }
    out
}

/// The first 200 characters of a text for a list (console 7.3), with a sign where it was cut.
#[must_use]
pub fn short(text: &str) -> Cow<'_, str> {
    match text.char_indices().nth(200) {
        Some((end, _)) => Cow::Owned(format!("{}…", text.get(..end).unwrap_or(""))),
        None => Cow::Borrowed(text),
    }
}

/// A text of several lines for a template: escaped as by [`Html`], but line breaks and tabs stay.
#[must_use]
pub fn block(text: &str) -> Safe<String> {
    let mut out = String::with_capacity(text.len() + 16);
    for c in show_block(text).chars() {
        match entity(c) {
            Some(entity) => out.push_str(entity),
            None => out.push(c),
        }
    }
    Safe(out)
}

/// The escaper of the console's templates: [`show`], then HTML escaping of text and attributes.
#[derive(Debug, Clone, Copy, Default)]
pub struct Html;

impl Escaper for Html {
    fn write_escaped_str<W: Write>(&self, mut dest: W, string: &str) -> fmt::Result {
        let mut plain_from = 0;
        for (at, c) in string.char_indices() {
            let entity = entity(c);
            if entity.is_none() && !hidden(c) {
                continue;
            }
            dest.write_str(string.get(plain_from..at).unwrap_or(""))?;
            match entity {
                Some(entity) => dest.write_str(entity)?,
                None => write!(dest, "\\u{{{:x}}}", u32::from(c))?,
            }
            plain_from = at + c.len_utf8();
        }
        dest.write_str(string.get(plain_from..).unwrap_or(""))
    }
}

const fn entity(c: char) -> Option<&'static str> {
    match c {
        '<' => Some("&lt;"),
        '>' => Some("&gt;"),
        '&' => Some("&amp;"),
        '"' => Some("&quot;"),
        '\'' => Some("&#39;"),
        _ => None,
    }
}

fn marked(text: &str, is_hidden: impl Fn(char) -> bool) -> Cow<'_, str> {
    let Some(first) = text.find(&is_hidden) else {
        return Cow::Borrowed(text);
    };
    let (plain, rest) = text.split_at(first);
    let mut out = String::with_capacity(text.len() + 16);
    out.push_str(plain);
    for c in rest.chars() {
        if is_hidden(c) {
            // Writing to a string cannot fail.
            let _ = write!(out, "\\u{{{:x}}}", u32::from(c));
        } else {
            out.push(c);
        }
    }
    Cow::Owned(out)
}

/// Control, format, private, unassigned, line and paragraph separators, and default-ignorables.
fn hidden(c: char) -> bool {
    if c.is_ascii() {
        return c.is_ascii_control();
    }
    matches!(
        get_general_category(c),
        GeneralCategory::Control
            | GeneralCategory::Format
            | GeneralCategory::PrivateUse
            | GeneralCategory::Unassigned
            | GeneralCategory::Surrogate
            | GeneralCategory::LineSeparator
            | GeneralCategory::ParagraphSeparator
    ) || default_ignorable(c)
}

/// Default_Ignorable_Code_Point of Unicode, as far as its category does not already say so.
const fn default_ignorable(c: char) -> bool {
    matches!(c,
        '\u{34f}' | '\u{115f}'..='\u{1160}' | '\u{17b4}'..='\u{17b5}' | '\u{180b}'..='\u{180f}'
        | '\u{2065}' | '\u{3164}' | '\u{fe00}'..='\u{fe0f}' | '\u{ffa0}' | '\u{fff0}'..='\u{fff8}'
        | '\u{e0000}'..='\u{e0fff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn html(text: &str) -> String {
        let mut out = String::new();
        Html.write_escaped_str(&mut out, text).unwrap();
        out
    }

    #[test]
    fn ordinary_text_of_any_script_is_left_alone() {
        for text in [
            "checkout",
            "Überlauf, 3 × 4 €",
            "日本語",
            "שלום",
            "हिन्दी",
            "🔥",
        ] {
            assert_eq!(show(text), text);
            assert!(matches!(show(text), Cow::Borrowed(_)));
        }
    }

    #[test]
    fn what_cannot_be_seen_becomes_a_mark() {
        for (text, shown) in [
            ("a\u{202e}b", r"a\u{202e}b"),
            ("\u{200b}", r"\u{200b}"),
            ("\u{1b}[31m", r"\u{1b}[31m"),
            ("\0", r"\u{0}"),
            ("\u{9b}", r"\u{9b}"),
            ("\u{e000}", r"\u{e000}"),
            ("\u{2028}", r"\u{2028}"),
            ("\u{fe0f}", r"\u{fe0f}"),
            ("\u{e0041}", r"\u{e0041}"),
            ("\u{378}", r"\u{378}"),
            ("a\nb\tc", r"a\u{a}b\u{9}c"),
        ] {
            assert_eq!(show(text), shown);
            assert_eq!(html(text), shown);
        }
    }

    #[test]
    fn a_block_keeps_line_breaks_and_tabs_only() {
        assert_eq!(show_block("a\n\tb\r"), "a\n\tb\\u{d}");
        assert_eq!(block("<\n&\u{200b}").0, "&lt;\n&amp;\\u{200b}");
    }

    #[test]
    fn bytes_that_are_not_text_are_marked_one_by_one() {
        assert_eq!(show_bytes(b"ok\x9b\xff\n"), "ok\\x9b\\xff\n");
    }

    #[test]
    fn markup_is_escaped_in_text_and_in_attributes() {
        assert_eq!(html("<script>\"'&"), "&lt;script&gt;&quot;&#39;&amp;");
    }

    #[test]
    fn showing_twice_changes_nothing_more() {
        let once = show("x\u{202e}\u{1b}\n").into_owned();
        assert_eq!(show(&once), once);
    }

    #[test]
    fn a_list_entry_is_cut_at_200_characters_and_says_so() {
        assert_eq!(short("abc"), "abc");
        let cut = short(&"ä".repeat(300)).into_owned();
        assert_eq!(cut.chars().count(), 201);
        assert!(cut.ends_with('…'));
    }
}
