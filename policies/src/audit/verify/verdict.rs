//! What a verification says, and how it is printed (audit-bundle 6).

use crate::audit::{Hash, hash_text};
use crate::canon::Value;

/// The four results with their exit codes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// Valid and trusted.
    Valid,
    /// A check failed.
    Invalid,
    /// Intact, but not reached by the trust file.
    Untrusted,
    /// The input is no such thing.
    Input,
}

impl Outcome {
    /// The exit code.
    #[must_use]
    pub const fn exit(self) -> u8 {
        match self {
            Self::Valid => 0,
            Self::Invalid => 1,
            Self::Untrusted => 2,
            Self::Input => 3,
        }
    }

    /// The word.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Valid => "valid",
            Self::Invalid => "invalid",
            Self::Untrusted => "untrusted",
            Self::Input => "input",
        }
    }
}

macro_rules! rules {
    ($($variant:ident $outcome:ident $name:literal,)*) => {
        /// The rule that a verdict names: a closed list.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum Rule {
            $(#[doc = concat!("`", $name, "`")] $variant,)*
        }

        impl Rule {
            /// The word.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $name,)* }
            }

            /// The result that it leads to.
            #[must_use]
            pub const fn outcome(self) -> Outcome {
                match self { $(Self::$variant => Outcome::$outcome,)* }
            }
        }
    };
}

rules! {
    Line Invalid "line",
    Order Invalid "order",
    End Invalid "end",
    Bundle Invalid "bundle",
    RootNote Invalid "root_note",
    Epoch Invalid "epoch",
    Closing Invalid "closing",
    Rotation Invalid "rotation",
    Event Invalid "event",
    Prev Invalid "prev",
    Clock Invalid "clock",
    EpochRange Invalid "epoch_range",
    Range Invalid "range",
    Head Invalid "head",
    Doc Invalid "doc",
    Pii Invalid "pii",
    Replay Invalid "replay",
    Since Invalid "since",
    Proof Invalid "proof",
    OriginUnknown Untrusted "origin_unknown",
    EpochUnreached Untrusted "epoch_unreached",
    KeyUntrusted Untrusted "key_untrusted",
    Usage Input "usage",
    Unreadable Input "unreadable",
    Format Input "format",
    TrustFile Input "trust_file",
    NoTrust Input "no_trust",
    SinceFile Input "since_file",
}

impl Rule {
    /// The failure of this rule at an index.
    pub(super) const fn at(self, index: Option<u64>) -> Fail {
        Fail { rule: self, index }
    }
}

/// The first failure of a verification.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Fail {
    /// The rule.
    pub(super) rule: Rule,
    /// The leaf, where the step gives one.
    pub(super) index: Option<u64>,
}

/// What a verification says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verdict {
    /// The result.
    pub outcome: Outcome,
    /// The rule that failed.
    pub rule: Option<Rule>,
    /// The leaf at which it failed.
    pub index: Option<u64>,
    /// The size of the head that holds.
    pub size: Option<u64>,
    /// Its root.
    pub root: Option<Hash>,
}

impl From<Fail> for Verdict {
    fn from(fail: Fail) -> Self {
        Self {
            outcome: fail.rule.outcome(),
            rule: Some(fail.rule),
            index: fail.index,
            size: None,
            root: None,
        }
    }
}

impl Verdict {
    /// The verdict over an intact head: valid, or untrusted by a rule.
    pub(super) const fn over(size: u64, root: Hash, distrust: Option<Rule>) -> Self {
        Self {
            outcome: match distrust {
                None => Outcome::Valid,
                Some(rule) => rule.outcome(),
            },
            rule: distrust,
            index: None,
            size: Some(size),
            root: Some(root),
        }
    }

    /// The exit code.
    #[must_use]
    pub const fn exit(&self) -> u8 {
        self.outcome.exit()
    }

    /// The one object of `--json`; `trust` is the path of the chosen trust file.
    #[must_use]
    pub fn to_json(&self, trust: Option<&str>) -> String {
        let number = |n: Option<u64>| Value::int_or_null(n.and_then(|n| i64::try_from(n).ok()));
        Value::map([
            ("result", Value::from(self.outcome.as_str())),
            ("exit", Value::Int(i64::from(self.exit()))),
            ("index", number(self.index)),
            ("rule", Value::text_or_null(self.rule.map(Rule::as_str))),
            ("size", number(self.size)),
            (
                "root",
                Value::text_or_null(self.root.as_ref().map(hash_text)),
            ),
            ("trust", Value::text_or_null(trust)),
        ])
        .to_jcs()
    }

    /// The one line of stdout without `--json`.
    #[must_use]
    pub fn to_line(&self) -> String {
        let dash = || "-".to_owned();
        let number = |n: Option<u64>| n.map_or_else(dash, |n| n.to_string());
        format!(
            "{} rule={} index={} size={} root={}",
            self.outcome.as_str(),
            self.rule.map_or("-", Rule::as_str),
            number(self.index),
            number(self.size),
            self.root.as_ref().map_or_else(dash, hash_text),
        )
    }
}
