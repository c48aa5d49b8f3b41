//! What a text looks like (V6): without invisible characters, compatibility forms, foreign digits
//! and look-alikes.
//!
//! Order: remove what is not seen (by property), read tag characters as ASCII, NFKC over whole
//! runs, strip marks, digits to ASCII, UTS #39 skeleton to Latin. A run is a row of non-ASCII
//! characters with the ASCII character that a first mark would combine with; each run maps as a
//! whole. ASCII text is never changed.

use std::sync::LazyLock;

use unicode_general_category::{GeneralCategory, get_general_category};
use unicode_normalization::UnicodeNormalization as _;
use unicode_security::confusable_detection::skeleton;

use super::map::View;
use super::token::{CLOSE, OPEN};

/// The views of a text.
pub(super) struct Folded {
    /// Invisible characters removed.
    pub(super) glued: View,
    /// Invisible characters as separators, when there were any inside.
    pub(super) apart: Option<View>,
}

/// `None` when the text looks like what it is.
pub(super) fn fold(text: &str) -> Option<Folded> {
    let mut glued = View::with_capacity(text.len());
    let mut apart = View::with_capacity(0);
    let (mut done, mut at) = (0, 0);
    let (mut changed, mut removed) = (false, false);
    while let Some(start) = next_special(text, at) {
        let end = run_end(text, start);
        at = end;
        let run = text.get(start..end).unwrap_or("");
        if !run.chars().any(is_changed) {
            continue;
        }
        // A mark combines with the ASCII letter before it.
        let from = start - usize::from(start > done && begins_with_mark(run));
        let run = text.get(from..end).unwrap_or("");
        glued.copy(text, done, from);
        apart.copy(text, done, from);
        changed = true;
        done = end;
        removed |= fold_run(run, from, &mut glued, &mut apart);
    }
    if !changed {
        return None;
    }
    glued.copy(text, done, text.len());
    apart.copy(text, done, text.len());
    Some(Folded {
        glued,
        apart: removed.then_some(apart),
    })
}

/// A character that is seen, with the range it stands for.
type Seen = (char, usize, usize);

/// Folds one run into both views; says whether something was removed from it.
///
/// Removed characters separate nothing in the first view and everything in the second.
fn fold_run(run: &str, from: usize, glued: &mut View, apart: &mut View) -> bool {
    let mut seen: Vec<Seen> = Vec::with_capacity(run.len());
    let mut part: Vec<Seen> = Vec::new();
    let mut gap: Option<usize> = None;
    let mut removed = false;
    for (at, c) in run.char_indices() {
        let (start, end) = (from + at, from + at + c.len_utf8());
        if tag(c).is_none() && is_hidden(c) {
            removed = true;
            put(apart, &std::mem::take(&mut part));
            gap.get_or_insert(start);
            continue;
        }
        if let Some(before) = gap.take() {
            apart.put(" ", before, start);
        }
        seen.push((tag(c).unwrap_or(c), start, end));
        part.push((tag(c).unwrap_or(c), start, end));
    }
    put(glued, &seen);
    put(apart, &part);
    if let Some(before) = gap {
        apart.put(" ", before, from + run.len());
    }
    removed
}

/// Appends the folded form. Characters map one by one unless they combine with each other.
fn put(view: &mut View, seen: &[Seen]) {
    let (Some(first), Some(last)) = (seen.first(), seen.last()) else {
        return;
    };
    let whole = plain(&seen.iter().map(|s| s.0).collect::<String>());
    let single = |c: char| plain(c.encode_utf8(&mut [0; 4]));
    let apart: String = seen.iter().map(|s| single(s.0)).collect();
    if apart == whole {
        for &(c, from, to) in seen {
            view.put(&single(c), from, to);
        }
    } else {
        view.put(&whole, first.1, last.2);
    }
}

/// NFKC, no marks, ASCII digits, Latin look-alikes.
fn plain(seen: &str) -> String {
    let mut out = String::with_capacity(seen.len());
    for c in seen.nfkc() {
        if c.is_ascii() || c == OPEN || c == CLOSE {
            out.push(c);
        } else if let Some(digit) = digit(c) {
            out.push(digit);
        } else if !is_mark(c) && !is_hidden(c) {
            let mut letter = [0; 4];
            out.extend(skeleton(c.encode_utf8(&mut letter)).filter(|&c| !is_mark(c)));
        }
    }
    out
}

/// Offset of the next byte that is not plain ASCII text.
fn next_special(text: &str, at: usize) -> Option<usize> {
    let rest = text.as_bytes().get(at..)?;
    rest.iter().position(|&b| is_special(b)).map(|n| at + n)
}

/// End of the run of such bytes.
fn run_end(text: &str, at: usize) -> usize {
    super::scan::run_end(text, at, is_special)
}

/// Bytes of non-ASCII and control characters but tab and line ends.
pub(super) const fn is_special(b: u8) -> bool {
    b >= 0x7f || (b < b' ' && !matches!(b, b'\t' | b'\n' | b'\r'))
}

fn begins_with_mark(run: &str) -> bool {
    run.chars().find(|&c| !is_hidden(c)).is_some_and(|c| {
        is_mark(c) || unicode_normalization::char::canonical_combining_class(c) > 0
    })
}

/// Tag characters repeat ASCII invisibly.
fn tag(c: char) -> Option<char> {
    match u32::from(c) {
        n @ 0xe0020..=0xe007e => char::from_u32(n - 0xe0000),
        _ => None,
    }
}

fn is_mark(c: char) -> bool {
    get_general_category(c) == GeneralCategory::NonspacingMark
}

fn digit(c: char) -> Option<char> {
    if get_general_category(c) != GeneralCategory::DecimalNumber {
        return None;
    }
    // Decimal digits come in rows of ten, and the first of a row has none before it.
    let value = (0..10_u32).find(|&back| {
        let before = u32::from(c).checked_sub(back + 1).and_then(char::from_u32);
        !before.is_some_and(|b| get_general_category(b) == GeneralCategory::DecimalNumber)
    });
    let value = match u32::from(c) {
        // The mathematical digits stand in five rows without a gap.
        n @ 0x1d7ce..=0x1d7ff => (n - 0x1d7ce) % 10,
        _ => value?,
    };
    char::from_digit(value, 10)
}

/// `Default_Ignorable_Code_Point`, `Cf`, and `Cc` but tab and line ends.
pub(crate) fn is_hidden(c: char) -> bool {
    match get_general_category(c) {
        GeneralCategory::Control => !matches!(c, '\t' | '\n' | '\r'),
        GeneralCategory::Format => true,
        _ => is_ignorable(c),
    }
}

/// What `Default_Ignorable_Code_Point` has beside `Cf`: `Other_Default_Ignorable_Code_Point` and
/// `Variation_Selector` of PropList, Unicode 16.
const fn is_ignorable(c: char) -> bool {
    matches!(c,
        '\u{34f}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' | '\u{180b}'..='\u{180f}'
        | '\u{2065}' | '\u{3164}' | '\u{fe00}'..='\u{fe0f}' | '\u{ffa0}' | '\u{fff0}'..='\u{fff8}'
        | '\u{e0000}'..='\u{e0fff}')
}

/// One bit for every character of the basic plane that folding changes.
static CHANGED: LazyLock<Vec<u64>> = LazyLock::new(|| {
    (0..0x10000_u32 / 64)
        .map(|word| {
            (0..64).fold(0, |bits, bit| {
                let changed = char::from_u32(word * 64 + bit).is_some_and(is_changed_slowly);
                bits | (u64::from(changed) << bit)
            })
        })
        .collect()
});

/// True for characters that cannot stay as they are in a folded text.
fn is_changed(c: char) -> bool {
    let n = u32::from(c);
    match CHANGED.get((n / 64) as usize) {
        Some(bits) => bits >> (n % 64) & 1 == 1,
        None => is_changed_slowly(c),
    }
}

fn is_changed_slowly(c: char) -> bool {
    if c == OPEN || c == CLOSE || c == '\u{fffd}' {
        return false;
    }
    if is_hidden(c) || is_mark(c) || digit(c).is_some() {
        return !c.is_ascii_digit();
    }
    // A look-alike matters only where its image holds ASCII: anchors are ASCII.
    let mut letter = [0; 4];
    !c.is_ascii() && plain(c.encode_utf8(&mut letter)).contains(|c: char| c.is_ascii())
}

#[cfg(test)]
mod tests {
    use super::{fold, is_hidden};

    fn glued(text: &str) -> String {
        fold(text).map_or_else(|| text.to_owned(), |f| f.glued.text)
    }

    #[test]
    fn every_default_ignorable_and_format_character_is_removed() {
        for c in [
            '\u{ad}',
            '\u{34f}',
            '\u{61c}',
            '\u{115f}',
            '\u{180e}',
            '\u{200b}',
            '\u{200d}',
            '\u{202e}',
            '\u{2060}',
            '\u{2064}',
            '\u{2065}',
            '\u{2066}',
            '\u{206f}',
            '\u{3164}',
            '\u{fe0f}',
            '\u{feff}',
            '\u{fff9}',
            '\u{1bca0}',
            '\u{1d173}',
            '\u{e0001}',
            '\u{e0100}',
            '\u{7}',
            '\u{7f}',
            '\u{9b}',
        ] {
            assert!(is_hidden(c), "{:x}", u32::from(c));
            assert_eq!(glued(&format!("ab{c}cd")), "abcd", "{:x}", u32::from(c));
        }
        for c in ['\t', '\n', '\r', 'a', '\u{e9}', '\u{4e00}', '\u{fffd}'] {
            assert!(!is_hidden(c), "{:x}", u32::from(c));
        }
    }

    #[test]
    fn look_alikes_compatibility_forms_and_foreign_digits_become_ascii() {
        for (text, ascii) in [
            ("p\u{430}ssw\u{43e}rd", "password"),
            ("\u{ff50}\u{ff41}\u{ff53}\u{ff53}", "pass"),
            ("\u{1d429}\u{1d41a}ss", "pass"),
            ("\u{664}\u{661}\u{967}\u{1d7cf}\u{1d7ff}", "41119"),
            ("a\u{ff20}b\u{2024}c", "a@b.c"),
            ("pa\u{301}sswo\u{308}rd", "password"),
            ("\u{e0070}\u{e0061}ss", "pass"),
            ("\u{fb00}", "ff"),
            ("\u{2460}", "1"),
        ] {
            assert_eq!(glued(text), ascii, "{text}");
        }
    }

    #[test]
    fn text_of_other_scripts_and_brackets_of_tokens_are_no_views() {
        for text in [
            "\u{65e5}\u{672c}\u{8a9e}",
            "\u{ac00}\u{ac01}",
            "\u{2039}x\u{203a}",
            "plain",
            "\u{fffd}",
        ] {
            assert!(fold(text).is_none(), "{text}");
        }
    }

    #[test]
    fn removed_characters_are_also_tried_as_separators() {
        let folded = fold("ab\u{200b}cd\u{1f}e").unwrap();
        assert_eq!(folded.glued.text, "abcde");
        assert_eq!(folded.apart.unwrap().text, "ab cd e");
    }

    #[test]
    fn offsets_lead_back_to_whole_runs() {
        let folded = fold("x p\u{430}ss\u{200b}").unwrap();
        let view = folded.glued;
        assert_eq!(view.text, "x pass");
        assert_eq!(view.source(2, 6), (2, 7));
        assert_eq!(view.source(3, 4), (3, 5));
    }
}
