//! `Spent`: the one thing that the scheduler releases an effect for (design.md 1, guard 1.5).

use policies::guard::{ActionDoc, SpendGrant};
use policies::model::Millis;

/// Proof that a `spend.ok` leaf is committed, copied and anchored. Made by
/// [`super::Committed::receipt`] only.
#[derive(Debug)]
pub struct Receipt {
    pub(super) jti: String,
    pub(super) index: u64,
    pub(super) event: String,
}

impl Receipt {
    /// Index of the leaf.
    #[must_use]
    pub fn index(&self) -> u64 {
        self.index
    }

    /// The leaf itself.
    #[must_use]
    pub fn event(&self) -> &str {
        &self.event
    }
}

/// A capability that was consumed, once, durably. It is taken by value by whatever begins the
/// effect; it cannot be copied or stored.
#[derive(Debug)]
pub struct Spent {
    grant: SpendGrant,
    receipt: Receipt,
}

impl Spent {
    /// Joins what was granted with the receipt of its commit; `None` where they do not belong
    /// together.
    #[must_use]
    pub fn new(grant: SpendGrant, receipt: Receipt) -> Option<Self> {
        (grant.jti() == receipt.jti).then_some(Self { grant, receipt })
    }

    /// The action.
    #[must_use]
    pub fn aid(&self) -> &str {
        self.grant.aid()
    }

    /// The capability.
    #[must_use]
    pub fn jti(&self) -> &str {
        self.grant.jti()
    }

    /// Exactly what may be done.
    #[must_use]
    pub fn doc(&self) -> &ActionDoc {
        self.grant.doc()
    }

    /// The job.
    #[must_use]
    pub fn job(&self) -> &str {
        self.grant.job()
    }

    /// Its fence.
    #[must_use]
    pub fn fence(&self) -> i64 {
        self.grant.fence()
    }

    /// Until when the effect must be over.
    #[must_use]
    pub fn effect_deadline(&self) -> Millis {
        self.grant.effect_deadline()
    }

    /// Index of the `spend.ok` leaf.
    #[must_use]
    pub fn index(&self) -> u64 {
        self.receipt.index
    }
}
