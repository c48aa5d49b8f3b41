//! What every page carries around its answer: site, person, state of the box, theme, CLI twin.

use policies::model::Millis;

use super::assets;
use super::view::BarFacts;
use crate::identity::Role;

/// The theme a person chose.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Theme {
    /// As the browser says.
    #[default]
    Auto,
    /// Dark text on light.
    Light,
    /// Light text on dark.
    Dark,
}

impl Theme {
    /// All of them, in the order of the buttons.
    pub const ALL: [Self; 3] = [Self::Auto, Self::Light, Self::Dark];

    /// Its word in the form, the cookie and the page.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Light => "light",
            Self::Dark => "dark",
        }
    }

    /// Reads a word; anything unknown is `auto`.
    #[must_use]
    pub fn from_word(word: &str) -> Self {
        Self::ALL
            .into_iter()
            .find(|theme| theme.word() == word)
            .unwrap_or_default()
    }
}

/// The person who looks.
#[derive(Clone, Debug, PartialEq)]
pub struct Visitor {
    /// Account name.
    pub name: String,
    /// Roles.
    pub roles: Vec<Role>,
    /// Form token of the log-out button.
    pub logout_form: String,
    /// Form token of the preferences.
    pub prefs_form: String,
}

impl Visitor {
    /// The roles in words.
    #[must_use]
    pub fn role_words(&self) -> String {
        let words: Vec<_> = self.roles.iter().map(|role| role.word()).collect();
        words.join(", ")
    }

    /// True when one of the roles is `role`.
    #[must_use]
    pub fn is(&self, role: Role) -> bool {
        self.roles.contains(&role)
    }
}

/// Everything around the answer of a page.
#[derive(Clone, Debug, PartialEq)]
pub struct Chrome {
    /// Name of the site.
    pub site: String,
    /// Who looks; `None` before the login.
    pub visitor: Option<Visitor>,
    /// Theme.
    pub theme: Theme,
    /// Time of the page.
    pub now: Millis,
    /// Newest event that the page has seen.
    pub head: String,
    /// State of the box.
    pub bar: BarFacts,
    /// Section of the bar that is current.
    pub section: &'static str,
    /// Path and query of the page, to come back to.
    pub path: String,
    /// Topics of the live stream; `None` for a page that does not change.
    pub live: Option<String>,
    /// The same on the command line: ids only, never outside text (console 11.1).
    pub twin: String,
}

impl Chrome {
    /// Address of an embedded file.
    #[must_use]
    pub fn asset(&self, name: &str) -> String {
        assets::address(name)
    }

    /// True when the visitor holds `role`.
    #[must_use]
    pub fn is(&self, role: Role) -> bool {
        self.visitor.as_ref().is_some_and(|v| v.is(role))
    }
}
