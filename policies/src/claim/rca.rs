//! The conclusion that a proposal is made from: rules first, a model's choice on top.

use std::collections::BTreeMap;

use serde::Serialize;

use super::{Draft, Proposal, ProposalParts};
use crate::diagnosis::{Diagnosis, Hypothesis, ParamValue};
use crate::model::{CauseClass, IncidentId, RemediationClass, Target};

/// A root cause analysis. It is built from a diagnosis; a draft of the model can only choose
/// among the hypotheses that the rules left open.
#[derive(Clone, Debug, Serialize)]
pub struct Rca {
    diagnosis: Diagnosis,
    chosen: Option<String>,
    summary: Option<String>,
    by_model: bool,
}

impl Rca {
    /// The deterministic conclusion.
    #[must_use]
    pub fn from_rules(diagnosis: Diagnosis) -> Self {
        let chosen = diagnosis.verdict.hypothesis.clone();
        Self {
            diagnosis,
            chosen,
            summary: None,
            by_model: false,
        }
    }

    /// The conclusion with a model's draft. A choice outside `allowed` is not followed: the
    /// rules' own conclusion stands, and the summary is kept beside it.
    #[must_use]
    pub fn with_draft(diagnosis: Diagnosis, draft: &Draft) -> Self {
        let mut rca = Self::from_rules(diagnosis);
        let wanted = draft.hypothesis();
        let open = rca.diagnosis.allowed.iter().any(|id| id == wanted);
        if open && rca.diagnosis.hypothesis(wanted).is_some() {
            rca.chosen = Some(wanted.to_owned());
            rca.by_model = true;
        }
        rca.summary = Some(draft.summary().to_owned());
        rca
    }

    /// What it rests on.
    #[must_use]
    pub const fn diagnosis(&self) -> &Diagnosis {
        &self.diagnosis
    }

    /// The hypothesis that is acted on; `None` when nothing decides.
    #[must_use]
    pub fn hypothesis(&self) -> Option<&Hypothesis> {
        self.diagnosis.hypothesis(self.chosen.as_deref()?)
    }

    /// The words of the model, if one was asked.
    #[must_use]
    pub fn summary(&self) -> Option<&str> {
        self.summary.as_deref()
    }

    /// True when a model's choice among the open hypotheses was followed.
    #[must_use]
    pub const fn chosen_by_model(&self) -> bool {
        self.by_model
    }

    /// The class of the cause that is acted on.
    #[must_use]
    pub fn cause_class(&self) -> CauseClass {
        self.hypothesis()
            .map_or(self.diagnosis.verdict.cause_class, |h| h.cause_class)
    }

    /// What to do about it. `inconclusive` gives `escalate` and `none` gives `no_action`
    /// (benchmark.md 4.2).
    #[must_use]
    pub fn proposal(&self, incident: &IncidentId, tenant: &str) -> Proposal {
        let Some(hypothesis) = self.hypothesis() else {
            return Proposal::from_parts(self.without_hypothesis(incident, tenant));
        };
        let remedy = &hypothesis.remediation;
        let mut change = BTreeMap::new();
        if remedy.class.is_mutating() {
            change.insert(
                "incident".to_owned(),
                ParamValue::Text(incident.as_str().to_owned()),
            );
            change.extend(remedy.change.iter().map(|(k, v)| (k.clone(), v.clone())));
        }
        let deploy = match change.get("deploy") {
            Some(ParamValue::Text(id)) => Some(id.clone()),
            Some(ParamValue::Int(_) | ParamValue::Bool(_)) | None => None,
        };
        Proposal::from_parts(ProposalParts {
            incident: incident.clone(),
            hypothesis: Some(hypothesis.id.clone()),
            cause_class: hypothesis.cause_class,
            class: remedy.class,
            advice: remedy.advice,
            target: Target {
                namespace: tenant.to_owned(),
                name: remedy.target.clone(),
            },
            change,
            deploy,
            seen_deploy: self.diagnosis.seen_deploys.get(&remedy.target).cloned(),
            cites: hypothesis.supporting.clone(),
        })
    }

    fn without_hypothesis(&self, incident: &IncidentId, tenant: &str) -> ProposalParts {
        let cause = self.diagnosis.verdict.cause_class;
        let class = if cause == CauseClass::None {
            RemediationClass::NoAction
        } else {
            RemediationClass::Escalate
        };
        ProposalParts {
            incident: incident.clone(),
            hypothesis: None,
            cause_class: cause,
            class,
            advice: None,
            target: Target {
                namespace: tenant.to_owned(),
                name: String::new(),
            },
            change: BTreeMap::new(),
            deploy: None,
            seen_deploy: None,
            cites: Vec::new(),
        }
    }
}
