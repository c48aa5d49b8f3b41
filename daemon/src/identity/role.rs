//! Roles (console 4.8). What a role may do on which route is the table of `console::routes`.

/// A role of a person.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Role {
    /// Sees.
    Viewer,
    /// Sees, and acts on incidents.
    Responder,
    /// A responder who decides on actions, as far as the guard's policy lets this person.
    Approver,
    /// Sees, and reads the audit log.
    Auditor,
    /// Sees, and changes settings. Never includes approver.
    Admin,
}

impl Role {
    /// Every role.
    pub const ALL: [Self; 5] = [
        Self::Viewer,
        Self::Responder,
        Self::Approver,
        Self::Auditor,
        Self::Admin,
    ];

    /// Its word in the store, on the command line and on pages.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Viewer => "viewer",
            Self::Responder => "responder",
            Self::Approver => "approver",
            Self::Auditor => "auditor",
            Self::Admin => "admin",
        }
    }

    /// Reads a word.
    #[must_use]
    pub fn from_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|role| role.word() == word)
    }

    /// True for the roles that cannot be held without a second factor (console 4.1).
    #[must_use]
    pub const fn needs_totp(self) -> bool {
        match self {
            Self::Approver | Self::Admin => true,
            Self::Viewer | Self::Responder | Self::Auditor => false,
        }
    }
}
