//! `/prefs`: what a person prefers to see (console 10.2).

use axum::extract::State;
use axum::http::header::SET_COOKIE;
use axum::response::Response;

use super::login::own_path;
use super::message::Failure;
use crate::console::chrome::Theme;
use crate::console::form::Posted;
use crate::console::{Console, see_other};

/// Takes the form.
///
/// # Errors
/// [`Failure`] never in practice: the address goes back to a page of ours.
pub async fn post(State(console): State<Console>, form: Posted) -> Result<Response, Failure> {
    let theme = Theme::from_word(form.text("theme"));
    let mut response = see_other(own_path(form.text("back")))?;
    let cookie = console.cookies().theme(theme);
    response.headers_mut().append(SET_COOKIE, cookie);
    Ok(response)
}
