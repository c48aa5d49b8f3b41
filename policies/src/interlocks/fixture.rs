//! Proposals and facts that pass every interlock, for the tests to spoil.

use std::collections::BTreeMap;

use super::facts::{DeployFact, Facts, HistoryFact, PieceFact, RecentAction};
use super::preconditions::{ConditionFact, Truth};
use crate::claim::{Proposal, ProposalParts};
use crate::diagnosis::{
    CHECKS, CheckState, Cite, Culprit, ExecutorFact, ExternalCheck, Hypothesis, Onset, ParamValue,
    Remedy,
};
use crate::model::{
    CauseClass, DeployStatus, EvidenceId, IncidentId, Millis, RemediationClass, Target,
};

pub(super) const NOW: Millis = Millis(1_780_000_000_000);
pub(super) const ONSET: Millis = Millis(1_780_000_000_000 - 120_000);

fn cite(evidence: u32, line: u32) -> Cite {
    Cite {
        evidence: EvidenceId(evidence),
        line: Some(line),
    }
}

fn text(value: &str) -> ParamValue {
    ParamValue::Text(value.to_owned())
}

pub(super) fn deploy(id: &str, version: &str, previous: Option<&str>, at: Millis) -> DeployFact {
    DeployFact {
        id: id.to_owned(),
        service: "till".to_owned(),
        version: version.to_owned(),
        previous: previous.map(str::to_owned),
        previous_available: true,
        started_at: at,
        status: DeployStatus::Succeeded,
    }
}

pub(super) fn done(proposal: &Proposal, incident: u8, at: Millis) -> RecentAction {
    RecentAction {
        incident: IncidentId::from_random([incident; 10]),
        class: proposal.class(),
        target: proposal.target().name.clone(),
        at,
        in_progress: false,
    }
}

fn hypothesis(cause: CauseClass, service: &str, culprit: Culprit) -> Hypothesis {
    Hypothesis {
        id: "H1".to_owned(),
        cause_class: cause,
        service: service.to_owned(),
        culprit,
        score: 80,
        weights: Vec::new(),
        supporting: vec![cite(1, 4), cite(2, 2), cite(3, 7)],
        refuting: Vec::new(),
        missing: Vec::new(),
        rejected: None,
        explanation: String::new(),
        corroborated: true,
        change_evidence: vec![cite(3, 7)],
        remediation: Remedy {
            class: RemediationClass::Escalate,
            target: service.to_owned(),
            change: BTreeMap::new(),
            advice: None,
        },
    }
}

pub(super) fn rival(deploy: &str, score: i32) -> Hypothesis {
    let mut other = hypothesis(CauseClass::BadDeploy, "basket", Culprit::deploy(deploy));
    other.id = "H2".to_owned();
    other.score = score;
    other
}

fn facts(hypothesis: Hypothesis) -> Facts {
    let names = ["basket", "ledger", "till"].map(str::to_owned);
    let piece = PieceFact {
        from: ONSET.plus(-3_600_000),
        to: NOW,
        partial: false,
        degraded: false,
    };
    let check = |name: &&str| ExternalCheck {
        name: (*name).to_owned(),
        state: CheckState::Clear,
        onset: None,
        cites: Vec::new(),
        answerable: true,
        note: String::new(),
    };
    Facts {
        inventory: names.iter().cloned().collect(),
        investigated: names.iter().cloned().collect(),
        alert_active: true,
        executors: vec![ExecutorFact {
            name: "pool".to_owned(),
            class: RemediationClass::Resize,
            target: "till".to_owned(),
            key: Some("pool_size".to_owned()),
            bounds: Some((4, 64)),
            current: None,
        }],
        failed_tools: Vec::new(),
        history: Some(HistoryFact {
            covers_from: ONSET.plus(-7_200_000),
            covers_to: NOW,
            truncated: false,
            in_force: BTreeMap::from([("till".to_owned(), "1.4.1".to_owned())]),
            deploys: vec![
                deploy("d1", "1.4.0", Some("1.3.9"), ONSET.plus(-6_000_000)),
                deploy("d2", "1.4.1", Some("1.4.0"), ONSET.plus(-20_000)),
            ],
        }),
        pieces: (1..=3).map(|n| (EvidenceId(n), piece.clone())).collect(),
        tainted: std::collections::BTreeSet::new(),
        recent: Vec::new(),
        conditions: Vec::new(),
        onset: Some(Onset {
            at: ONSET,
            signal: "share of failed requests".to_owned(),
            resolution_ms: 60_000,
            evidence: EvidenceId(1),
        }),
        verdict: hypothesis.cause_class,
        hypotheses: vec![hypothesis],
        checks: CHECKS.iter().map(check).collect(),
    }
}

fn parts(hypothesis: &Hypothesis, class: RemediationClass) -> ProposalParts {
    ProposalParts {
        incident: IncidentId::from_random([1; 10]),
        hypothesis: Some(hypothesis.id.clone()),
        cause_class: hypothesis.cause_class,
        class,
        advice: None,
        target: Target {
            namespace: "default".to_owned(),
            name: hypothesis.service.clone(),
        },
        change: BTreeMap::new(),
        deploy: None,
        seen_deploy: (hypothesis.service == "till").then(|| "d2".to_owned()),
        cites: hypothesis.supporting.clone(),
    }
}

pub(super) fn rollback() -> (Proposal, Facts) {
    let hypothesis = hypothesis(CauseClass::BadDeploy, "till", Culprit::deploy("d2"));
    let mut parts = parts(&hypothesis, RemediationClass::Rollback);
    parts.deploy = Some("d2".to_owned());
    parts.change = BTreeMap::from([
        ("deploy".to_owned(), text("d2")),
        ("from".to_owned(), text("1.4.1")),
        ("to".to_owned(), text("1.4.0")),
    ]);
    (Proposal::from_parts(parts), facts(hypothesis))
}

pub(super) fn resize(from: i64, to: i64) -> (Proposal, Facts) {
    let culprit = Culprit::service("till");
    let hypothesis = hypothesis(CauseClass::ResourceExhaustion, "till", culprit);
    let mut parts = parts(&hypothesis, RemediationClass::Resize);
    parts.change = BTreeMap::from([
        ("key".to_owned(), text("pool_size")),
        ("from".to_owned(), ParamValue::Int(from)),
        ("to".to_owned(), ParamValue::Int(to)),
    ]);
    (Proposal::from_parts(parts), facts(hypothesis))
}

pub(super) fn restart() -> (Proposal, Facts) {
    let culprit = Culprit::service("ledger");
    let hypothesis = hypothesis(CauseClass::ResourceExhaustion, "ledger", culprit);
    let parts = parts(&hypothesis, RemediationClass::Restart);
    (Proposal::from_parts(parts), facts(hypothesis))
}

pub(super) fn no_action() -> (Proposal, Facts) {
    let hypothesis = hypothesis(CauseClass::None, "till", Culprit::none());
    let parts = parts(&hypothesis, RemediationClass::NoAction);
    (Proposal::from_parts(parts), facts(hypothesis))
}

pub(super) fn with_cause(proposal: &Proposal, cause: CauseClass) -> Proposal {
    Proposal::from_parts(ProposalParts {
        incident: proposal.incident().clone(),
        hypothesis: proposal.hypothesis().map(str::to_owned),
        cause_class: cause,
        class: proposal.class(),
        advice: None,
        target: proposal.target().clone(),
        change: proposal.change().clone(),
        deploy: None,
        seen_deploy: None,
        cites: proposal.cites().to_vec(),
    })
}

pub(super) fn condition(
    proposal: &Proposal,
    action: RemediationClass,
    met: Truth,
) -> ConditionFact {
    ConditionFact {
        action,
        target: proposal.target().name.clone(),
        place: "till.md:4 `stateless`".to_owned(),
        met,
    }
}
