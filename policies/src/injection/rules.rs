//! The rules I1 to I10: each needs two features in one sentence.

use std::sync::LazyLock;

use aho_corasick::{AhoCorasick, AhoCorasickKind};

use super::words::{Words, fold, join_spaced, unleet};
use super::{Mode, lexicon as lex, phrases as lex_phrases, request, split};
use crate::redaction::decoded_runs;

static FILTER: LazyLock<Option<AhoCorasick>> = LazyLock::new(|| {
    AhoCorasick::builder()
        .ascii_case_insensitive(true)
        .kind(Some(AhoCorasickKind::DFA))
        .build(lex_phrases::STEMS)
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
    let words = Words::new(&folded);
    // Any two lines beside each other can read as a request.
    first_rule(&words, mode).filter(|class| *class != "I10" || words.addressed())
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
    request::is_request(words).then_some("I10")
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
    let note = w.says(&[
        "system note",
        "note to self",
        "nota del sistema",
        "nota di sistema",
        "nota do sistema",
        "note systeme",
        "systemhinweis",
        "important message",
    ]);
    if note && (w.has(lex::DUTY) || w.has(lex::YOU) || w.orders(lex::ANSWER)) {
        return true;
    }
    head && (w.has(&["you", "your", "must", "ignore", "never", "always"])
        || w.addressed()
        || w.says(&["new instructions"]))
}

/// I2: set the instructions aside.
fn overrides(w: &Words<'_>) -> bool {
    let follow = &[
        "follow", "obey", "befolge", "suis", "suivez", "sigas", "seguire", "siga",
    ];
    let stop = w.says(&[
        "do not follow",
        "don't follow",
        "stop following",
        "do not obey",
        "don't obey",
        "no longer follow",
        "pay no attention to",
        "befolge nicht",
        "ne suis pas",
        "ne suivez pas",
        "no sigas",
        "non seguire",
        "nao siga",
    ]);
    if stop
        && (w.near(follow, lex::INSTRUCTIONS, 6) || w.around(lex::QUALIFIERS, lex::WEAK_OBJECTS, 4))
    {
        return true;
    }
    if !orders_or_leads(w, lex::OVERRIDE) {
        return false;
    }
    if w.near(lex::OVERRIDE, lex::INSTRUCTIONS, 8) {
        return true;
    }
    // German and the like put the verb last.
    if w.near(lex::INSTRUCTIONS, lex::OVERRIDE, 4)
        && w.around(lex::QUALIFIERS, lex::INSTRUCTIONS, 4)
    {
        return true;
    }
    if w.orders(lex::OVERRIDE) && sets_aside_what_was_said(w) {
        return true;
    }
    let weak = w.near(lex::OVERRIDE, lex::WEAK_OBJECTS, 6);
    (weak && w.near(lex::OVERRIDE, lex::QUALIFIERS, 6))
        || (w.orders(lex::OVERRIDE)
            && w.says(&[
                "the above",
                "all above",
                "everything above",
                "everything before",
                "everything you know",
                "all of that",
                "what i said",
                "all previous",
                "all prior",
            ]))
}

/// `ignore the above`, with nothing behind it that the word could belong to.
fn sets_aside_what_was_said(w: &Words<'_>) -> bool {
    w.list.iter().enumerate().any(|(i, word)| {
        lex::OVERRIDE.contains(word)
            && w.list
                .iter()
                .enumerate()
                .skip(i.saturating_add(1))
                .take(3)
                .any(|(j, said)| {
                    let next = w.list.get(j.saturating_add(1));
                    lex::BEFORE.contains(said) && next.is_none_or(|n| lex::AND.contains(n))
                })
    })
}

/// An order, or a verb that something tells the reader to follow (`you can ignore`).
fn orders_or_leads(w: &Words<'_>, verbs: &[&str]) -> bool {
    w.orders(verbs)
        || w.spoken_to()
        || w.has(lex::PLEASE)
        || w.has(&["all", "previous", "prior", "above", "everything"])
}

/// I3: another persona or mode.
fn persona(w: &Words<'_>) -> bool {
    if w.says(lex_phrases::MODE) {
        return true;
    }
    let change = w.says(lex_phrases::PERSONA);
    let role = w.addressed() || w.has(lex::ROLE);
    (change && role) || (w.says(lex_phrases::STRONG_PERSONA) && w.list.len() >= 5)
}

/// I4: a claimed approval that is to spare a real one.
fn authority(w: &Words<'_>) -> bool {
    let claim = w.has(lex::APPROVED)
        || w.says(&[
            "permission granted",
            "granted permission",
            "has granted",
            "has approved",
            "pre approved",
            "pre authorized",
            "signed off",
        ]);
    let spare = w.says(&[
        "skip all",
        "skip safety checks",
        "no confirmation",
        "without verification",
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
    let negated = w.says(&[
        "do not", "don't", "never", "must not", "without", "nicht", "niemals", "ne", "jamais",
        "no", "nunca", "non", "mai", "nao",
    ]);
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
                "benutzer",
                "utilisateur",
                "usuario",
                "utente",
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
    if gives_away(w) {
        return true;
    }
    let mailed = w
        .text
        .split_once('@')
        .is_some_and(|(_, host)| host.contains('.'));
    if mailed && w.orders(lex::SEND) && w.has(lex::LOOT) {
        return true;
    }
    w.orders(lex::SEND)
        && w.has(lex::LOOT)
        && outward
        && w.has(&["your", "all", "please", "you", "these", "any"])
}

/// A secret or the prompt is to be told: a verb of giving, what must be kept, and a person.
fn gives_away(w: &Words<'_>) -> bool {
    let kept = w.around(lex::REVEAL, lex::SECRETS, 8);
    let person = w.near(lex::REVEAL, lex::ME, 3)
        || w.around(lex::YOU, lex::SECRETS, 4)
        || (w.spoken_to() && w.orders(lex::REVEAL))
        || w.says(&[
            "system prompt",
            "initial prompt",
            "secret key",
            "above text",
        ]);
    // How a password is given in ordinary texts.
    let plain = w.says(&[
        "your password to",
        "access key",
        "api key",
        "ssh key",
        "status code",
    ]);
    kept && person && !plain
}

/// I8: fix the answer.
fn steering(w: &Words<'_>) -> bool {
    if fixes_words(w) {
        return true;
    }
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

/// The words of the answer are given: `reply only with`, `end every answer with`.
fn fixes_words(w: &Words<'_>) -> bool {
    let form = w.says(&[
        "respond only",
        "reply only",
        "answer only",
        "only respond",
        "only reply",
        "only answer",
        "respond with",
        "reply with",
        "answer with",
        "start your",
        "end your",
        "begin your",
        "every response",
        "every answer",
        "your response",
        "your answer",
        "your reply",
        "your output",
        "your next message",
        "antworte nur",
        "antworte mit",
        "deine antwort",
        "reponds uniquement",
        "reponds par",
        "ta reponse",
        "votre reponse",
        "responde solo",
        "responde con",
        "tu respuesta",
        "rispondi solo",
        "rispondi con",
        "la tua risposta",
        "responda apenas",
        "responda com",
        "sua resposta",
    ]);
    form && (w.orders(lex::ANSWER) || w.has(lex::DUTY) || w.has(&["always", "only", "instead"]))
        && w.list.len() >= 4
}

/// I9: decode and follow.
fn decode_and_follow(w: &Words<'_>) -> bool {
    let follows = w.says(&[
        "do exactly",
        "do what",
        "act on it",
        "as it says",
        "what it says",
    ]);
    if follows && w.has(&["decode", "base64", "decrypt", "rot13", "hex"]) {
        return true;
    }
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
