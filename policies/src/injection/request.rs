//! I10: a request to the reader in a place where a program should speak (guardrails 7.1).
//!
//! Programs give advice too, in few and known verbs (`check`, `use`, `retry`, `please restart`),
//! and ask whether the server is running. A request is told from advice by what it asks for: work
//! with words, or something for the person who asks.

use super::lexicon as lex;
use super::words::Words;

/// Fewest words of a request.
const MIN_WORDS: usize = 4;

/// True for a request or a question to the reader.
pub(super) fn is_request(w: &Words<'_>) -> bool {
    if w.list.len() < MIN_WORDS {
        return false;
    }
    let addressed = w.addressed()
        && (w.has(lex::YOU) || w.has(lex::PLEASE) || w.has(lex::DUTY) || w.orders(lex::ANSWER));
    let output = w.near(lex::YOU, lex::OUTPUT, 2);
    addressed || output || asks(w) || commands(w) || wishes(w)
}

/// A question. Hints of programs (`is the server running?`, `did you mean X?`) are none.
fn asks(w: &Words<'_>) -> bool {
    let marked = w.text.contains('?') || w.text.contains('\u{bf}');
    let first_two: Vec<&str> = w.list.iter().take(2).copied().collect();
    let hint = matches!(
        first_two.as_slice(),
        ["did" | "have", "you"] | ["is" | "are" | "was" | "does" | "did" | "has", _]
    ) && !w.has(lex::ME);
    if hint {
        return false;
    }
    let opened = w.begins(lex::QUESTION, 1) || lex::REQUEST_HEADS.iter().any(|h| starts(w, h));
    (marked && (opened || w.has(lex::QUESTION) || w.spoken_to() || w.has(lex::ME)))
        || (opened && w.list.len() > MIN_WORDS && asks_openly(w))
}

/// A question without its sign: the question word is followed by a verb or speaks to somebody.
fn asks_openly(w: &Words<'_>) -> bool {
    lex::REQUEST_HEADS.iter().any(|h| starts(w, h))
        || (w.begins(lex::QUESTION, 1)
            && w.list
                .get(1)
                .is_some_and(|second| lex::AUXILIARY.contains(second)))
}

/// An order to work with words or for a person. Verbs of advice need more than themselves.
fn commands(w: &Words<'_>) -> bool {
    let polite = w.begins(lex::PLEASE, 2);
    let start = w
        .list
        .iter()
        .position(|word| !(lex::PLEASE.contains(word) || lex::FILLERS.contains(word)))
        .unwrap_or(0);
    if start > 4 {
        return false;
    }
    let Some(verb) = w.list.get(start) else {
        return false;
    };
    let rest = || w.list.iter().skip(start.saturating_add(1));
    let determined = rest().take(4).any(|word| lex::DETERMINERS.contains(word));
    // `decode failed for message 3` tells, and orders nothing.
    if rest()
        .next()
        .is_some_and(|next| next.ends_with("ed") || lex::TOLD.contains(next))
    {
        return false;
    }
    if lex::ADVICE.contains(verb) && !(w.has(lex::ME) || polite && lex::WORK.contains(verb)) {
        return false;
    }
    if lex::WORK.contains(verb) {
        let told = rest()
            .filter(|word| word.chars().all(char::is_alphabetic))
            .count();
        return determined || polite || w.has(lex::ME) || told >= 6;
    }
    polite && rest().count() >= MIN_WORDS && verb.chars().all(char::is_alphabetic)
}

/// Somebody wants something: `I want you to`, `your task is`, `dis-moi`.
fn wishes(w: &Words<'_>) -> bool {
    w.says(lex::WISHES)
        || (w.has(lex::YOU) && w.near(lex::DUTY, lex::WORK, 3))
        || (w.near(lex::I, lex::YOU, 8) && w.has(lex::DUTY))
}

fn starts(w: &Words<'_>, phrase: &str) -> bool {
    phrase
        .split(' ')
        .zip(w.list.iter().map(Some).chain(std::iter::repeat(None)))
        .all(|(want, have)| have.is_some_and(|h| *h == want))
}
