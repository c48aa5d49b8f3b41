//! The router with everything that stands before it: host, headers, cookies, forms, roles.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

use axum::body::Body;
use axum::http::header::{self, HeaderName};
use axum::http::{Request, Response, StatusCode};
use http_body_util::BodyExt;
use tower::ServiceExt;

use super::backend::Problem;
use super::fixtures::{self, NOW, Site};
use super::routes::{Access, ROUTES, Verb};
use super::*;
use crate::identity::{FactorFuture, Role, SecondFactor};
use store::logins::Logins;

pub(super) const PASSWORD: &str = "correct horse battery";

/// A guard that takes every code of six digits once.
#[derive(Default)]
struct Once(Mutex<BTreeSet<String>>);

impl SecondFactor for Once {
    fn enroll<'a>(&'a self, _name: &'a str, _secret: [u8; 20]) -> FactorFuture<'a, ()> {
        Box::pin(async { Ok(()) })
    }

    fn locked<'a>(&'a self, _name: &'a str) -> FactorFuture<'a, Option<Millis>> {
        Box::pin(async { Ok(None) })
    }

    fn check<'a>(&'a self, name: &'a str, code: &'a str) -> FactorFuture<'a, bool> {
        let fresh = self.0.lock().unwrap().insert(format!("{name} {code}"));
        Box::pin(async move { Ok(fresh && code.len() == 6) })
    }
}

struct Box7 {
    router: Router,
    site: Arc<Site>,
    bus: Bus,
    codes: std::cell::Cell<u32>,
    _folder: tempfile::TempDir,
}

#[derive(Clone, Debug, Default)]
pub(super) struct Cookies(Vec<(String, String)>);

impl Cookies {
    pub(super) fn header(&self) -> String {
        let pairs: Vec<_> = self.0.iter().map(|(k, v)| format!("{k}={v}")).collect();
        pairs.join("; ")
    }

    pub(super) fn take(&mut self, response: &Response<Body>) {
        for value in response.headers().get_all(header::SET_COOKIE) {
            let pair = value.to_str().unwrap().split(';').next().unwrap();
            let (name, value) = pair.split_once('=').unwrap();
            self.0.retain(|(k, _)| k != name);
            self.0.push((name.to_owned(), value.to_owned()));
        }
    }

    fn without(&self, name: &str) -> Self {
        let mut rest = self.clone();
        rest.0.retain(|(k, _)| k != name);
        rest
    }
}

impl Box7 {
    async fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let logins = Logins::open(&folder.path().join("sentinel.db")).unwrap();
        let factor = Arc::new(Once::default());
        let identity = Identity::new(logins, factor, "plant-7".to_owned()).unwrap();
        for role in Role::ALL {
            identity
                .create_user(&format!("a-{}", role.word()), PASSWORD, &[role], NOW)
                .await
                .unwrap();
        }
        let site = Arc::new(Site {
            incidents: vec![fixtures::incident(1, "")],
            actions: Mutex::new(vec![fixtures::action("act_1", "pending", "")]),
            ..Site::default()
        });
        let bus = Bus::new(|| NOW);
        let router = router(ConsoleOptions {
            backend: Arc::clone(&site) as Arc<dyn Backend>,
            identity,
            bus: bus.clone(),
            site: "plant-7".to_owned(),
            names: own_hosts(std::net::Ipv4Addr::LOCALHOST.into(), &[]),
            tls: false,
            now: Arc::new(|| NOW),
            form_key: FormKey::from_bytes([7; 64]),
        });
        Self {
            router,
            site,
            bus,
            codes: std::cell::Cell::new(100_000),
            _folder: folder,
        }
    }

    async fn send(&self, request: Request<Body>) -> Response<Body> {
        self.router.clone().oneshot(request).await.unwrap()
    }

    async fn get(&self, path: &str, cookies: &Cookies) -> Response<Body> {
        self.send(get(path, cookies).body(Body::empty()).unwrap())
            .await
    }

    async fn page(&self, path: &str, cookies: &Cookies) -> String {
        let response = self.get(path, cookies).await;
        assert_eq!(response.status(), StatusCode::OK, "{path}");
        body(response).await
    }

    async fn post(&self, path: &str, cookies: &Cookies, form: &str) -> Response<Body> {
        self.send(
            post(path, cookies)
                .body(Body::from(form.to_owned()))
                .unwrap(),
        )
        .await
    }

    async fn log_in(&self, name: &str) -> Cookies {
        let mut cookies = Cookies::default();
        let response = self.get("/login", &cookies).await;
        cookies.take(&response);
        let token = token_of(&body(response).await, "/login");
        self.codes.set(self.codes.get() + 1);
        let form = format!(
            "form={token}&next=%2Fincidents&name={name}&password=correct+horse+battery&totp={}",
            self.codes.get()
        );
        let response = self.post("/login", &cookies, &form).await;
        assert_eq!(location(&response), "/incidents");
        cookies.take(&response);
        cookies
    }
}

pub(super) fn get(path: &str, cookies: &Cookies) -> axum::http::request::Builder {
    Request::get(path)
        .header(header::HOST, "127.0.0.1:8080")
        .header(header::COOKIE, cookies.header())
}

pub(super) fn post(path: &str, cookies: &Cookies) -> axum::http::request::Builder {
    Request::post(path)
        .header(header::HOST, "127.0.0.1:8080")
        .header(header::COOKIE, cookies.header())
        .header(header::CONTENT_TYPE, "application/x-www-form-urlencoded")
}

pub(super) async fn body(response: Response<Body>) -> String {
    let bytes = response.into_body().collect().await.unwrap().to_bytes();
    String::from_utf8(bytes.to_vec()).unwrap()
}

pub(super) fn location(response: &Response<Body>) -> &str {
    assert_eq!(response.status(), StatusCode::SEE_OTHER);
    response.headers()[header::LOCATION].to_str().unwrap()
}

/// The token of the form that posts to `action`.
pub(super) fn token_of(html: &str, action: &str) -> String {
    let form = html.split(&format!("action=\"{action}\"")).nth(1).unwrap();
    field_of(form, "form")
}

pub(super) fn field_of(html: &str, name: &str) -> String {
    let value = html.split(&format!("name=\"{name}\" value=\"")).nth(1);
    value.unwrap().split('"').next().unwrap().to_owned()
}

const APPROVE: &str = "/approvals/act_1/approve";

fn approval(html: &str, target: &str) -> String {
    format!(
        "form={}&digest={}&decision_nonce={}&target={target}&totp=123456&reason=the+diff+fits",
        token_of(html, APPROVE),
        field_of(html, "digest"),
        field_of(html, "decision_nonce"),
    )
}

#[tokio::test]
async fn an_approval_whose_dry_run_cannot_be_had_is_still_shown_and_decided() {
    let box7 = Box7::new().await;
    let cookies = box7.log_in("a-approver").await;
    let html = box7.page("/approvals/act_1", &cookies).await;
    assert!(html.contains("the supervisor restarts it"));
    *box7.site.dry_run.lock().unwrap() = Some(Problem::new("no_worker", "none starts"));
    let html = box7.page("/approvals/act_1", &cookies).await;
    assert!(html.contains("no_worker") && html.contains("none starts"));
    let form = approval(&html, "checkout");
    let response = box7.post(APPROVE, &cookies, &form).await;
    let html = box7.page(location(&response), &cookies).await;
    assert!(html.contains("Approval recorded"));
}

#[tokio::test]
async fn an_approver_logs_in_reads_and_approves_without_any_script() {
    let box7 = Box7::new().await;
    let cookies = box7.log_in("a-approver").await;
    let inbox = box7.page("/incidents", &cookies).await;
    assert!(inbox.contains("Checkout answers with errors"));
    let html = box7.page("/approvals/act_1", &cookies).await;
    let form = approval(&html, "checkout");
    let response = box7.post(APPROVE, &cookies, &form).await;
    let after = location(&response).to_owned();
    let result = box7.page(&after, &cookies).await;
    assert!(result.contains("Approval recorded"));
    assert!(result.contains("Audit entry 813."));
    // The same form again: the recorded outcome, and no second decision.
    let again = box7.post(APPROVE, &cookies, &form).await;
    assert_eq!(location(&again), after);
    let decisions = box7.site.decisions.lock().unwrap();
    assert_eq!(decisions.len(), 1);
    assert_eq!(decisions[0].totp.as_deref(), Some("123456"));
    assert_eq!(decisions[0].person, "a-approver");
}

#[tokio::test]
async fn a_refused_decision_is_explained_and_what_was_typed_is_given_back() {
    let box7 = Box7::new().await;
    let cookies = box7.log_in("a-approver").await;
    let html = box7.page("/approvals/act_1", &cookies).await;
    let response = box7
        .post(APPROVE, &cookies, &approval(&html, "payments"))
        .await;
    let result = box7.page(location(&response), &cookies).await;
    assert!(result.contains("No decision of yours was recorded by this."));
    assert!(result.contains("value=\"payments\""));
    assert!(!result.contains("123456"), "a code was given back");
    assert!(box7.site.decisions.lock().unwrap().is_empty());

    *box7.site.refusal.lock().unwrap() = Some(Problem::new("evidence_invalid", "used before"));
    let html = box7.page("/approvals/act_1", &cookies).await;
    let response = box7
        .post(APPROVE, &cookies, &approval(&html, "checkout"))
        .await;
    let result = box7.page(location(&response), &cookies).await;
    assert!(result.contains("The code was not accepted"));
    assert!(result.contains("used before"));
}

#[tokio::test]
async fn an_action_in_doubt_asks_a_person_what_happened() {
    let box7 = Box7::new().await;
    let doubt = fixtures::action("act_2", "in_doubt", "");
    box7.site.actions.lock().unwrap().push(doubt);
    let viewer = box7.log_in("a-viewer").await;
    let html = box7.page("/actions/act_2", &viewer).await;
    assert!(html.contains("It may or may not have happened."));
    assert!(!html.contains("/reconcile"), "a viewer gets the form");

    let cookies = box7.log_in("a-approver").await;
    let html = box7.page("/actions/act_2", &cookies).await;
    let path = "/actions/act_2/reconcile";
    let token = token_of(&html, path);
    let neither = format!("form={token}&reason=looked&totp=123456");
    let response = box7.post(path, &cookies, &neither).await;
    assert_eq!(response.status(), StatusCode::BAD_REQUEST);
    let form = format!("{neither}&found=did_not_happen");
    let response = box7.post(path, &cookies, &form).await;
    let page = box7.page(location(&response), &cookies).await;
    assert!(
        page.contains("A person looked and recorded that it did not happen."),
        "{page}"
    );
    assert!(!page.contains("/reconcile"), "the form is offered again");
}

/// console 3.6
#[tokio::test]
async fn a_post_needs_both_cookies_its_own_token_and_an_own_origin() {
    let box7 = Box7::new().await;
    let cookies = box7.log_in("a-approver").await;
    let html = box7.page("/approvals/act_1", &cookies).await;
    let form = approval(&html, "checkout");
    let status = async |request: axum::http::request::Builder, form: &str| {
        let request = request.body(Body::from(form.to_owned())).unwrap();
        box7.send(request).await.status()
    };
    let ours = || post(APPROVE, &cookies);
    let forbidden = StatusCode::FORBIDDEN;
    assert_eq!(
        status(post(APPROVE, &cookies.without("sentinel-w")), &form).await,
        forbidden
    );
    let nobody = post(APPROVE, &Cookies::default());
    assert_eq!(status(nobody, &form).await, StatusCode::UNAUTHORIZED);
    for (name, value) in [
        ("sec-fetch-site", "cross-site"),
        ("sec-fetch-site", "same-site"),
        ("sec-fetch-site", "none"),
        ("origin", "http://evil.example"),
        ("origin", "null"),
        ("origin", "https://127.0.0.1:8080"),
    ] {
        let request = ours().header(name, value);
        assert_eq!(status(request, &form).await, forbidden, "{name}: {value}");
    }
    for other in [
        form.replacen("form=", "form=x", 1),
        form.replacen("form=", "other=", 1),
        form.replace(
            &token_of(&html, APPROVE),
            &token_of(&html, "/approvals/act_1/deny"),
        ),
    ] {
        assert_eq!(status(ours(), &other).await, forbidden);
    }
    let doubled = format!("{form}&target=checkout");
    assert_eq!(status(ours(), &doubled).await, StatusCode::BAD_REQUEST);
    let large = format!("{form}&x={}", "y".repeat(70_000));
    assert_eq!(status(ours(), &large).await, StatusCode::PAYLOAD_TOO_LARGE);
    assert!(box7.site.decisions.lock().unwrap().is_empty());
    for (name, value) in [
        ("sec-fetch-site", "same-origin"),
        ("origin", "http://127.0.0.1:8080"),
    ] {
        let request = ours().header(name, value);
        assert_eq!(status(request, &form).await, StatusCode::SEE_OTHER);
    }
}

/// console 4.9, 4.10: every route with every role, and without a login.
#[tokio::test]
async fn every_route_lets_in_the_roles_of_its_row_only() {
    let box7 = Box7::new().await;
    let mut visitors = vec![(None, Cookies::default())];
    for role in Role::ALL {
        let cookies = box7.log_in(&format!("a-{}", role.word())).await;
        visitors.push((Some(role), cookies));
    }
    for route in ROUTES {
        let path = route
            .path
            .replace(
                "/incidents/{id}",
                &format!("/incidents/{}", box7.site.incidents[0].row.id),
            )
            .replace("{id}", "act_1");
        for (role, cookies) in &visitors {
            let response = match route.verb {
                Verb::Get => box7.get(&path, cookies).await,
                // Without a form token: who passes the gate is told that the form is stale.
                Verb::Post => box7.post(&path, cookies, "").await,
            };
            let status = response.status();
            let case = format!("{:?} {path} as {role:?}: {status}", route.verb);
            let allowed = match (route.access, role) {
                (Access::Open | Access::Report, _) => true,
                (Access::Roles(_), None) => false,
                (Access::Roles(roles), Some(role)) => roles.contains(role),
            };
            match (allowed, role, route.verb) {
                (true, _, Verb::Get) => assert!(
                    !matches!(status.as_u16(), 401 | 403) && !to_login(&response),
                    "{case}"
                ),
                (true, _, Verb::Post) => {
                    let text = body(response).await;
                    let passed = status == 204 || text.contains("stale_form");
                    assert!(passed, "{case}");
                }
                (false, None, Verb::Get) => assert!(to_login(&response), "{case}"),
                (false, None, Verb::Post) => assert_eq!(status, 401, "{case}"),
                (false, Some(_), _) => {
                    assert_eq!(status, 403, "{case}");
                    assert!(body(response).await.contains("needs the role"), "{case}");
                }
            }
        }
    }
}

fn to_login(response: &Response<Body>) -> bool {
    response
        .headers()
        .get(header::LOCATION)
        .is_some_and(|to| to.to_str().unwrap().starts_with("/login?next="))
}

/// console 3.1, 3.3, 3.4
#[tokio::test]
async fn every_answer_carries_the_headers_and_a_foreign_host_gets_421() {
    let box7 = Box7::new().await;
    let cookies = box7.log_in("a-viewer").await;
    for path in ["/incidents", "/login", "/no-such-page", "/approvals/none"] {
        let response = box7.get(path, &cookies).await;
        let header = |name: &'static str| {
            response.headers()[HeaderName::from_static(name)]
                .to_str()
                .unwrap()
        };
        assert_eq!(
            header("content-security-policy"),
            "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'; require-trusted-types-for 'script'; trusted-types 'none'; report-uri /csp-report"
        );
        assert_eq!(header("x-content-type-options"), "nosniff");
        assert_eq!(header("referrer-policy"), "no-referrer");
        assert_eq!(header("x-frame-options"), "DENY");
        assert_eq!(header("cross-origin-opener-policy"), "same-origin");
        assert_eq!(header("cross-origin-resource-policy"), "same-origin");
        assert_eq!(header("cache-control"), "no-store");
        assert!(!response.headers().contains_key("server"));
    }
    for host in [
        "evil.example",
        "127.0.0.1.evil.example",
        "127.0.0.2:8080",
        "",
    ] {
        let request = Request::get("/login").header(header::HOST, host);
        let response = box7.send(request.body(Body::empty()).unwrap()).await;
        assert_eq!(response.status(), StatusCode::MISDIRECTED_REQUEST, "{host}");
    }
    let css = box7
        .get(&assets::address("console.css"), &Cookies::default())
        .await;
    assert_eq!(css.status(), StatusCode::OK);
    assert_eq!(
        css.headers()[header::CACHE_CONTROL],
        "public, max-age=31536000, immutable"
    );
}

#[test]
fn a_listener_is_reached_by_its_address_and_by_the_configured_names() {
    let names = ["sentinel.plant-7.example".to_owned()];
    let hosts = |listen: &str| own_hosts(listen.parse().unwrap(), &names);
    assert_eq!(
        hosts("127.0.0.1"),
        ["127.0.0.1", "localhost", "sentinel.plant-7.example"]
    );
    assert_eq!(hosts("::1")[0], "[::1]");
    assert_eq!(hosts("10.0.0.7"), ["10.0.0.7", "sentinel.plant-7.example"]);
}

#[tokio::test]
async fn an_unknown_object_and_an_unknown_page_answer_alike() {
    let box7 = Box7::new().await;
    let cookies = box7.log_in("a-viewer").await;
    for path in [
        "/incidents/inc_none",
        "/approvals/none",
        "/actions/none",
        "/nothing",
    ] {
        let response = box7.get(path, &cookies).await;
        assert_eq!(response.status(), StatusCode::NOT_FOUND, "{path}");
        assert!(body(response).await.contains("Not here"), "{path}");
    }
}

#[tokio::test]
async fn a_wrong_code_and_a_wrong_name_get_the_same_page() {
    let box7 = Box7::new().await;
    let mut cookies = Cookies::default();
    let response = box7.get("/login", &cookies).await;
    cookies.take(&response);
    let token = token_of(&body(response).await, "/login");
    let mut pages = Vec::new();
    for (name, code) in [("a-viewer", "1"), ("nobody", "222222")] {
        let form = format!("form={token}&name={name}&password=correct+horse+battery&totp={code}");
        let response = box7.post("/login", &cookies, &form).await;
        let page = box7.page(location(&response), &cookies).await;
        assert!(page.contains("do not fit together"));
        let token = token_of(&page, "/login");
        pages.push(page.replace(&token, ""));
    }
    assert_eq!(pages[0], pages[1]);
}

#[tokio::test]
async fn after_a_log_out_the_cookies_open_nothing() {
    let box7 = Box7::new().await;
    let cookies = box7.log_in("a-viewer").await;
    let html = box7.page("/incidents", &cookies).await;
    let form = format!("form={}", token_of(&html, "/logout"));
    let response = box7.post("/logout", &cookies, &form).await;
    assert_eq!(location(&response), "/login");
    assert!(to_login(&box7.get("/incidents", &cookies).await));
}

#[tokio::test]
async fn a_theme_is_kept_in_a_cookie_and_leads_back() {
    let box7 = Box7::new().await;
    let mut cookies = box7.log_in("a-viewer").await;
    let html = box7.page("/approvals", &cookies).await;
    let form = format!(
        "form={}&theme=dark&back=%2Fapprovals",
        token_of(&html, "/prefs")
    );
    let response = box7.post("/prefs", &cookies, &form).await;
    assert_eq!(location(&response), "/approvals");
    cookies.take(&response);
    let html = box7.page("/approvals", &cookies).await;
    assert!(html.contains("data-theme=\"dark\""));
}

/// console 5.3: a page that missed something is told at once.
#[tokio::test]
async fn the_stream_says_which_object_changed_and_nothing_about_it() {
    let box7 = Box7::new().await;
    let cookies = box7.log_in("a-viewer").await;
    let seen = box7.bus.head();
    box7.bus.publish("incident", "inc_other".to_owned());
    box7.bus.publish("incident", "inc_a".to_owned());
    let path = format!("/events?topics=incident:inc_a&after={seen}");
    let response = box7.get(&path, &cookies).await;
    assert_eq!(
        response.headers()[header::CONTENT_TYPE],
        "text/event-stream"
    );
    let mut stream = response.into_body();
    let frame = stream.frame().await.unwrap().unwrap();
    let text = String::from_utf8(frame.into_data().unwrap().to_vec()).unwrap();
    assert!(text.contains("event: incident\n"), "{text}");
    assert!(text.contains("\"object\":\"inc_a\""), "{text}");
    assert!(
        text.contains(&format!("id: {}\n", box7.bus.head())),
        "{text}"
    );
}
