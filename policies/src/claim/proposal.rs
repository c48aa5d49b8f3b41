//! What the agent suggests, before the guard knows it.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::diagnosis::{Cite, ParamValue};
use crate::model::{CauseClass, IncidentId, RemediationClass, Target};

/// The members of a proposal while it is put together inside this crate.
pub(crate) struct ProposalParts {
    pub(crate) incident: IncidentId,
    pub(crate) hypothesis: Option<String>,
    pub(crate) cause_class: CauseClass,
    pub(crate) class: RemediationClass,
    pub(crate) advice: Option<RemediationClass>,
    pub(crate) target: Target,
    pub(crate) change: BTreeMap<String, ParamValue>,
    pub(crate) deploy: Option<String>,
    pub(crate) seen_deploy: Option<String>,
    pub(crate) cites: Vec<Cite>,
}

/// One suggested remediation. It is never rewritten: an interlock that refuses keeps it as it is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Proposal {
    incident: IncidentId,
    hypothesis: Option<String>,
    cause_class: CauseClass,
    class: RemediationClass,
    advice: Option<RemediationClass>,
    target: Target,
    change: BTreeMap<String, ParamValue>,
    deploy: Option<String>,
    seen_deploy: Option<String>,
    cites: Vec<Cite>,
}

/// What the guard is asked for: exactly these values are digested, approved and executed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ProposalDocument {
    /// Name of the policy action, which is the word of the class.
    pub action: &'static str,
    /// What it is done to.
    pub target: Target,
    /// Parameters, `incident` among them.
    pub change: BTreeMap<String, ParamValue>,
}

impl Proposal {
    pub(crate) fn from_parts(parts: ProposalParts) -> Self {
        let ProposalParts {
            incident,
            hypothesis,
            cause_class,
            class,
            advice,
            target,
            change,
            deploy,
            seen_deploy,
            cites,
        } = parts;
        Self {
            incident,
            hypothesis,
            cause_class,
            class,
            advice,
            target,
            change,
            deploy,
            seen_deploy,
            cites,
        }
    }

    /// The incident that it belongs to.
    #[must_use]
    pub const fn incident(&self) -> &IncidentId {
        &self.incident
    }

    /// The hypothesis that it acts on.
    #[must_use]
    pub fn hypothesis(&self) -> Option<&str> {
        self.hypothesis.as_deref()
    }

    /// The cause that it acts on.
    #[must_use]
    pub const fn cause_class(&self) -> CauseClass {
        self.cause_class
    }

    /// The class of action.
    #[must_use]
    pub const fn class(&self) -> RemediationClass {
        self.class
    }

    /// The class that would be right if this site had an executor for it.
    #[must_use]
    pub const fn advice(&self) -> Option<RemediationClass> {
        self.advice
    }

    /// What it is done to.
    #[must_use]
    pub const fn target(&self) -> &Target {
        &self.target
    }

    /// Parameters, `incident` among them; empty when nothing is changed.
    #[must_use]
    pub const fn change(&self) -> &BTreeMap<String, ParamValue> {
        &self.change
    }

    /// The deploy that a rollback undoes.
    #[must_use]
    pub fn deploy(&self) -> Option<&str> {
        self.deploy.as_deref()
    }

    /// The newest deploy of the target that the evidence showed.
    #[must_use]
    pub fn seen_deploy(&self) -> Option<&str> {
        self.seen_deploy.as_deref()
    }

    /// The evidence that it rests on.
    #[must_use]
    pub fn cites(&self) -> &[Cite] {
        &self.cites
    }

    /// What the guard is asked for.
    #[must_use]
    pub fn document(&self) -> ProposalDocument {
        ProposalDocument {
            action: self.class.as_str(),
            target: self.target.clone(),
            change: self.change.clone(),
        }
    }
}
