//! The one table of routes and roles; the router has no other source (console 4.9).

use axum::routing::{MethodRouter, get, post};

use super::pages::{action, approval, approvals, inbox, incident, login, prefs, stream};
use super::{Console, files, reports};
use crate::identity::Role;

/// Who may call a route.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Anybody.
    Open,
    /// Anybody, by the browser itself: no form, no origin to check.
    Report,
    /// A login with one of these roles.
    Roles(&'static [Role]),
}

/// A method that a route answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verb {
    /// Reads. Changes nothing.
    Get,
    /// Changes, and is answered by a redirect to a page.
    Post,
}

/// One route.
#[derive(Debug)]
pub struct Route {
    /// Method.
    pub verb: Verb,
    /// Path, as axum spells it.
    pub path: &'static str,
    /// Who may call it.
    pub access: Access,
    /// Its handler.
    pub handler: fn() -> MethodRouter<Console>,
}

const ANY: Access = Access::Roles(&Role::ALL);
const DECIDE: Access = Access::Roles(&[Role::Approver]);

const fn read(path: &'static str, access: Access, handler: fn() -> MethodRouter<Console>) -> Route {
    Route {
        verb: Verb::Get,
        path,
        access,
        handler,
    }
}

const fn write(
    path: &'static str,
    access: Access,
    handler: fn() -> MethodRouter<Console>,
) -> Route {
    Route {
        verb: Verb::Post,
        path,
        access,
        handler,
    }
}

/// Every route of the console.
pub const ROUTES: &[Route] = &[
    read("/static/{version}/{name}", Access::Open, || get(files)),
    read("/login", Access::Open, || get(login::get)),
    write("/login", Access::Open, || post(login::post)),
    write("/csp-report", Access::Report, || post(reports)),
    read("/", ANY, || get(super::home)),
    read("/incidents", ANY, || get(inbox::get)),
    read("/incidents/{id}", ANY, || get(incident::get)),
    read("/incidents/{id}/postmortem.md", ANY, || {
        get(incident::markdown)
    }),
    read("/incidents/{id}/postmortem.json", ANY, || {
        get(incident::json)
    }),
    read("/approvals", ANY, || get(approvals::get)),
    read("/approvals/{id}", ANY, || get(approval::get)),
    read("/actions/{id}", ANY, || get(action::get)),
    read("/events", ANY, || get(stream::get)),
    write("/logout", ANY, || post(login::log_out)),
    write("/prefs", ANY, || post(prefs::post)),
    write("/approvals/{id}/approve", DECIDE, || {
        post(approval::approve)
    }),
    write("/approvals/{id}/deny", DECIDE, || post(approval::deny)),
    write("/approvals/{id}/revoke", DECIDE, || post(approval::revoke)),
    write("/actions/{id}/reconcile", DECIDE, || {
        post(action::reconcile)
    }),
];
