//! A posted form that is known to come from one of our pages (console 3.6, 3.9).

use std::collections::BTreeMap;

use axum::Form;
use axum::extract::{FromRequest, Request};
use axum::http::StatusCode;
use axum::response::IntoResponse;

use super::pages::message::Failure;
use super::{Console, Visit};

/// Fields of one form.
const FIELDS: usize = 100;

/// The fields of a form whose token belongs to this login and this path.
pub struct Posted {
    fields: BTreeMap<String, String>,
    nonce: String,
}

impl std::fmt::Debug for Posted {
    /// Without the fields: a password or a code may be among them.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Posted({} fields)", self.fields.len())
    }
}

impl Posted {
    /// The text of a field; empty when it is not there.
    #[must_use]
    pub fn text(&self, name: &str) -> &str {
        self.fields.get(name).map_or("", String::as_str)
    }

    /// The nonce of the form: the same when it is sent again.
    #[must_use]
    pub fn nonce(&self) -> &str {
        &self.nonce
    }
}

impl FromRequest<Console> for Posted {
    type Rejection = Failure;

    async fn from_request(request: Request, console: &Console) -> Result<Self, Failure> {
        let path = request.uri().path().to_owned();
        let visit = request
            .extensions()
            .get::<Visit>()
            .cloned()
            .ok_or(Failure::Unauthenticated)?;
        let Form(pairs) = Form::<Vec<(String, String)>>::from_request(request, console)
            .await
            .map_err(|rejection| match rejection.into_response().status() {
                StatusCode::PAYLOAD_TOO_LARGE => Failure::TooLarge,
                _ => Failure::BadForm,
            })?;
        if pairs.len() > FIELDS {
            return Err(Failure::TooLarge);
        }
        let mut fields = BTreeMap::new();
        for (name, value) in pairs {
            if fields.insert(name, value).is_some() {
                return Err(Failure::BadForm);
            }
        }
        let token = fields.get("form").map_or("", String::as_str);
        let nonce = console
            .open(token, &visit.key(), &path)
            .ok_or(Failure::StaleForm)?;
        Ok(Self { fields, nonce })
    }
}
