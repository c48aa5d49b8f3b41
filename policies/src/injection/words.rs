//! A sentence as words: folded to lower-case Latin letters, with disguises undone.

use super::lexicon as lex;
use crate::spotlight::{is_invisible, latin};

/// Lower case, no accents on Latin letters, no invisible characters, look-alikes as Latin.
pub(super) fn fold(text: &str) -> String {
    text.chars()
        .filter(|&c| !is_invisible(c))
        .flat_map(char::to_lowercase)
        .map(latin)
        .collect()
}

/// Digits and signs that stand for letters, inside words only.
pub(super) fn unleet(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut previous = ' ';
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        let beside =
            previous.is_ascii_alphabetic() || chars.peek().is_some_and(char::is_ascii_alphabetic);
        out.push(match c {
            '0' if beside => 'o',
            '1' | '!' if beside => 'i',
            '3' if beside => 'e',
            '4' | '@' if beside => 'a',
            '5' | '$' if beside => 's',
            '7' if beside => 't',
            other => other,
        });
        previous = c;
    }
    out
}

/// `i g n o r e` becomes `ignore`; two separators or a wider one end a word.
pub(super) fn join_spaced(text: &str) -> Option<String> {
    let letters: Vec<char> = text.chars().collect();
    let mut out = String::with_capacity(text.len());
    let (mut at, mut joined) = (0, false);
    while let Some(&c) = letters.get(at) {
        let separator = letters.get(at + 1).copied();
        let spaced = |n: usize| {
            letters.get(at + 2 * n).is_some_and(|c| c.is_alphanumeric())
                && letters.get(at + 2 * n + 1).copied() == separator
        };
        if c.is_alphanumeric()
            && separator.is_some_and(|s| matches!(s, ' ' | '.' | '-' | '_' | '*'))
            && (0..3).all(spaced)
        {
            out.push(c);
            while letters.get(at + 1).copied() == separator
                && letters.get(at + 2).is_some_and(|c| c.is_alphanumeric())
                && !letters.get(at + 3).is_some_and(|c| c.is_alphanumeric())
            {
                at += 2;
                out.extend(letters.get(at));
            }
            joined = true;
        } else {
            out.push(c);
        }
        at += 1;
    }
    joined.then_some(out)
}

/// The words of a folded sentence.
pub(super) struct Words<'a> {
    pub(super) text: &'a str,
    pub(super) list: Vec<&'a str>,
    /// The words with one blank around each, for phrases.
    padded: String,
}

impl<'a> Words<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        let list: Vec<&str> = text
            .split(|c: char| !(c.is_alphanumeric() || c == '\''))
            .map(|w| w.trim_matches('\''))
            .filter(|w| !w.is_empty())
            .collect();
        let padded = format!(" {} ", list.join(" "));
        Self { text, list, padded }
    }

    pub(super) fn has(&self, words: &[&str]) -> bool {
        self.list.iter().any(|w| words.contains(w))
    }

    /// One of `words` among the first `n`.
    pub(super) fn begins(&self, words: &[&str], n: usize) -> bool {
        self.list.iter().take(n).any(|w| words.contains(w))
    }

    pub(super) fn has_pair(&self, pairs: &[(&str, &str)]) -> bool {
        self.list
            .windows(2)
            .any(|w| matches!(w, [a, b] if pairs.contains(&(a, b))))
    }

    /// One of `first` followed by one of `second` at most `reach` words later.
    pub(super) fn near(&self, first: &[&str], second: &[&str], reach: usize) -> bool {
        self.list.iter().enumerate().any(|(i, w)| {
            first.contains(w)
                && self
                    .list
                    .iter()
                    .skip(i.saturating_add(1))
                    .take(reach)
                    .any(|w| second.contains(w))
        })
    }

    /// The same in either order.
    pub(super) fn around(&self, first: &[&str], second: &[&str], reach: usize) -> bool {
        self.near(first, second, reach) || self.near(second, first, reach)
    }

    /// One of `verbs` where an order begins: among the first two words, or behind a lead word.
    pub(super) fn orders(&self, verbs: &[&str]) -> bool {
        self.list.iter().enumerate().any(|(i, w)| {
            verbs.contains(w)
                && (i < 2
                    || self
                        .list
                        .get(i.saturating_sub(1))
                        .is_some_and(|before| lex::LEAD.contains(before)))
        })
    }

    /// One of the phrases, as whole words.
    pub(super) fn says(&self, phrases: &[&str]) -> bool {
        phrases.iter().any(|phrase| {
            memchr::memmem::find_iter(self.padded.as_bytes(), phrase.as_bytes()).any(|at| {
                let end = at.saturating_add(phrase.len());
                at.checked_sub(1)
                    .and_then(|before| self.padded.as_bytes().get(before))
                    == Some(&b' ')
                    && self.padded.as_bytes().get(end) == Some(&b' ')
            })
        })
    }

    /// The reader is named.
    pub(super) fn addressed(&self) -> bool {
        self.has(lex::ADDRESSEES) || self.has_pair(lex::ADDRESSEE_PAIRS)
    }

    /// The reader is named or spoken to.
    pub(super) fn spoken_to(&self) -> bool {
        self.addressed() || self.has(lex::YOU)
    }
}
