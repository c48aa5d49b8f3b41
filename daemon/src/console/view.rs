//! What the pages show, as plain data.
//!
//! A page is a function of these structures and nothing else. They carry outside text as it is
//! stored; making it harmless is the escaper's part (`console::text`). They decide nothing.

use policies::model::Millis;

use super::backend::Verb;

/// One line of the inbox.
#[derive(Clone, Debug, PartialEq)]
pub struct IncidentRow {
    /// Id.
    pub id: String,
    /// One line that says what is broken.
    pub title: String,
    /// Service.
    pub service: String,
    /// Severity word.
    pub severity: String,
    /// State word of the machine.
    pub state: String,
    /// When it was opened.
    pub opened_at: Millis,
    /// Last change.
    pub updated_at: Millis,
    /// When it was closed.
    pub closed_at: Option<Millis>,
    /// Cause class, once diagnosed.
    pub cause_class: Option<String>,
    /// The action proposed for it, with its state at the guard.
    pub action: Option<ActionLink>,
}

impl IncidentRow {
    /// The state that a list shows: what became of the action while the incident is open or the
    /// action in doubt, else how the incident itself ended. A performed action is no recovery.
    #[must_use]
    pub fn standing(&self) -> &str {
        let action = self.action.as_ref().map(|action| action.state.as_str());
        match (self.closed_at, action) {
            (None, Some(state)) | (_, Some(state @ "in_doubt")) => state,
            _ => &self.state,
        }
    }
}

/// An action by its id and state.
#[derive(Clone, Debug, PartialEq)]
pub struct ActionLink {
    /// Id at the guard.
    pub id: String,
    /// State at the guard.
    pub state: String,
}

/// The inbox.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Inbox {
    /// Most urgent first.
    pub rows: Vec<IncidentRow>,
    /// Cursor of the next page.
    pub next: Option<String>,
}

/// What the bar of every page says about the box.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct BarFacts {
    /// Actions that wait for a decision.
    pub waiting: usize,
    /// When the newest incident was opened, if any.
    pub last_incident: Option<Millis>,
    /// The model in words: `ready`, `none: rules only`, `restarting`.
    pub model: String,
    /// Guard states other than `ok`.
    pub guard: Vec<GuardState>,
}

/// A state of the guard that holds.
#[derive(Clone, Debug, PartialEq)]
pub struct GuardState {
    /// Its word.
    pub state: String,
    /// File or reason.
    pub cause: String,
}

/// A citation: a piece of evidence, or one line of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cite {
    /// Number of the evidence.
    pub evidence: u32,
    /// Line, from 1.
    pub line: Option<u32>,
}

impl Cite {
    /// `E12:40`, as a reader says it.
    #[must_use]
    pub fn label(&self) -> String {
        match self.line {
            Some(line) => format!("E{}:{line}", self.evidence),
            None => format!("E{}", self.evidence),
        }
    }

    /// The anchor of the cited place on the incident's page (console 6.4).
    #[must_use]
    pub fn anchor(&self) -> String {
        match self.line {
            Some(line) => format!("E{}-L{line}", self.evidence),
            None => format!("E{}", self.evidence),
        }
    }
}

/// A rule with its verdict.
#[derive(Clone, Debug, PartialEq)]
pub struct Check {
    /// Stable code.
    pub code: String,
    /// True when it lets the action pass.
    pub passed: bool,
    /// One sentence.
    pub text: String,
    /// What it rests on.
    pub cites: Vec<Cite>,
}

/// One parameter of an action.
#[derive(Clone, Debug, PartialEq)]
pub struct Param {
    /// Name.
    pub name: String,
    /// Value now, when the parameter changes something that is known.
    pub now: Option<String>,
    /// Value that the action carries.
    pub after: String,
}

/// What the diagnosis came to.
#[derive(Clone, Debug, PartialEq)]
pub struct Verdict {
    /// Cause class.
    pub cause_class: String,
    /// Kind and id of the culprit.
    pub culprit: String,
    /// `high`, `medium`, `low`.
    pub confidence: String,
    /// `rules`, or the name of the model that chose.
    pub source: String,
    /// The model's words beside the verdict, if any.
    pub summary: Option<String>,
    /// What the summary cites.
    pub cites: Vec<Cite>,
    /// What was missing for more.
    pub missing: Vec<String>,
}

/// What is suggested.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Suggestion {
    /// Not yet.
    #[default]
    Undecided,
    /// Nothing needs to be done.
    NoAction,
    /// A person has to act; the reasons say why.
    Escalate {
        /// What a person could do, as a class word.
        advice: Option<String>,
        /// Rules that refused, or reasons.
        reasons: Vec<Check>,
    },
    /// An action.
    Act {
        /// Class word.
        class: String,
        /// Target name.
        target: String,
        /// Parameters.
        params: Vec<Param>,
        /// The action at the guard, once proposed.
        action: Option<ActionLink>,
        /// Rules that let it pass.
        checks: Vec<Check>,
    },
}

/// A deterministic finding.
#[derive(Clone, Debug, PartialEq)]
pub struct Fact {
    /// One sentence.
    pub text: String,
    /// What it rests on.
    pub cites: Vec<Cite>,
}

/// A hypothesis.
#[derive(Clone, Debug, PartialEq)]
pub struct Hypothesis {
    /// `H1`.
    pub id: String,
    /// Cause class.
    pub cause_class: String,
    /// Service.
    pub service: String,
    /// Kind and id of the culprit.
    pub culprit: String,
    /// Rank score as text.
    pub score: String,
    /// True for the one that the verdict names.
    pub chosen: bool,
    /// Why.
    pub explanation: String,
    /// Evidence for it.
    pub supporting: Vec<Cite>,
    /// Evidence against it.
    pub refuting: Vec<Cite>,
    /// What would decide.
    pub missing: Vec<String>,
    /// Why it was dropped.
    pub rejected: Option<String>,
    /// What it would take.
    pub remedy: String,
}

impl Hypothesis {
    /// `supported`, `refuted` or `untested` (console 6.4).
    #[must_use]
    pub fn standing(&self) -> &'static str {
        if self.rejected.is_some() {
            "refuted"
        } else if self.supporting.is_empty() {
            "untested"
        } else {
            "supported"
        }
    }
}

/// Something that happened.
#[derive(Clone, Debug, PartialEq)]
pub struct Moment {
    /// When.
    pub at: Millis,
    /// `alert`, `deploy`, `tool`, `model`, `person`, `guard`, `state`.
    pub kind: String,
    /// One line.
    pub text: String,
    /// By whom, if a person or an identity.
    pub who: Option<String>,
    /// What it rests on.
    pub cites: Vec<Cite>,
}

/// A piece of evidence.
#[derive(Clone, Debug, PartialEq)]
pub struct EvidenceItem {
    /// Number.
    pub id: u32,
    /// Tool that fetched it.
    pub tool: String,
    /// Arguments, canonical JSON.
    pub args: String,
    /// Source.
    pub source: String,
    /// Begin of the window.
    pub from: Millis,
    /// End of the window.
    pub to: Millis,
    /// When it was taken.
    pub taken_at: Millis,
    /// Why it is not whole.
    pub partial: Option<String>,
    /// Bytes the source gave.
    pub bytes_read: u64,
    /// Bytes kept.
    pub bytes_kept: u64,
    /// Redactions by kind.
    pub redactions: Vec<(String, u32)>,
    /// Spans removed as injections.
    pub removed: u32,
    /// Numbered lines, line 1 first.
    pub lines: Vec<String>,
}

/// What a guardrail did.
#[derive(Clone, Debug, PartialEq)]
pub struct GuardrailRow {
    /// Layer.
    pub layer: String,
    /// Code.
    pub code: String,
    /// Rule.
    pub rule: String,
    /// How often.
    pub count: u32,
    /// In which evidence.
    pub evidence: Option<u32>,
}

/// A tool that did not answer.
#[derive(Clone, Debug, PartialEq)]
pub struct FailedTool {
    /// Tool and source.
    pub tool: String,
    /// Code.
    pub code: String,
}

/// One incident.
#[derive(Clone, Debug, PartialEq)]
pub struct Incident {
    /// The row of the inbox.
    pub row: IncidentRow,
    /// Alerts joined into it.
    pub alerts: usize,
    /// What the machine is doing, while it works.
    pub progress: Option<String>,
    /// The diagnosis.
    pub verdict: Option<Verdict>,
    /// The suggestion.
    pub suggestion: Suggestion,
    /// How the action ended and what was measured after it.
    pub recovery: Option<String>,
    /// Deterministic findings.
    pub facts: Vec<Fact>,
    /// Ranked.
    pub hypotheses: Vec<Hypothesis>,
    /// Oldest first.
    pub timeline: Vec<Moment>,
    /// By number.
    pub evidence: Vec<EvidenceItem>,
    /// What the guardrails did.
    pub guardrails: Vec<GuardrailRow>,
    /// Tools that did not answer.
    pub failed: Vec<FailedTool>,
    /// Why no model took part, if none did.
    pub model_absent: Option<String>,
    /// True when a postmortem is stored.
    pub postmortem: bool,
}

/// A recorded decision.
#[derive(Clone, Debug, PartialEq)]
pub struct DecisionRow {
    /// Which way.
    pub verb: Verb,
    /// Person.
    pub person: String,
    /// Assurance.
    pub assurance: String,
    /// Through whom.
    pub via: String,
    /// When.
    pub at: Option<Millis>,
    /// Why.
    pub reason: String,
}

/// One action as the guard records it (guard 3.6), with what core knows about it.
#[derive(Clone, Debug, PartialEq)]
pub struct Action {
    /// Id.
    pub id: String,
    /// State.
    pub state: String,
    /// Canonical bytes: verb, target and parameters are read from here and nowhere else.
    pub document: String,
    /// Digest of those bytes.
    pub digest: String,
    /// Nonce for a decision.
    pub decision_nonce: String,
    /// Identity that asked.
    pub requester: String,
    /// Person who chose the action, if one did.
    pub initiator: Option<String>,
    /// Display text of the requester.
    pub intent: String,
    /// Approvals recorded.
    pub have: u32,
    /// Approvals needed.
    pub need: u32,
    /// Decisions so far.
    pub decisions: Vec<DecisionRow>,
    /// Made.
    pub created_at: Millis,
    /// End of the wait for approvals.
    pub expires_at: Option<Millis>,
    /// End of the approval window.
    pub approval_expires_at: Option<Millis>,
    /// End of the time for the effect.
    pub effect_deadline: Option<Millis>,
    /// Id of the capability, once issued.
    pub jti: Option<String>,
    /// Job.
    pub job: Option<String>,
    /// Fence.
    pub fence: Option<i64>,
    /// When the effect began.
    pub started: Option<Millis>,
    /// Recorded outcome in one line.
    pub outcome: Option<String>,
    /// Number of the last audit entry.
    pub audit_index: Option<u64>,
    /// What core knows beside the guard's record.
    pub context: ActionContext,
}

/// What core knows about an action beside the guard's record.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ActionContext {
    /// Interlocks with their verdicts.
    pub checks: Vec<Check>,
    /// The hypothesis that the action follows from, with its evidence.
    pub ground: Option<Hypothesis>,
    /// Evidence that the proposal cites.
    pub cites: Vec<Cite>,
    /// The executor and what it does.
    pub executor: Option<String>,
    /// How long the effect may take, in seconds.
    pub limit_s: Option<i64>,
    /// What may notice it, in sentences.
    pub blast: Vec<String>,
    /// The measured recovery.
    pub recovery: Option<String>,
    /// Whether it helped, if that could be measured.
    pub recovered: Option<bool>,
}

/// What an executor says that an action would do now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DryRun {
    /// It looked.
    Seen {
        /// What is in force now, if there is something to read.
        now: Option<String>,
        /// What would be in force after it.
        after: Option<String>,
        /// What happens around it, one sentence.
        effect: String,
        /// The action that leads back, as a sentence.
        inverse: Option<String>,
    },
    /// It could not look, or the target does not allow the change.
    Failed {
        /// Stable code.
        code: String,
        /// What happened.
        detail: String,
    },
}
