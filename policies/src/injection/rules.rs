//! The rules I1 to I10: each needs two features in one sentence.

use std::sync::LazyLock;

use aho_corasick::{AhoCorasick, AhoCorasickKind};

use super::{Mode, lexicon as lex, split};
use crate::redaction::decoded_runs;
use crate::spotlight::is_invisible;

/// Pieces of text without which no rule can hit.
const STEMS: &[&str] = &[
    "ignor",
    "disreg",
    "forget",
    "overrid",
    "bypass",
    "discard",
    "neglect",
    "replace",
    "vergiss",
    "missachte",
    "oubli",
    "olvid",
    "dimentic",
    "esque",
    "desconsid",
    "act as",
    "pretend",
    "you are now",
    "from now on",
    "roleplay",
    "role-play",
    " mode",
    "approv",
    "authori",
    "cleared",
    "signed",
    "sanction",
    "genehmigt",
    "approuv",
    "aprob",
    "assistant",
    "ai",
    "llm",
    "chatbot",
    "gpt",
    "copilot",
    "claude",
    "gemini",
    "sentinel",
    "ki",
    "ia",
    "agent",
    "language model",
    "you",
    "please",
    "do not",
    "don't",
    "never",
    "without",
    "root cause",
    "confidence",
    "verdict",
    "diagnosis",
    "hypothesis",
    "conclusion",
    "benign",
    "resolved",
    "postmortem",
    "rca",
    "summary",
    "false positive",
    "false alarm",
    "no action",
    "final answer",
    "not investigate",
    "decode",
    "base64",
    "![",
    "### ",
    "secret",
    "credential",
    "password",
    "token",
    "environment",
    "conversation",
    "prompt",
    "instruction",
    "sre bot",
];

static FILTER: LazyLock<Option<AhoCorasick>> = LazyLock::new(|| {
    AhoCorasick::builder()
        .ascii_case_insensitive(true)
        .kind(Some(AhoCorasickKind::DFA))
        .build(STEMS)
        .ok()
});

/// False when no rule can hit: most lines end here.
pub(super) fn worth_judging(text: &str) -> bool {
    if !text.is_ascii() {
        return true;
    }
    // Separators, digits and spaced letters can hide a word from the plain search.
    let spaced = text.as_bytes().windows(8).any(|w| {
        matches!(
            w,
            [
                _,
                b' ' | b'.' | b'-' | b'_',
                _,
                b' ' | b'.' | b'-' | b'_',
                _,
                b' ' | b'.' | b'-' | b'_',
                _,
                b' ' | b'.' | b'-' | b'_'
            ]
        )
    });
    spaced
        || FILTER.as_ref().is_none_or(|f| f.is_match(text))
        || FILTER.as_ref().is_none_or(|f| f.is_match(&unleet(text)))
}

/// Class of the first rule that `sentence` trips, if any.
pub(super) fn judge(sentence: &str, mode: Mode) -> Option<&'static str> {
    let folded = fold(sentence);
    let words = Words::new(&folded);
    if let Some(class) = first_rule(&words, mode) {
        return Some(class);
    }
    let plain = unleet(&folded);
    if plain != folded
        && let Some(class) = first_rule(&Words::new(&plain), mode)
    {
        return Some(class);
    }
    let joined = join_spaced(&folded)?;
    first_rule(&Words::new(&joined), mode)
}

/// Judges words of several segments put together: only rules that name two features.
pub(super) fn judge_split(sentence: &str, mode: Mode) -> Option<&'static str> {
    let folded = fold(sentence);
    first_rule(&Words::new(&folded), mode)
}

/// True when a sentence of `line` trips a rule.
pub(super) fn judge_line(line: &str, mode: Mode) -> bool {
    split::units(line, mode)
        .into_iter()
        .any(|(start, end)| judge(line.get(start..end).unwrap_or(""), mode).is_some())
}

/// One feature of I4, I5 or I8 alone: nothing to remove, but worth counting (guardrails 7.7).
pub(super) fn is_weak(line: &str) -> bool {
    if !worth_judging(line) {
        return false;
    }
    let folded = fold(line);
    let words = Words::new(&folded);
    let claim = words.has(lex::APPROVED);
    let order = words.has(lex::ORDERS) && (words.has(lex::URGE) || words.addressed());
    let verdict =
        words.has_pair(lex::VERDICT_PAIRS) || (words.has(lex::VERDICT) && words.has(lex::ANSWER));
    (claim && words.has(lex::ORDERS)) || order || verdict
}

/// Runs of base64 or hexadecimal digits whose content trips a rule.
pub(super) fn encoded(text: &str, mode: Mode) -> Vec<(usize, usize, &'static str)> {
    let mut cuts = Vec::new();
    for (start, end, content) in decoded_runs(text) {
        let hit = split::units(&content, Mode::Prose)
            .into_iter()
            .find_map(|(a, b)| judge(content.get(a..b).unwrap_or(""), mode));
        if let Some(class) = hit {
            cuts.push((start, end, class));
        }
    }
    cuts
}

/// Lower case, no accents on Latin letters, no invisible characters, look-alikes as Latin.
fn fold(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars().filter(|&c| !is_invisible(c)) {
        for c in c.to_lowercase() {
            out.push(match c {
                '\u{ff01}'..='\u{ff5e}' => char::from_u32(u32::from(c) - 0xfee0)
                    .unwrap_or(c)
                    .to_ascii_lowercase(),
                '\u{e0}'..='\u{e5}' | '\u{430}' | '\u{3b1}' => 'a',
                '\u{e8}'..='\u{eb}' | '\u{435}' => 'e',
                '\u{ec}'..='\u{ef}' | '\u{456}' | '\u{3b9}' => 'i',
                '\u{f2}'..='\u{f6}' | '\u{43e}' | '\u{3bf}' => 'o',
                '\u{f9}'..='\u{fc}' => 'u',
                '\u{e7}' | '\u{441}' => 'c',
                '\u{f1}' => 'n',
                '\u{440}' => 'p',
                '\u{443}' => 'y',
                '\u{445}' => 'x',
                '\u{2019}' => '\'',
                other => other,
            });
        }
    }
    out
}

/// Digits and signs that stand for letters, inside words only.
fn unleet(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut previous = ' ';
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        let beside =
            previous.is_ascii_alphabetic() || chars.peek().is_some_and(char::is_ascii_alphabetic);
        out.push(match c {
            '0' if beside => 'o',
            '1' if beside => 'i',
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
fn join_spaced(text: &str) -> Option<String> {
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

/// The words of a sentence.
struct Words<'a> {
    text: &'a str,
    list: Vec<&'a str>,
    /// The words with one blank around each, for phrases.
    padded: String,
}

impl<'a> Words<'a> {
    fn new(text: &'a str) -> Self {
        let list: Vec<&str> = text
            .split(|c: char| !(c.is_alphanumeric() || c == '\''))
            .filter(|w| !w.is_empty())
            .collect();
        let padded = format!(" {} ", list.join(" "));
        Self { text, list, padded }
    }

    fn has(&self, words: &[&str]) -> bool {
        self.list.iter().any(|w| words.contains(w))
    }

    fn has_pair(&self, pairs: &[(&str, &str)]) -> bool {
        self.list
            .windows(2)
            .any(|w| matches!(w, [a, b] if pairs.contains(&(a, b))))
    }

    /// One of `first` followed by one of `second` at most `reach` words later.
    fn near(&self, first: &[&str], second: &[&str], reach: usize) -> bool {
        self.list.iter().enumerate().any(|(i, w)| {
            first.contains(w)
                && self
                    .list
                    .iter()
                    .skip(i + 1)
                    .take(reach)
                    .any(|w| second.contains(w))
        })
    }

    /// One of `verbs` where an order begins: among the first two words, or behind a lead word.
    fn orders(&self, verbs: &[&str]) -> bool {
        self.list.iter().enumerate().any(|(i, w)| {
            verbs.contains(w)
                && (i < 2
                    || self
                        .list
                        .get(i - 1)
                        .is_some_and(|before| lex::LEAD.contains(before)))
        })
    }

    /// One of the phrases, as whole words.
    fn says(&self, phrases: &[&str]) -> bool {
        phrases.iter().any(|phrase| {
            self.padded.match_indices(phrase).any(|(at, _)| {
                let end = at.saturating_add(phrase.len());
                at.checked_sub(1)
                    .and_then(|before| self.padded.as_bytes().get(before))
                    == Some(&b' ')
                    && self.padded.as_bytes().get(end) == Some(&b' ')
            })
        })
    }

    fn addressed(&self) -> bool {
        self.has(lex::ADDRESSEES) || self.has_pair(lex::ADDRESSEE_PAIRS)
    }
}

/// One rule: true when the sentence trips it.
type Rule = fn(&Words<'_>) -> bool;

fn first_rule(words: &Words<'_>, mode: Mode) -> Option<&'static str> {
    if words.list.len() < 3 && !words.text.contains("![") {
        return None;
    }
    let orders_allowed = match mode {
        Mode::Telemetry => false,
        Mode::Prose | Mode::Typed | Mode::Control => true,
    };
    let always: [(&'static str, Rule); 7] = [
        ("I1", role_marker),
        ("I2", overrides),
        ("I3", persona),
        ("I4", authority),
        ("I6", secrecy),
        ("I7", exfiltration),
        ("I9", decode_and_follow),
    ];
    if let Some((class, _)) = always.iter().find(|(_, rule)| rule(words)) {
        return Some(class);
    }
    if mode != Mode::Typed && steering(words) {
        return Some("I8");
    }
    if orders_allowed {
        return None;
    }
    if remediation_order(words) {
        return Some("I5");
    }
    request(words).then_some("I10")
}

/// I1: the head of a turn, with an order behind it.
fn role_marker(w: &Words<'_>) -> bool {
    let text = w.text.trim_start();
    let head = [
        "### system",
        "### instruction",
        "### assistant",
        "### user",
        "[system]",
        "system:",
        "assistant:",
    ]
    .iter()
    .any(|m| text.starts_with(m));
    head && (w.has(&["you", "your", "must", "ignore", "never", "always"])
        || w.addressed()
        || w.says(&["new instructions"]))
}

/// I2: set the instructions aside.
fn overrides(w: &Words<'_>) -> bool {
    if w.near(lex::OVERRIDE, lex::INSTRUCTIONS, 6) && w.orders_or_leads(lex::OVERRIDE) {
        return true;
    }
    w.near(lex::OVERRIDE, lex::WEAK_OBJECTS, 6)
        && w.near(lex::OVERRIDE, lex::QUALIFIERS, 5)
        && w.orders_or_leads(lex::OVERRIDE)
}

impl Words<'_> {
    /// An order, or a verb that something tells the reader to follow (`you can ignore`).
    fn orders_or_leads(&self, verbs: &[&str]) -> bool {
        self.orders(verbs)
            || self.has(&["you", "your", "please", "all", "previous", "prior", "above"])
            || self.addressed()
    }
}

/// I3: another persona or mode.
fn persona(w: &Words<'_>) -> bool {
    let change = w.says(&[
        "you are now",
        "pretend to be",
        "pretend you are",
        "from now on you",
        "you will act as",
        "you must act as",
        "roleplay as",
        "role play as",
        "act as if you",
        "act as an unrestricted",
        "switch to developer mode",
        "enter developer mode",
        "enable developer mode",
    ]);
    let role = w.addressed()
        || w.has(&[
            "admin",
            "administrator",
            "root",
            "unrestricted",
            "mode",
            "operator",
            "restrictions",
            "jailbroken",
            "dan",
            "expert",
            "autonomous",
        ]);
    change && role
}

/// I4: a claimed approval that is to spare a real one.
fn authority(w: &Words<'_>) -> bool {
    let claim = w.has(lex::APPROVED)
        || w.says(&[
            "permission granted",
            "has approved",
            "pre approved",
            "pre authorized",
            "signed off",
        ]);
    let spare = w.says(&[
        "no approval",
        "no further approval",
        "without approval",
        "without further approval",
        "skip approval",
        "skip the approval",
        "no confirmation",
        "without confirmation",
        "without asking",
        "without waiting",
        "no human",
        "approval is not required",
        "approval not required",
        "no need to ask",
        "you may proceed",
        "you can proceed",
        "proceed immediately",
        "proceed without",
        "auto approve",
    ]);
    let demand =
        w.orders(&["bypass", "skip"]) && w.says(&["approval", "human approval", "the approval"]);
    (claim && spare)
        || (demand && (w.addressed() || w.has(&["you", "immediately"])))
        || (spare && w.addressed())
}

/// I5: an order to repair, addressed to the reader.
fn remediation_order(w: &Words<'_>) -> bool {
    if !w.has(lex::ORDERS) {
        return false;
    }
    let addressed = w.addressed()
        && w.list.len() >= 4
        && (w.orders(lex::ORDERS) || w.has(&["must", "should", "please", "you", "need", "needs"]));
    let pushed = w.says(&[
        "you must",
        "you should",
        "you need to",
        "your task",
        "please",
    ]) && w.has(lex::URGE)
        && w.orders(lex::ORDERS);
    let prescribed = w.says(&[
        "required action",
        "recommended remediation",
        "correct remediation",
        "remediation is",
        "remediation is to",
        "only fix is",
        "only fix is to",
        "correct fix is to",
        "to resolve this incident",
        "to fix this incident",
    ]);
    addressed || pushed || prescribed
}

/// I6: keep it from people.
fn secrecy(w: &Words<'_>) -> bool {
    let negated = w.says(&["do not", "don't", "never", "must not", "without"]);
    negated
        && w.near(lex::TELL, lex::AUDIENCE, 4)
        && (w.addressed()
            || w.says(&[
                "you",
                "your",
                "to the user",
                "the user",
                "the operator",
                "any human",
                "to anyone",
                "a human",
                "the human",
                "to humans",
                "on call",
            ]))
}

/// I7: carry data away.
fn exfiltration(w: &Words<'_>) -> bool {
    if w.text.contains("![") && w.text.contains("](http") {
        return w.text.contains('?') || w.text.contains('{');
    }
    let outward = w.text.contains("http://")
        || w.text.contains("https://")
        || w.text.contains("webhook")
        || w.text.contains('@');
    w.orders(lex::SEND)
        && w.has(lex::LOOT)
        && outward
        && w.has(&["your", "all", "please", "you", "these", "any"])
}

/// I8: fix the answer.
fn steering(w: &Words<'_>) -> bool {
    let order = w.orders(lex::ANSWER)
        || (w.has(lex::ANSWER)
            && (w.addressed()
                || w.says(&["you must", "you should", "your answer", "your response"])));
    let object = w.has(lex::VERDICT) || w.has_pair(lex::VERDICT_PAIRS);
    let reader = w.addressed()
        || w.has(&["you", "your", "must", "please", "always", "only"])
        || w.says(&[
            "the incident",
            "this incident",
            "this alert",
            "the alert",
            "as the root cause",
            "root cause as",
            "no further",
        ]);
    order && object && reader
}

/// I9: decode and follow.
fn decode_and_follow(w: &Words<'_>) -> bool {
    w.has(&["decode", "unbase64", "decrypt", "rot13", "deobfuscate"])
        && w.has(&[
            "follow",
            "execute",
            "obey",
            "comply",
            "perform",
            "instructions",
        ])
        && w.orders(&[
            "decode",
            "unbase64",
            "decrypt",
            "deobfuscate",
            "follow",
            "execute",
            "obey",
            "perform",
        ])
}

/// I10: a request to the reader in a slot of telemetry.
fn request(w: &Words<'_>) -> bool {
    w.list.len() >= 4
        && w.addressed()
        && (w.has(&["please", "must", "should", "your", "you"]) || w.orders(lex::ANSWER))
}
