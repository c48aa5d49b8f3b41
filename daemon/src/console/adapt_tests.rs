//! Records of core as the pages show them.

use policies::diagnosis::{Confidence, Culprit, Diagnosis, Remedy};
use policies::machine::{ActionNote, Call, ModelNote, Outcome, TimelineEntry};
use policies::model::{CauseClass, EvidenceId, Payload, Window};

use super::super::fixtures::NOW;
use super::*;

const ID: &str = "inc_aaaaaaaaaaaaaaaa";

fn stored(phase: &str, closed_at: Option<Millis>) -> StoredRow {
    StoredRow {
        id: ID.to_owned(),
        tenant: "default".to_owned(),
        kind: "alert".to_owned(),
        title: "Checkout answers with errors".to_owned(),
        service: "checkout".to_owned(),
        severity: "critical".to_owned(),
        phase: phase.to_owned(),
        outcome: closed_at.map(|_| "recovered".to_owned()),
        cause_class: Some("bad_deploy".to_owned()),
        action_id: Some("act_1".to_owned()),
        opened_at: NOW,
        updated_at: NOW,
        closed_at,
        alerts: 3,
        version: 1,
    }
}

fn states(state: &str) -> ActionStates {
    ActionStates::from([("act_1".to_owned(), state.to_owned())])
}

fn hypothesis(id: &str, rejected: Option<&str>) -> diagnosis::Hypothesis {
    let cite = diagnosis::Cite {
        evidence: EvidenceId(2),
        line: Some(7),
    };
    diagnosis::Hypothesis {
        id: id.to_owned(),
        cause_class: CauseClass::BadDeploy,
        service: "checkout".to_owned(),
        culprit: Culprit::deploy("d-118"),
        score: 82,
        weights: Vec::new(),
        supporting: vec![cite],
        refuting: Vec::new(),
        missing: Vec::new(),
        rejected: rejected.map(str::to_owned),
        explanation: "The failing frame lies in a changed line.".to_owned(),
        corroborated: true,
        change_evidence: Vec::new(),
        remediation: Remedy {
            class: RemediationClass::Rollback,
            target: "checkout".to_owned(),
            change: BTreeMap::new(),
            advice: None,
        },
    }
}

fn proposal(class: RemediationClass) -> ProposalNote {
    let text = |text: &str| ParamValue::Text(text.to_owned());
    ProposalNote {
        class,
        advice: None,
        target: "checkout".to_owned(),
        change: BTreeMap::from([
            ("from".to_owned(), text("1.8.0")),
            ("to".to_owned(), text("1.7.2")),
        ]),
        citations: Vec::new(),
    }
}

fn clearance(codes: &[&str]) -> ClearanceNote {
    ClearanceNote {
        at: NOW,
        cleared: codes.is_empty(),
        codes: codes.iter().map(|code| (*code).to_owned()).collect(),
        reasons: codes.iter().map(|code| format!("{code} says no")).collect(),
    }
}

fn record() -> Record {
    Record {
        id: ID.parse().unwrap(),
        tenant: "default".to_owned(),
        kind: "alert".to_owned(),
        phase: Phase::AwaitingApproval,
        outcome: None,
        opened_at: NOW,
        settle_until: NOW,
        alerts: Vec::new(),
        calls: Vec::new(),
        failed_tools: Vec::new(),
        diagnosis: Some(Diagnosis {
            rules: 1,
            at: NOW,
            onset: None,
            facts: Vec::new(),
            hypotheses: vec![hypothesis("H1", None), hypothesis("H2", Some("too late"))],
            verdict: diagnosis::Verdict {
                hypothesis: Some("H1".to_owned()),
                cause_class: CauseClass::BadDeploy,
                culprit: Culprit::deploy("d-118"),
                confidence: Confidence::High,
            },
            missing: Vec::new(),
            checks: Vec::new(),
            allowed: vec!["H1".to_owned()],
            seen_deploys: BTreeMap::new(),
        }),
        model: None,
        cause_class: Some(CauseClass::BadDeploy),
        proposal: Some(proposal(RemediationClass::Rollback)),
        clearances: vec![clearance(&[])],
        action: Some(ActionNote {
            id: "act_1".to_owned(),
            state: "pending".to_owned(),
            decided_by: Vec::new(),
            jti: None,
            code: None,
        }),
        lost_actions: Vec::new(),
        job: None,
        verification: None,
        events: Vec::new(),
        timeline: Vec::new(),
        stages: Vec::new(),
    }
}

fn shown(record: Record) -> Incident {
    let row = row(stored("awaiting_approval", None), &states("pending"));
    let parts = Parts {
        alerts: 3,
        record: Some(record),
        ..Parts::default()
    };
    incident(row, parts)
}

#[test]
fn what_waits_for_a_person_comes_before_what_is_open_and_what_is_over() {
    let rank_of = |closed, state: &str| rank(&row(stored("executing", closed), &states(state)));
    let pending = rank_of(None, "pending");
    let in_doubt = rank_of(Some(NOW), "in_doubt");
    let open = rank_of(None, "spent");
    let over = rank_of(Some(NOW), "succeeded");
    assert!(pending < in_doubt && in_doubt < open && open < over);
}

#[test]
fn a_closed_incident_is_listed_by_its_own_end_and_not_by_that_of_its_action() {
    let listed = |closed, state: &str| {
        let mut row = row(stored("executing", closed), &states(state));
        row.state = "not_recovered".to_owned();
        row.standing().to_owned()
    };
    assert_eq!(listed(None, "pending"), "pending");
    assert_eq!(listed(Some(NOW), "succeeded"), "not_recovered");
    assert_eq!(listed(Some(NOW), "in_doubt"), "in_doubt");
}

#[test]
fn a_cleared_proposal_is_shown_with_its_action_and_every_rule() {
    let incident = shown(record());
    let verdict = incident.verdict.unwrap();
    assert_eq!(verdict.culprit, "deploy d-118");
    assert_eq!(
        (verdict.source.as_str(), verdict.confidence.as_str()),
        ("rules", "high")
    );
    let Suggestion::Act {
        params,
        action,
        checks,
        ..
    } = incident.suggestion
    else {
        panic!("{:?}", incident.suggestion);
    };
    assert_eq!(params[0].now.as_deref(), Some("1.8.0"));
    assert_eq!(action.unwrap().state, "pending");
    assert_eq!(checks.len(), INTERLOCKS.len());
    assert!(checks.iter().all(|check| check.passed));
    let standing: Vec<_> = incident.hypotheses.iter().map(|h| h.standing()).collect();
    assert_eq!(standing, ["supported", "refuted"]);
    assert!(incident.hypotheses[0].chosen);
}

#[test]
fn a_refused_proposal_is_an_escalation_with_the_rules_that_refused() {
    let mut record = record();
    record.clearances.push(clearance(&["IL-23"]));
    let Suggestion::Escalate { advice, reasons } = shown(record).suggestion else {
        panic!("it is offered");
    };
    assert_eq!(advice.as_deref(), Some("rollback"));
    assert_eq!(reasons[0].code, "IL-23");
    assert!(!reasons[0].passed);
}

#[test]
fn nothing_to_do_and_nothing_yet_are_told_apart() {
    let mut calm = record();
    calm.proposal = Some(proposal(RemediationClass::NoAction));
    assert_eq!(shown(calm).suggestion, Suggestion::NoAction);
    let mut early = record();
    early.proposal = None;
    early.diagnosis = None;
    early.phase = Phase::Collecting;
    early.calls = vec![Call {
        id: EvidenceId(1),
        tool: "logs".to_owned(),
        source: "shop-logs".to_owned(),
        query: String::new(),
        window: Window { from: NOW, to: NOW },
        state: CallState::Pending,
        second_look: false,
    }];
    let incident = shown(early);
    assert_eq!(incident.suggestion, Suggestion::Undecided);
    assert_eq!(
        incident.progress.as_deref(),
        Some("Reading evidence: 0 of 1 tools answered, waiting for logs.")
    );
}

#[test]
fn the_model_is_named_where_it_chose_and_its_absence_where_it_did_not() {
    let mut chosen = record();
    chosen.model = Some(ModelNote {
        name: "tiny-chat".to_owned(),
        tokens_in: 900,
        tokens_out: 60,
        ms: 800,
        unavailable: String::new(),
        hypothesis: Some("H1".to_owned()),
        summary: "The release broke the voucher path.".to_owned(),
        citations: vec![EvidenceId(2)],
    });
    let mut absent = chosen.clone();
    let incident = shown(chosen);
    let verdict = incident.verdict.unwrap();
    assert_eq!(verdict.source, "tiny-chat");
    assert_eq!(verdict.cites[0].label(), "E2");
    assert_eq!(incident.model_absent, None);
    if let Some(model) = &mut absent.model {
        model.unavailable = "engine_crashed".to_owned();
        model.hypothesis = None;
    }
    let incident = shown(absent);
    assert_eq!(incident.verdict.unwrap().source, "rules");
    assert_eq!(incident.model_absent.as_deref(), Some("engine_crashed"));
}

#[test]
fn the_measured_recovery_is_said_with_both_numbers() {
    let mut over = record();
    over.phase = Phase::Closed;
    over.outcome = Some(Outcome::Recovered);
    over.verification = Some(VerificationNote {
        recovered: Some(true),
        metric: "the share of failing requests".to_owned(),
        before: Some(0.38),
        after: Some(0.002),
    });
    over.timeline = vec![
        TimelineEntry {
            at: NOW.plus(5),
            kind: "end".to_owned(),
            text: "closed".to_owned(),
        },
        TimelineEntry {
            at: NOW,
            kind: "alert".to_owned(),
            text: "alert".to_owned(),
        },
    ];
    let incident = shown(over);
    assert_eq!(
        incident.recovery.as_deref(),
        Some("Recovered: 38.0 % before, 0.2 % now. Measured: the share of failing requests.")
    );
    assert_eq!(incident.timeline[0].kind, "alert");
}

#[test]
fn stored_evidence_keeps_the_numbers_of_its_lines() {
    let payload = Payload::Topology {
        edges: vec![policies::model::Edge {
            caller: "checkout".to_owned(),
            callee: "payments".to_owned(),
        }],
    };
    let stored: StoredEvidence = serde_json::from_value(serde_json::json!({
        "id": 4,
        "meta": {"tool": "topology", "args": "{}", "source": "map",
                 "window": {"from": 0, "to": 1}, "taken_at": 1, "partial": null},
        "payload": payload,
        "stats": {"bytes_read": 10, "bytes_kept": 9, "redactions": {}, "removed": 0},
    }))
    .unwrap();
    let parts = Parts {
        evidence: vec![stored],
        ..Parts::default()
    };
    let row = row(self::stored("collecting", None), &states("pending"));
    let item = &incident(row, parts).evidence[0];
    assert_eq!((item.id, item.bytes_kept), (4, 9));
    assert!(item.lines[0].contains("checkout"));
}
