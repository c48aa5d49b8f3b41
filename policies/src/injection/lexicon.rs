//! Words of the rules. Stems are whole lower-case words; several languages share one list.

/// Verbs that set instructions aside.
pub(super) const OVERRIDE: &[&str] = &[
    "ignore",
    "disregard",
    "forget",
    "override",
    "bypass",
    "discard",
    "neglect",
    "replace",
    "ignoriere",
    "ignorieren",
    "vergiss",
    "missachte",
    "ignorez",
    "ignorer",
    "oublie",
    "oubliez",
    "ignora",
    "ignorar",
    "ignorad",
    "olvida",
    "olvide",
    "dimentica",
    "ignorare",
    "ignore-se",
    "esqueca",
    "esquece",
    "desconsidere",
];

/// What instructions are called.
pub(super) const INSTRUCTIONS: &[&str] = &[
    "instructions",
    "prompt",
    "prompts",
    "guidelines",
    "guardrails",
    "directives",
    "anweisungen",
    "anweisung",
    "vorgaben",
    "consignes",
    "instrucciones",
    "istruzioni",
    "instrucoes",
    "directrices",
];

/// Objects that are common in logs and need a qualifier.
pub(super) const WEAK_OBJECTS: &[&str] = &[
    "instruction",
    "rules",
    "rule",
    "context",
    "policy",
    "policies",
    "constraints",
    "task",
    "regeln",
    "regles",
    "reglas",
    "regole",
    "regras",
    "messages",
    "text",
    "everything",
    "commands",
];

/// What makes a weak object that of the reader.
pub(super) const QUALIFIERS: &[&str] = &[
    "previous",
    "prior",
    "above",
    "earlier",
    "preceding",
    "your",
    "system",
    "safety",
    "initial",
    "original",
    "vorherigen",
    "vorigen",
    "bisherigen",
    "precedentes",
    "anteriores",
    "precedenti",
    "deine",
    "ihre",
    "tus",
    "sus",
    "vos",
    "suas",
];

/// How the reader is addressed.
pub(super) const ADDRESSEES: &[&str] = &[
    "assistant",
    "ai",
    "llm",
    "chatbot",
    "chatgpt",
    "copilot",
    "gpt",
    "claude",
    "gemini",
    "sentinel",
    "ki",
    "ia",
];

/// Addressees of two words.
pub(super) const ADDRESSEE_PAIRS: &[(&str, &str)] = &[
    ("language", "model"),
    ("sre", "agent"),
    ("sre", "bot"),
    ("remediation", "agent"),
    ("investigation", "agent"),
    ("incident", "agent"),
    ("automation", "agent"),
    ("autonomous", "agent"),
    ("analysis", "agent"),
    ("responding", "agent"),
];

/// Orders that change a system.
pub(super) const ORDERS: &[&str] = &[
    "restart",
    "rollback",
    "revert",
    "reboot",
    "scale",
    "delete",
    "drop",
    "kill",
    "run",
    "execute",
    "apply",
    "terminate",
    "disable",
    "uninstall",
    "install",
    "stop",
    "drain",
    "roll",
    "kubectl",
    "systemctl",
    "curl",
    "downgrade",
    "upgrade",
    "shutdown",
    "wipe",
    "purge",
    "truncate",
];

/// Words that push.
pub(super) const URGE: &[&str] = &[
    "immediately",
    "now",
    "asap",
    "urgently",
    "must",
    "required",
    "right",
    "sofort",
    "immediatement",
    "inmediatamente",
    "immediatamente",
    "imediatamente",
];

/// Claims of approval.
pub(super) const APPROVED: &[&str] = &[
    "approved",
    "preapproved",
    "pre-approved",
    "authorized",
    "authorised",
    "preauthorized",
    "pre-authorized",
    "cleared",
    "signed-off",
    "sanctioned",
    "genehmigt",
    "approuve",
    "aprobado",
    "approvato",
    "aprovado",
];

/// Verbs of telling.
pub(super) const TELL: &[&str] = &[
    "tell", "mention", "report", "reveal", "disclose", "inform", "alert", "notify", "include",
    "show", "say", "escalate",
];

/// Whom not to tell.
pub(super) const AUDIENCE: &[&str] = &[
    "user",
    "users",
    "human",
    "humans",
    "operator",
    "operators",
    "anyone",
    "anybody",
    "nobody",
    "oncall",
    "on-call",
    "admin",
    "engineer",
    "engineers",
    "this",
    "it",
];

/// Verbs that send data away.
pub(super) const SEND: &[&str] = &[
    "send",
    "post",
    "upload",
    "forward",
    "exfiltrate",
    "email",
    "transmit",
    "leak",
    "submit",
    "copy",
];

/// Data worth stealing.
pub(super) const LOOT: &[&str] = &[
    "secret",
    "secrets",
    "credential",
    "credentials",
    "password",
    "passwords",
    "token",
    "tokens",
    "keys",
    "environment",
    "conversation",
    "prompt",
    "contents",
    "evidence",
    "env",
];

/// Verbs that fix an answer.
pub(super) const ANSWER: &[&str] = &[
    "conclude",
    "classify",
    "mark",
    "report",
    "respond",
    "answer",
    "output",
    "say",
    "state",
    "declare",
    "treat",
    "set",
    "blame",
    "attribute",
    "choose",
    "select",
    "pick",
    "return",
    "reply",
];

/// What an answer is made of.
pub(super) const VERDICT: &[&str] = &[
    "verdict",
    "diagnosis",
    "confidence",
    "hypothesis",
    "conclusion",
    "benign",
    "resolved",
    "postmortem",
    "rca",
    "summary",
];

/// The same in two words.
pub(super) const VERDICT_PAIRS: &[(&str, &str)] = &[
    ("root", "cause"),
    ("false", "positive"),
    ("no", "action"),
    ("false", "alarm"),
    ("final", "answer"),
    ("not", "investigate"),
];

/// Words after which a verb is an order.
pub(super) const LEAD: &[&str] = &[
    "please", "must", "should", "always", "now", "then", "just", "only", "simply", "to", "and",
    "bitte", "veuillez", "favor",
];

/// True for a verb that orders, sets aside, tells or answers: it is never shown of a text slot.
pub(super) fn is_action(word: &str) -> bool {
    [OVERRIDE, ORDERS, TELL, SEND, ANSWER, APPROVED, URGE]
        .iter()
        .any(|list| list.contains(&word))
}
