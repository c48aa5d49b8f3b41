//! The page that says why there is no other: code, cause, fix (console 1.8, 4.10).

use askama::Template;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};

use crate::console::backend::Problem;
use crate::console::chrome::Chrome;
use crate::identity::Role;
use crate::identity::secret::NoRandom;

/// Why a page could not be answered. It travels inside the response to the gate, which knows the
/// visitor and renders it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Failure {
    /// No such object, or one that this person may not see.
    #[error("there is no such object")]
    NotFound,
    /// The person lacks a role.
    #[error("the role is missing")]
    Forbidden(&'static [Role]),
    /// A POST without login.
    #[error("there is no login")]
    Unauthenticated,
    /// A POST that did not come from our own page.
    #[error("the request did not come from a page of this console")]
    Foreign,
    /// A form that is too old, was tampered with, or belongs to another login.
    #[error("the form is not valid any more")]
    StaleForm,
    /// A form that cannot be read.
    #[error("the form cannot be read")]
    BadForm,
    /// A body beyond the limit.
    #[error("the form is too large")]
    TooLarge,
    /// Too many open streams.
    #[error("too many pages are live")]
    TooManyStreams,
    /// A refusal or a failure behind the console.
    #[error(transparent)]
    Problem(#[from] Problem),
}

impl From<NoRandom> for Failure {
    fn from(error: NoRandom) -> Self {
        Self::Problem(Problem::new("no_random", error.to_string()))
    }
}

impl From<crate::identity::Error> for Failure {
    fn from(error: crate::identity::Error) -> Self {
        Self::Problem(Problem::new("identity_unavailable", error.to_string()))
    }
}

impl Failure {
    /// Status of the answer.
    #[must_use]
    pub const fn status(&self) -> StatusCode {
        match self {
            Self::NotFound => StatusCode::NOT_FOUND,
            Self::Forbidden(_) | Self::Foreign | Self::StaleForm => StatusCode::FORBIDDEN,
            Self::Unauthenticated => StatusCode::UNAUTHORIZED,
            Self::BadForm => StatusCode::BAD_REQUEST,
            Self::TooLarge => StatusCode::PAYLOAD_TOO_LARGE,
            Self::TooManyStreams => StatusCode::TOO_MANY_REQUESTS,
            Self::Problem(_) => StatusCode::SERVICE_UNAVAILABLE,
        }
    }
}

impl IntoResponse for Failure {
    fn into_response(self) -> Response {
        let mut response = self.status().into_response();
        response.extensions_mut().insert(self);
        response
    }
}

/// What the page says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    /// Heading.
    pub title: &'static str,
    /// Cause.
    pub cause: String,
    /// Fix.
    pub fix: &'static str,
    /// Stable code.
    pub code: String,
    /// Where to go.
    pub link: &'static str,
    /// Words of that link.
    pub link_label: &'static str,
}

impl From<&Failure> for Message {
    fn from(failure: &Failure) -> Self {
        let (title, cause, fix, code) = match failure {
            Failure::NotFound => (
                "Not here",
                "There is no such page or object, or you may not see it.".to_owned(),
                "Check the address, or look in the list.",
                "not_found",
            ),
            Failure::Forbidden(roles) => (
                "Your role does not include this",
                format!("It needs the role {}.", one_of(roles)),
                "An admin grants roles.",
                "role_forbidden",
            ),
            Failure::Unauthenticated => (
                "Nobody is logged in",
                "The login has ended, so nothing was done.".to_owned(),
                "Log in and send the form again.",
                "unauthenticated",
            ),
            Failure::Foreign => (
                "Refused",
                "The request did not come from a page of this console. Nothing was done."
                    .to_owned(),
                "Open the page here and send its form.",
                "foreign_request",
            ),
            Failure::StaleForm => (
                "This form is not valid any more",
                "It is older than this login or than the last restart. Nothing was done."
                    .to_owned(),
                "Open the page again and send the new form.",
                "stale_form",
            ),
            Failure::BadForm => (
                "The form could not be read",
                "A field is missing, doubled or not text. Nothing was done.".to_owned(),
                "Open the page again and send its form.",
                "malformed",
            ),
            Failure::TooLarge => (
                "The form is too large",
                "A form holds 64 KiB and 100 fields at most. Nothing was done.".to_owned(),
                "Shorten what you typed.",
                "too_large",
            ),
            Failure::TooManyStreams => (
                "Not live",
                "Too many pages are live at once.".to_owned(),
                "Close some, or reload by hand.",
                "too_many_streams",
            ),
            Failure::Problem(problem) => (
                "This could not be answered",
                problem.detail.clone(),
                "Try again; if it stays, look at the log of the service.",
                problem.code.as_str(),
            ),
        };
        let (link, link_label) = match failure {
            Failure::Unauthenticated => ("/login", "Log in"),
            _ => ("/incidents", "To the incidents"),
        };
        Self {
            title,
            cause,
            fix,
            code: code.to_owned(),
            link,
            link_label,
        }
    }
}

fn one_of(roles: &[Role]) -> String {
    let words: Vec<_> = roles.iter().map(|role| role.word()).collect();
    words.join(" or ")
}

/// The page.
#[derive(Template)]
#[template(path = "message.html")]
pub struct Page<'a> {
    /// Around it.
    pub chrome: &'a Chrome,
    /// What it says.
    pub message: &'a Message,
}
