//! The console: the local web front end (console.md).
//!
//! It reads records and hands decisions to the guard as a delegate; it never mints, executes or
//! alters a proposal. Each page is a function from plain data (`view`) to HTML and is complete
//! without scripts. Outside text reaches a page through one function only (`text`).

mod adapt;
pub mod assets;
pub mod backend;
pub mod chrome;
pub mod clock;
mod cookies;
mod deciding;

pub mod document;
#[cfg(test)]
mod fixtures;
pub mod form;
mod gate;
mod notice;
mod outcomes;
pub mod pages;
pub mod reach;
pub mod records;
pub mod routes;
pub mod text;
pub mod view;
pub mod words;

use std::net::IpAddr;
use std::sync::Arc;

use askama::Template;
use axum::Router;
use axum::body::Bytes;
use axum::extract::{DefaultBodyLimit, FromRequestParts, Path, State};
use axum::http::header::{self, HeaderValue};
use axum::http::request::Parts;
use axum::http::{HeaderMap, StatusCode};
use axum::middleware;
use axum::response::{IntoResponse, Response};
use policies::model::Millis;

use backend::{Backend, Problem};
use chrome::{Chrome, Theme, Visitor};
use pages::message::Failure;
use view::{BarFacts, GuardState};

use crate::events::Bus;
use crate::identity::secret::{FormKey, NoRandom};
use crate::identity::{Identity, Session};

/// Bytes of one form (console 3.9).
const FORM_BYTES: usize = 64 * 1024;
/// Bytes of one report of a browser (console 3.2).
const REPORT_BYTES: usize = 8 * 1024;

/// What the console is made of.
pub struct ConsoleOptions {
    /// Records and decisions.
    pub backend: Arc<dyn Backend>,
    /// Accounts and logins.
    pub identity: Identity,
    /// Changes, for live pages.
    pub bus: Bus,
    /// Name of the site.
    pub site: String,
    /// Host names and addresses under which the console is reached, without port.
    pub names: Vec<String>,
    /// True when the listener speaks TLS.
    pub tls: bool,
    /// The clock.
    pub now: Arc<dyn Fn() -> Millis + Send + Sync>,
    /// Key of form tokens.
    pub form_key: FormKey,
}

impl std::fmt::Debug for ConsoleOptions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "ConsoleOptions({})", self.site)
    }
}

/// The hosts under which a listener is reached: its address, `localhost` for a loopback one, and
/// the configured names.
#[must_use]
pub fn own_hosts(listen: IpAddr, names: &[String]) -> Vec<String> {
    let address = match listen {
        IpAddr::V4(address) => address.to_string(),
        IpAddr::V6(address) => format!("[{address}]"),
    };
    let local = listen.is_loopback().then(|| "localhost".to_owned());
    [address]
        .into_iter()
        .chain(local)
        .chain(names.iter().cloned())
        .collect()
}

/// The state of every handler.
#[derive(Clone)]
pub struct Console {
    shared: Arc<Shared>,
}

struct Shared {
    options: ConsoleOptions,
    outcomes: outcomes::Outcomes,
    streams: pages::stream::Streams,
}

impl std::fmt::Debug for Console {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.shared.options.fmt(f)
    }
}

/// The routes of the console, with everything that stands before them. It has a fallback of its
/// own; a router that is merged with it must not.
pub fn router(options: ConsoleOptions) -> Router {
    let console = Console {
        shared: Arc::new(Shared {
            options,
            outcomes: outcomes::Outcomes::default(),
            streams: pages::stream::Streams::default(),
        }),
    };
    let mut router = Router::new();
    for route in routes::ROUTES {
        let admit = middleware::from_fn_with_state((console.clone(), route), gate::admit);
        router = router.route(route.path, (route.handler)().route_layer(admit));
    }
    router
        .fallback(gate::nowhere)
        .layer(DefaultBodyLimit::max(FORM_BYTES))
        .layer(middleware::from_fn_with_state(
            console.clone(),
            gate::outside,
        ))
        .with_state(console)
}

impl Console {
    fn backend(&self) -> &dyn Backend {
        self.shared.options.backend.as_ref()
    }

    fn identity(&self) -> &Identity {
        &self.shared.options.identity
    }

    fn bus(&self) -> &Bus {
        &self.shared.options.bus
    }

    fn outcomes(&self) -> &outcomes::Outcomes {
        &self.shared.outcomes
    }

    fn streams(&self) -> &pages::stream::Streams {
        &self.shared.streams
    }

    fn now(&self) -> Millis {
        (self.shared.options.now)()
    }

    fn cookies(&self) -> cookies::Jar {
        cookies::Jar::new(self.shared.options.tls)
    }

    fn seal(&self, login: &str, path: &str) -> Result<String, NoRandom> {
        self.shared.options.form_key.seal(login, path)
    }

    fn open(&self, token: &str, login: &str, path: &str) -> Option<String> {
        self.shared.options.form_key.open(token, login, path)
    }

    /// The token of a form that this visitor may send to `path`.
    fn form(&self, visit: &Visit, path: &str) -> Result<String, NoRandom> {
        self.seal(&visit.key(), path)
    }

    /// True for a host, with or without port, under which the console is reached (console 3.4).
    fn is_own_host(&self, host: Option<&str>) -> bool {
        let Some(host) = host else {
            return false;
        };
        let bare = match host.rsplit_once(':') {
            Some((bare, port)) if port.bytes().all(|b| b.is_ascii_digit()) => bare,
            _ => host,
        };
        let names = &self.shared.options.names;
        names.iter().any(|name| name.eq_ignore_ascii_case(bare))
    }

    /// True for a POST that no other site can have caused, as far as its headers say (console 3.6).
    fn is_own_page(&self, headers: &HeaderMap) -> bool {
        let fetch_site = header::HeaderName::from_static("sec-fetch-site");
        if headers.contains_key(&fetch_site) {
            return gate::text(headers, &fetch_site) == Some("same-origin");
        }
        if headers.contains_key(header::ORIGIN) {
            let scheme = if self.shared.options.tls {
                "https"
            } else {
                "http"
            };
            let host = gate::text(headers, &header::HOST).unwrap_or("");
            let own = format!("{scheme}://{host}");
            return gate::text(headers, &header::ORIGIN) == Some(own.as_str());
        }
        true
    }

    /// What stands around every page.
    async fn chrome(&self, visit: &Visit, section: &'static str) -> Chrome {
        let bar = match visit.session() {
            // A page without its bar is worth more than no page.
            Some(_) => self.backend().bar().await.unwrap_or_else(unknown_bar),
            None => BarFacts::default(),
        };
        let form = |path: &str| self.form(visit, path).unwrap_or_default();
        Chrome {
            site: self.shared.options.site.clone(),
            visitor: visit.session().map(|session| Visitor {
                name: session.name.clone(),
                roles: session.roles.clone(),
                logout_form: form("/logout"),
                prefs_form: form("/prefs"),
            }),
            theme: visit.theme,
            now: self.now(),
            head: self.bus().head(),
            bar,
            section,
            path: visit.path.clone(),
            live: None,
            twin: String::new(),
        }
    }
}

fn unknown_bar(problem: Problem) -> BarFacts {
    BarFacts {
        model: "unknown".to_owned(),
        guard: vec![GuardState {
            state: problem.code,
            cause: problem.detail,
        }],
        ..BarFacts::default()
    }
}

/// Who asks, as the gate found out.
#[derive(Clone, Debug)]
pub struct Visit {
    session: Option<Session>,
    before_login: Option<String>,
    theme: Theme,
    path: String,
}

impl Visit {
    fn new(
        session: Option<Session>,
        before_login: Option<String>,
        theme: Theme,
        path: String,
    ) -> Self {
        Self {
            session,
            before_login,
            theme,
            path,
        }
    }

    /// The login, if there is one.
    #[must_use]
    pub fn session(&self) -> Option<&Session> {
        self.session.as_ref()
    }

    /// The cookie before the login.
    fn before_login(&self) -> Option<&str> {
        self.before_login.as_deref()
    }

    /// Account name; empty before the login.
    #[must_use]
    pub fn name(&self) -> &str {
        self.session.as_ref().map_or("", |s| s.name.as_str())
    }

    /// What the forms of this visitor are bound to.
    fn key(&self) -> String {
        match (&self.session, &self.before_login) {
            (Some(session), _) => data_encoding::HEXLOWER.encode(&session.id),
            (None, Some(before)) => before.clone(),
            (None, None) => String::new(),
        }
    }
}

impl<S: Sync> FromRequestParts<S> for Visit {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, _state: &S) -> Result<Self, Failure> {
        parts
            .extensions
            .get::<Self>()
            .cloned()
            .ok_or(Failure::Unauthenticated)
    }
}

/// A page as a response.
fn html(page: &impl Template) -> Result<Response, Failure> {
    let text = page
        .render()
        .map_err(|error| Problem::new("page_not_rendered", error.to_string()))?;
    let kind = [(
        header::CONTENT_TYPE,
        HeaderValue::from_static("text/html; charset=utf-8"),
    )];
    Ok((kind, text).into_response())
}

/// Sends the browser to a page of ours with GET.
fn see_other(path: &str) -> Result<Response, Failure> {
    let location = HeaderValue::try_from(path).map_err(|_| Failure::BadForm)?;
    Ok((StatusCode::SEE_OTHER, [(header::LOCATION, location)]).into_response())
}

/// A file to keep: its name is made of ids only (console 3.10).
fn download(name: &str, media: &'static str, text: String) -> Result<Response, Failure> {
    let disposition = HeaderValue::try_from(format!("attachment; filename=\"{name}\""))
        .map_err(|_| Failure::NotFound)?;
    let headers = [
        (header::CONTENT_TYPE, HeaderValue::from_static(media)),
        (header::CONTENT_DISPOSITION, disposition),
    ];
    Ok((headers, text).into_response())
}

/// `/`: the inbox.
async fn home() -> Result<Response, Failure> {
    see_other("/incidents")
}

/// An embedded file.
async fn files(Path((version, name)): Path<(String, String)>) -> Result<Response, Failure> {
    let asset = assets::find(&version, &name).ok_or(Failure::NotFound)?;
    let headers = [
        (header::CONTENT_TYPE, asset.media),
        (header::CACHE_CONTROL, "public, max-age=31536000, immutable"),
    ];
    Ok((headers, asset.body).into_response())
}

/// A browser says that it refused something: counted, and two of its fields are logged.
async fn reports(State(_console): State<Console>, body: Bytes) -> StatusCode {
    if body.len() > REPORT_BYTES {
        return StatusCode::PAYLOAD_TOO_LARGE;
    }
    let report: serde_json::Value = serde_json::from_slice(&body).unwrap_or_default();
    let field = |name: &str| {
        let value = report.pointer(&format!("/csp-report/{name}"));
        let text = value.and_then(serde_json::Value::as_str).unwrap_or("");
        text::show(&text::short(text)).into_owned()
    };
    metrics::counter!("sentinel_csp_violations_total").increment(1);
    tracing::warn!(
        csp.directive = %field("effective-directive"),
        csp.path = %field("document-uri"),
        "a browser refused something on a page"
    );
    StatusCode::NO_CONTENT
}

#[cfg(test)]
mod tests;
#[cfg(test)]
mod whole_tests;
