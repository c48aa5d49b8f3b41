//! The closed list of event types (guard 6.1.2).

macro_rules! event_types {
    ($($variant:ident $name:literal,)*) => {
        /// What an event records.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
        pub enum EventType {
            $(#[doc = concat!("`", $name, "`")] $variant,)*
        }

        impl EventType {
            /// Every type.
            pub const ALL: &[Self] = &[$(Self::$variant,)*];

            /// The word in the event.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)*
                }
            }

            /// The type that a word names.
            #[must_use]
            pub fn parse(word: &str) -> Option<Self> {
                match word {
                    $($name => Some(Self::$variant),)*
                    _ => None,
                }
            }
        }
    };
}

event_types! {
    KeyCertified "key.certified",
    KeyRotated "key.rotated",
    PolicyLoaded "policy.loaded",
    PolicyRejected "policy.rejected",
    ActionProposed "action.proposed",
    ActionDeduped "action.deduped",
    ActionRefused "action.refused",
    ActionCancelled "action.cancelled",
    ActionExpired "action.expired",
    ActionSuperseded "action.superseded",
    ActionVoided "action.voided",
    DecisionApproved "decision.approved",
    DecisionDenied "decision.denied",
    DecisionRefused "decision.refused",
    DecisionRevoked "decision.revoked",
    CapIssued "cap.issued",
    CapRedelivered "cap.redelivered",
    CapRefused "cap.refused",
    CapLapsed "cap.lapsed",
    SpendOk "spend.ok",
    SpendRefused "spend.refused",
    ExecStarted "exec.started",
    ExecOutcome "exec.outcome",
    ExecRefused "exec.refused",
    ExecInDoubt "exec.in_doubt",
    ExecReconciled "exec.reconciled",
    ClockRegressed "clock.regressed",
    ClockJumped "clock.jumped",
    ClockAcknowledged "clock.acknowledged",
    HoldSet "hold.set",
    HoldReleased "hold.released",
    DbRestored "db.restored",
    AuditRead "audit.read",
    AuditExported "audit.exported",
    AuditBlocked "audit.blocked",
    AuditUnblocked "audit.unblocked",
    PiiErased "pii.erased",
    RefusedRollup "refused.rollup",
    IncidentOpened "incident.opened",
    IncidentEvidence "incident.evidence",
    IncidentDiagnosed "incident.diagnosed",
    IncidentVerified "incident.verified",
    IncidentClosed "incident.closed",
    IncidentRecorded "incident.recorded",
    AuthRecoveryLogin "auth.recovery_login",
    AuthLocked "auth.locked",
    AskReported "ask.reported",
    AdminUser "admin.user",
    AdminToken "admin.token",
    AdminConfig "admin.config",
    AdminModel "admin.model",
    AdminTools "admin.tools",
    AdminSilence "admin.silence",
    AdminBackup "admin.backup",
    AdminRetention "admin.retention",
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_type_parses_back_from_its_word() {
        for kind in EventType::ALL {
            assert_eq!(EventType::parse(kind.as_str()), Some(*kind));
        }
        assert_eq!(EventType::parse("action"), None);
        assert_eq!(EventType::ALL.len(), 55);
    }
}
