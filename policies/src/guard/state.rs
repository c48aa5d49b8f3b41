//! The states of an action and the arrows between them (guard 4.1).

use std::fmt;
use std::str::FromStr;

use serde::{Serialize, Serializer};

macro_rules! states {
    ($($(#[$meta:meta])* $variant:ident = $text:literal,)+) => {
        /// State of an action.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum State { $($(#[$meta])* $variant,)+ }

        impl State {
            /// Every state.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)+];

            /// The word on the wire and in the database.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $text,)+ }
            }
        }

        impl FromStr for State {
            type Err = UnknownState;

            fn from_str(text: &str) -> Result<Self, UnknownState> {
                match text {
                    $($text => Ok(Self::$variant),)+
                    _ => Err(UnknownState(text.to_owned())),
                }
            }
        }
    };
}

states! {
    /// Waits for decisions.
    Pending = "pending",
    /// Approved, nobody has collected the capability.
    Approved = "approved",
    /// The capability was handed out.
    Issued = "issued",
    /// The capability was consumed; the effect may have begun.
    Spent = "spent",
    /// The target answered: done.
    Succeeded = "succeeded",
    /// The target answered: not done.
    Failed = "failed",
    /// Nobody knows whether the effect happened; a person has to say.
    InDoubt = "in_doubt",
    /// A person looked and found it done.
    ReconciledSucceeded = "reconciled_succeeded",
    /// A person looked and found it not done.
    ReconciledFailed = "reconciled_failed",
    /// A person said no.
    Denied = "denied",
    /// No decision in time.
    Expired = "expired",
    /// Taken back by the requester.
    Cancelled = "cancelled",
    /// Another proposal of the requester took its place.
    Superseded = "superseded",
    /// Approved, but not run in time.
    Lapsed = "lapsed",
    /// Approved, then taken back.
    Revoked = "revoked",
    /// Ended by a restore of the log.
    EpochVoid = "epoch_void",
}

/// A word that is no state.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no state of an action")]
pub struct UnknownState(pub String);

impl State {
    /// True where no arrow leads away.
    #[must_use]
    pub const fn is_terminal(self) -> bool {
        match self {
            Self::Pending | Self::Approved | Self::Issued | Self::Spent | Self::InDoubt => false,
            Self::Succeeded
            | Self::Failed
            | Self::ReconciledSucceeded
            | Self::ReconciledFailed
            | Self::Denied
            | Self::Expired
            | Self::Cancelled
            | Self::Superseded
            | Self::Lapsed
            | Self::Revoked
            | Self::EpochVoid => true,
        }
    }

    /// True where guard 4.1 has an arrow from this state to `next`.
    #[must_use]
    pub const fn may_become(self, next: Self) -> bool {
        match self {
            Self::Pending => matches!(
                next,
                Self::Approved
                    | Self::Denied
                    | Self::Expired
                    | Self::Cancelled
                    | Self::Superseded
                    | Self::EpochVoid
            ),
            Self::Approved => matches!(
                next,
                Self::Issued | Self::Lapsed | Self::Revoked | Self::EpochVoid
            ),
            Self::Issued => matches!(
                next,
                Self::Spent | Self::Lapsed | Self::Revoked | Self::EpochVoid
            ),
            Self::Spent => matches!(next, Self::Succeeded | Self::Failed | Self::InDoubt),
            Self::InDoubt => matches!(next, Self::ReconciledSucceeded | Self::ReconciledFailed),
            Self::Succeeded
            | Self::Failed
            | Self::ReconciledSucceeded
            | Self::ReconciledFailed
            | Self::Denied
            | Self::Expired
            | Self::Cancelled
            | Self::Superseded
            | Self::Lapsed
            | Self::Revoked
            | Self::EpochVoid => false,
        }
    }
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl Serialize for State {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::State;

    /// guard 4.1
    #[test]
    fn no_arrow_leaves_a_terminal_state_and_each_other_state_has_one() {
        for &from in State::ALL {
            let leaves = State::ALL.iter().any(|&to| from.may_become(to));
            assert_eq!(leaves, !from.is_terminal(), "{from}");
            assert_eq!(from.as_str().parse(), Ok(from));
        }
    }

    /// guard 4.1
    #[test]
    fn nothing_is_spent_that_was_not_issued_and_nothing_issued_that_was_not_approved() {
        for &from in State::ALL {
            assert_eq!(from.may_become(State::Spent), from == State::Issued);
            assert_eq!(from.may_become(State::Issued), from == State::Approved);
            assert_eq!(from.may_become(State::Approved), from == State::Pending);
        }
    }
}
