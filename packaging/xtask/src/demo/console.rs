//! A person at a browser: pages, cookies and the forms that stand on the pages. There is no other
//! way in here than the one a person has.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use ureq::Agent;

use super::totp::Authenticator;

const TIMEOUT: Duration = Duration::from_secs(20);

/// A browser without JavaScript.
pub(super) struct Browser {
    agent: Agent,
    origin: String,
    cookies: BTreeMap<String, String>,
}

/// What came back.
struct Page {
    status: u16,
    location: Option<String>,
    body: String,
}

impl Browser {
    /// Opens nothing yet.
    pub(super) fn new(address: &str) -> Self {
        let agent = Agent::config_builder()
            .http_status_as_error(false)
            .max_redirects(0)
            .max_redirects_will_error(false)
            .proxy(None)
            .timeout_global(Some(TIMEOUT))
            .build()
            .into();
        Self {
            agent,
            origin: format!("http://{address}"),
            cookies: BTreeMap::new(),
        }
    }

    /// The status of a page; `None` when nobody answers.
    pub(super) fn status(&mut self, path: &str) -> Option<(u16, String)> {
        self.get(path).ok().map(|page| (page.status, page.body))
    }

    /// Logs in by the form of `/login`.
    pub(super) fn log_in(
        &mut self,
        name: &str,
        password: &str,
        codes: &mut Authenticator,
    ) -> Result<()> {
        let page = self.get("/login")?;
        let mut form = form(&page.body, "/login").context("`/login` has no form")?;
        form.insert("name".to_owned(), name.to_owned());
        form.insert("password".to_owned(), password.to_owned());
        form.insert("totp".to_owned(), codes.fresh()?);
        let page = self.post("/login", &form)?;
        let to = page.location.unwrap_or_default();
        if page.status != 303 || to.starts_with("/login") {
            bail!("{name} cannot log in: {} to `{to}`", page.status);
        }
        Ok(())
    }

    /// Approves by the form of `/approvals/ID`: the name of the target is typed, and the code is
    /// one that was not used yet.
    pub(super) fn approve(
        &mut self,
        action: &str,
        target: &str,
        reason: &str,
        codes: &mut Authenticator,
    ) -> Result<()> {
        let list = self.get("/approvals")?;
        let path = format!("/approvals/{action}");
        if !list.body.contains(&path) {
            bail!("`/approvals` does not show {action}");
        }
        let page = self.get(&path)?;
        let to = format!("{path}/approve");
        let mut form = form(&page.body, &to)
            .with_context(|| format!("`{path}` ({}) offers no form to approve", page.status))?;
        form.insert("target".to_owned(), target.to_owned());
        form.insert("reason".to_owned(), reason.to_owned());
        form.insert("totp".to_owned(), codes.fresh()?);
        let page = self.post(&to, &form)?;
        let done = page.location.unwrap_or_default();
        if page.status != 303 {
            bail!("`{to}` answers {}", page.status);
        }
        let page = self.get(&done)?;
        if page.body.contains(&format!("action=\"{to}\"")) {
            bail!("the approval was not taken: {}", notice(&page.body));
        }
        Ok(())
    }

    fn get(&mut self, path: &str) -> Result<Page> {
        let answer = self
            .agent
            .get(format!("{}{path}", self.origin))
            .header("cookie", self.jar())
            .call()
            .with_context(|| format!("GET {path}"))?;
        self.take(answer)
    }

    fn post(&mut self, path: &str, form: &BTreeMap<String, String>) -> Result<Page> {
        let answer = self
            .agent
            .post(format!("{}{path}", self.origin))
            .header("cookie", self.jar())
            .header("origin", &self.origin)
            .send_form(form.iter())
            .with_context(|| format!("POST {path}"))?;
        self.take(answer)
    }

    fn jar(&self) -> String {
        let pairs: Vec<String> = self
            .cookies
            .iter()
            .map(|(k, v)| format!("{k}={v}"))
            .collect();
        pairs.join("; ")
    }

    fn take(&mut self, mut answer: ureq::http::Response<ureq::Body>) -> Result<Page> {
        for value in answer.headers().get_all("set-cookie") {
            let pair = value.to_str().unwrap_or_default().split(';').next();
            if let Some((name, value)) = pair.and_then(|p| p.split_once('=')) {
                if value.is_empty() {
                    self.cookies.remove(name);
                } else {
                    self.cookies.insert(name.to_owned(), value.to_owned());
                }
            }
        }
        let location = answer
            .headers()
            .get("location")
            .and_then(|v| v.to_str().ok())
            .map(str::to_owned);
        Ok(Page {
            status: answer.status().as_u16(),
            location,
            body: answer.body_mut().read_to_string()?,
        })
    }
}

/// The hidden fields of the form that posts to `action`.
fn form(page: &str, action: &str) -> Option<BTreeMap<String, String>> {
    let (_, rest) = page.split_once(&format!("<form method=\"post\" action=\"{action}\""))?;
    let (inside, _) = rest.split_once("</form>")?;
    let mut fields = BTreeMap::new();
    for input in inside.split("<input type=\"hidden\" ").skip(1) {
        let name = attribute(input, "name")?;
        fields.insert(name, attribute(input, "value")?);
    }
    Some(fields)
}

fn attribute(tag: &str, name: &str) -> Option<String> {
    let (tag, _) = tag.split_once('>')?;
    let (_, rest) = tag.split_once(&format!("{name}=\""))?;
    let (value, _) = rest.split_once('"')?;
    Some(unescaped(value))
}

fn unescaped(text: &str) -> String {
    text.replace("&lt;", "<")
        .replace("&gt;", ">")
        .replace("&quot;", "\"")
        .replace("&#34;", "\"")
        .replace("&#39;", "'")
        .replace("&amp;", "&")
}

/// The words of the notice on a page, without its markup.
fn notice(page: &str) -> String {
    let inside = page
        .split_once("id=\"notice-title\">")
        .and_then(|(_, rest)| rest.split_once("</section>"))
        .map_or("no reason is shown", |(inside, _)| inside);
    let mut out = String::new();
    let mut in_tag = false;
    for c in inside.chars() {
        match c {
            '<' => {
                in_tag = true;
                out.push(' ');
            }
            '>' => in_tag = false,
            c if !in_tag => out.push(c),
            _ => {}
        }
    }
    unescaped(&out.split_whitespace().collect::<Vec<_>>().join(" "))
}

#[cfg(test)]
mod tests {
    use super::{form, notice};

    #[test]
    fn hidden_fields_are_those_of_the_asked_form_only() {
        let page = "<form method=\"post\" action=\"/a\"><input type=\"hidden\" name=\"form\" value=\"A\"></form>\
            <form method=\"post\" action=\"/b\"><input type=\"hidden\" name=\"form\" value=\"B&amp;\">\
            <input type=\"hidden\" name=\"digest\" value=\"sha\"><input name=\"target\" value=\"x\"></form>";
        let fields = form(page, "/b").unwrap();
        assert_eq!(fields.get("form").map(String::as_str), Some("B&"));
        assert_eq!(fields.get("digest").map(String::as_str), Some("sha"));
        assert_eq!(fields.len(), 2);
        assert!(form(page, "/c").is_none());
    }

    #[test]
    fn a_notice_is_read_without_its_markup() {
        let page = "<h2 id=\"notice-title\">Refused</h2><p>The code was <b>used</b>.</p></section>";
        assert_eq!(notice(page), "Refused The code was used .");
    }
}
