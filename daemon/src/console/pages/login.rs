//! `/login`: who are you? (console 6.2)

use askama::Template;
use axum::extract::{Query, State};
use axum::http::header::SET_COOKIE;
use axum::response::Response;
use serde::Deserialize;

use super::message::Failure;
use crate::console::chrome::Chrome;
use crate::console::form::Posted;
use crate::console::{Console, Visit, clock, html, see_other};
use crate::identity::{Answer, secret};

/// The page.
#[derive(Template)]
#[template(path = "login.html")]
pub struct Page<'a> {
    /// Around it.
    pub chrome: &'a Chrome,
    /// Form token.
    pub form: &'a str,
    /// Where to go afterwards.
    pub next: &'a str,
    /// Name typed before.
    pub name: &'a str,
    /// Why the last try failed.
    pub problem: Option<String>,
}

/// Address of the page.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct Address {
    next: String,
    failed: Option<String>,
    wait: Option<i64>,
}

/// A path of this console, never an address elsewhere.
#[must_use]
pub fn own_path(path: &str) -> &str {
    let own = path.starts_with('/')
        && !path.starts_with("//")
        && path.len() <= 512
        && path
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || b"/-_.~?=&:,%".contains(&b));
    if own { path } else { "/incidents" }
}

/// Answers the page, and gives a browser without one the cookie that its form is bound to.
///
/// # Errors
/// [`Failure`] when no random bytes can be had.
pub async fn get(
    State(console): State<Console>,
    visit: Visit,
    Query(address): Query<Address>,
) -> Result<Response, Failure> {
    let next = own_path(&address.next);
    if visit.session().is_some() {
        return see_other(next);
    }
    let (before, fresh) = match visit.before_login() {
        Some(value) => (value.to_owned(), false),
        None => (secret::token()?, true),
    };
    let form = console.seal(&before, "/login")?;
    let now = console.now();
    let problem = match (address.wait, &address.failed) {
        (Some(until), _) if until > now.0 => Some(format!(
            "Too many tries. The next one is taken {} ({}).",
            clock::relative(&policies::model::Millis(until), &now),
            clock::absolute(&policies::model::Millis(until)),
        )),
        (_, Some(_)) => Some(
            "Name, password and code do not fit together, or the code was used before. Use the \
             next code."
                .to_owned(),
        ),
        _ => None,
    };
    let chrome = console.chrome(&visit, "login").await;
    let mut response = html(&Page {
        chrome: &chrome,
        form: &form,
        next,
        name: "",
        problem,
    })?;
    if fresh {
        let cookie = console.cookies().before_login(&before);
        response.headers_mut().append(SET_COOKIE, cookie);
    }
    Ok(response)
}

/// Takes the form.
///
/// # Errors
/// [`Failure`] when the try could not be judged.
pub async fn post(State(console): State<Console>, form: Posted) -> Result<Response, Failure> {
    let next = own_path(form.text("next"));
    let answer = console
        .identity()
        .log_in(
            form.text("name").trim(),
            form.text("password"),
            form.text("totp").trim(),
            console.now(),
        )
        .await?;
    let next_part = secret::percent(next);
    match answer {
        Answer::In(cookies) => {
            let mut response = see_other(next)?;
            for cookie in console.cookies().begin(&cookies) {
                response.headers_mut().append(SET_COOKIE, cookie);
            }
            Ok(response)
        }
        Answer::Refused => see_other(&format!("/login?failed=1&next={next_part}")),
        Answer::Wait(until) => see_other(&format!("/login?wait={}&next={next_part}", until.0)),
    }
}

/// Ends the login.
///
/// # Errors
/// [`Failure`] of the database.
pub async fn log_out(
    State(console): State<Console>,
    visit: Visit,
    _form: Posted,
) -> Result<Response, Failure> {
    if let Some(session) = visit.session() {
        console.identity().log_out(&session.id)?;
    }
    let mut response = see_other("/login")?;
    for cookie in console.cookies().end() {
        response.headers_mut().append(SET_COOKIE, cookie);
    }
    Ok(response)
}

#[cfg(test)]
mod tests {
    use super::own_path;

    #[test]
    fn a_return_path_stays_inside_the_console() {
        assert_eq!(own_path("/incidents/inc_a?x=1"), "/incidents/inc_a?x=1");
        for path in [
            "",
            "//evil.example",
            "https://evil.example",
            "/\\evil",
            "/a\nb",
            "/<b>",
        ] {
            assert_eq!(own_path(path), "/incidents", "{path}");
        }
    }
}
