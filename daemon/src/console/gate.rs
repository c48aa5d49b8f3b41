//! What stands before every page: host, headers, origin of a POST, login, role (console 3, 4).

use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::header::{self, HeaderName, HeaderValue};
use axum::http::{HeaderMap, Method, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use super::pages::message::{self, Failure, Message};
use super::routes::{Access, Route};
use super::{Console, Visit, html, see_other};
use crate::identity::secret;

/// console 3.1, byte for byte.
pub(crate) const CSP: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; \
    connect-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'; \
    require-trusted-types-for 'script'; trusted-types 'none'; report-uri /csp-report";

/// console 3.3: every feature of a browser that a page could ask for is off.
pub(crate) const PERMISSIONS: &str = "accelerometer=(), autoplay=(), camera=(), \
    clipboard-read=(), display-capture=(), encrypted-media=(), fullscreen=(), gamepad=(), \
    geolocation=(), gyroscope=(), hid=(), idle-detection=(), local-fonts=(), magnetometer=(), \
    microphone=(), midi=(), payment=(), picture-in-picture=(), publickey-credentials-get=(), \
    screen-wake-lock=(), serial=(), usb=(), xr-spatial-tracking=()";

const HEADERS: [(HeaderName, &str); 7] = [
    (header::CONTENT_SECURITY_POLICY, CSP),
    (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (header::REFERRER_POLICY, "no-referrer"),
    (
        HeaderName::from_static("cross-origin-opener-policy"),
        "same-origin",
    ),
    (
        HeaderName::from_static("cross-origin-resource-policy"),
        "same-origin",
    ),
    (HeaderName::from_static("permissions-policy"), PERMISSIONS),
    (header::X_FRAME_OPTIONS, "DENY"),
];

/// Refuses a foreign host and puts the headers on every answer. What is not a file of ours is
/// never kept by a cache.
pub(crate) async fn outside(
    State(console): State<Console>,
    request: Request,
    next: Next,
) -> Response {
    let mut response = if console.is_own_host(host(&request)) {
        next.run(request).await
    } else {
        StatusCode::MISDIRECTED_REQUEST.into_response()
    };
    let headers = response.headers_mut();
    for (name, value) in HEADERS {
        headers.insert(name, HeaderValue::from_static(value));
    }
    headers
        .entry(header::CACHE_CONTROL)
        .or_insert(HeaderValue::from_static("no-store"));
    response
}

/// Lets a request through to the handler of its route, or answers for it.
pub(crate) async fn admit(
    State((console, route)): State<(Console, &'static Route)>,
    mut request: Request,
    next: Next,
) -> Response {
    let visit = match visit(&console, &request) {
        Ok(visit) => visit,
        Err(failure) => return failure.into_response(),
    };
    if let Err(refusal) = judge(&console, route, &visit, &request) {
        return answer(&console, &visit, *refusal).await;
    }
    request.extensions_mut().insert(visit.clone());
    let response = next.run(request).await;
    answer(&console, &visit, response).await
}

/// The answer for an address that no route has.
pub(crate) async fn nowhere(State(console): State<Console>, request: Request) -> Response {
    match visit(&console, &request) {
        // Without a login nothing is said about what exists.
        Ok(visit) if visit.session().is_none() => to_login(&request),
        Ok(visit) => answer(&console, &visit, Failure::NotFound.into_response()).await,
        Err(failure) => failure.into_response(),
    }
}

fn visit(console: &Console, request: &Request) -> Result<Visit, Failure> {
    let headers = request.headers();
    let jar = console.cookies();
    let by_person = !headers.contains_key("sentinel-live") && request.uri().path() != "/events";
    let session = match jar.pages(headers) {
        Some(id) => console
            .identity()
            .resume(id, jar.writes(headers), by_person, console.now())?,
        None => None,
    };
    Ok(Visit::new(
        session,
        jar.before(headers).map(str::to_owned),
        jar.theme_of(headers),
        path_of(request),
    ))
}

fn judge(
    console: &Console,
    route: &Route,
    visit: &Visit,
    request: &Request,
) -> Result<(), Box<Response>> {
    let refuse = |failure: Failure| Err(Box::new(failure.into_response()));
    let posted = request.method() == Method::POST;
    if posted && route.access != Access::Report && !console.is_own_page(request.headers()) {
        return refuse(Failure::Foreign);
    }
    let roles = match route.access {
        Access::Open | Access::Report => return Ok(()),
        Access::Roles(roles) => roles,
    };
    match visit.session() {
        None if posted => refuse(Failure::Unauthenticated),
        None => Err(Box::new(to_login(request))),
        Some(session) if posted && !session.may_write => refuse(Failure::Foreign),
        Some(session) if !session.roles.iter().any(|role| roles.contains(role)) => {
            refuse(Failure::Forbidden(roles))
        }
        Some(_) => Ok(()),
    }
}

/// Renders the failure that a handler left in its response, for the person who is looking.
async fn answer(console: &Console, visit: &Visit, response: Response) -> Response {
    let Some(failure) = response.extensions().get::<Failure>().cloned() else {
        return response;
    };
    if let Failure::Problem(problem) = &failure {
        tracing::error!(error.code = %problem.code, "a page could not be answered: {}", problem.detail);
    }
    let chrome = console.chrome(visit, "").await;
    let page = html(&message::Page {
        chrome: &chrome,
        message: &Message::from(&failure),
    });
    match page {
        Ok(mut page) => {
            *page.status_mut() = failure.status();
            page
        }
        Err(_) => (failure.status(), Body::empty()).into_response(),
    }
}

fn to_login(request: &Request) -> Response {
    let next = secret::percent(&path_of(request));
    see_other(&format!("/login?next={next}")).unwrap_or_else(IntoResponse::into_response)
}

fn path_of(request: &Request) -> String {
    request
        .uri()
        .path_and_query()
        .map_or_else(|| "/".to_owned(), ToString::to_string)
}

/// The host that the client means: of the address in HTTP/2, of the header before.
fn host(request: &Request) -> Option<&str> {
    request
        .uri()
        .authority()
        .map(axum::http::uri::Authority::as_str)
        .or_else(|| text(request.headers(), &header::HOST))
}

/// A header that came once and is text.
pub(super) fn text<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Option<&'a str> {
    let mut values = headers.get_all(name).iter();
    let first = values.next()?.to_str().ok()?;
    values.next().is_none().then_some(first)
}
