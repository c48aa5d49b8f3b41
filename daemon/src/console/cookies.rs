//! The cookies of console 3.5.

use axum::http::header::COOKIE;
use axum::http::{HeaderMap, HeaderValue};

use super::chrome::Theme;
use crate::identity;

const PAGES: &str = "sentinel";
const WRITES: &str = "sentinel-w";
const BEFORE: &str = "sentinel-pre";
const THEME: &str = "sentinel-theme";

/// The spelling of our cookies: on plain HTTP, which is loopback only, they lose prefix and Secure.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Jar {
    secure: bool,
}

impl Jar {
    /// For a listener with or without TLS.
    #[must_use]
    pub(crate) const fn new(secure: bool) -> Self {
        Self { secure }
    }

    /// The value that opens pages.
    #[must_use]
    pub(crate) fn pages<'a>(&self, headers: &'a HeaderMap) -> Option<&'a str> {
        find(headers, &self.name(PAGES))
    }

    /// The value that every POST needs as well.
    #[must_use]
    pub(crate) fn writes<'a>(&self, headers: &'a HeaderMap) -> Option<&'a str> {
        find(headers, &self.name(WRITES))
    }

    /// The value that the login form is bound to.
    #[must_use]
    pub(crate) fn before<'a>(&self, headers: &'a HeaderMap) -> Option<&'a str> {
        find(headers, &self.name(BEFORE))
    }

    /// The theme.
    #[must_use]
    pub(crate) fn theme_of(&self, headers: &HeaderMap) -> Theme {
        find(headers, &self.name(THEME)).map_or_else(Theme::default, Theme::from_word)
    }

    /// Sets both cookies of a login.
    #[must_use]
    pub(crate) fn begin(&self, cookies: &identity::Cookies) -> [HeaderValue; 2] {
        [
            self.set(PAGES, &cookies.id, "SameSite=Lax; HttpOnly"),
            self.set(WRITES, &cookies.write, "SameSite=Strict; HttpOnly"),
        ]
    }

    /// Takes both away.
    #[must_use]
    pub(crate) fn end(&self) -> [HeaderValue; 2] {
        [
            self.set(PAGES, "", "SameSite=Lax; HttpOnly; Max-Age=0"),
            self.set(WRITES, "", "SameSite=Strict; HttpOnly; Max-Age=0"),
        ]
    }

    /// Sets the cookie before a login.
    #[must_use]
    pub(crate) fn before_login(&self, value: &str) -> HeaderValue {
        self.set(BEFORE, value, "SameSite=Strict; HttpOnly")
    }

    /// Sets the theme for a year.
    #[must_use]
    pub(crate) fn theme(&self, theme: Theme) -> HeaderValue {
        self.set(
            THEME,
            theme.word(),
            "SameSite=Lax; HttpOnly; Max-Age=31536000",
        )
    }

    fn name(self, name: &str) -> String {
        if self.secure {
            format!("__Host-{name}")
        } else {
            name.to_owned()
        }
    }

    fn set(self, name: &str, value: &str, attributes: &str) -> HeaderValue {
        let secure = if self.secure { "; Secure" } else { "" };
        let text = format!("{}={value}; Path=/; {attributes}{secure}", self.name(name));
        // Names, values and attributes are our own letters and digits.
        HeaderValue::try_from(text).unwrap_or_else(|_| HeaderValue::from_static(""))
    }
}

fn find<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers
        .get_all(COOKIE)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(';'))
        .filter_map(|pair| pair.trim().split_once('='))
        .find_map(|(key, value)| (key == name && !value.is_empty()).then_some(value))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cookies() -> identity::Cookies {
        identity::Cookies {
            id: "IDID".to_owned(),
            write: "WRWR".to_owned(),
        }
    }

    #[test]
    fn with_tls_the_cookies_are_bound_to_the_host() {
        let [pages, writes] = Jar::new(true).begin(&cookies());
        assert_eq!(
            pages,
            "__Host-sentinel=IDID; Path=/; SameSite=Lax; HttpOnly; Secure"
        );
        assert_eq!(
            writes,
            "__Host-sentinel-w=WRWR; Path=/; SameSite=Strict; HttpOnly; Secure"
        );
    }

    #[test]
    fn on_loopback_they_lose_prefix_and_secure_only() {
        let jar = Jar::new(false);
        let [pages, writes] = jar.begin(&cookies());
        assert_eq!(pages, "sentinel=IDID; Path=/; SameSite=Lax; HttpOnly");
        assert_eq!(writes, "sentinel-w=WRWR; Path=/; SameSite=Strict; HttpOnly");
        let mut headers = HeaderMap::new();
        headers.insert(
            COOKIE,
            HeaderValue::from_static("a=b; sentinel=IDID; sentinel-w=WRWR"),
        );
        assert_eq!(jar.pages(&headers), Some("IDID"));
        assert_eq!(jar.writes(&headers), Some("WRWR"));
        assert_eq!(Jar::new(true).pages(&headers), None);
    }
}
