//! Passwords in URLs and on command lines. Host, port, user and database stay.

use super::scan::{Hits, before, byte, run_end, slice};
use super::secret::is_placeholder;
use super::{Anchor, Entity, Kind};

pub(crate) const ENTITY: Entity = Entity {
    name: "urlcred",
    anchor: Anchor::Literals(
        &[
            "://",
            "--password",
            "--passwd",
            "--pass",
            "--token",
            "--api-key",
            "--secret",
            " -u ",
            "--user ",
            " password ",
            "thin:",
            "sshpass -p ",
            ";pwd=",
            ";password=",
            "; pwd=",
            "; password=",
        ],
        scan,
    ),
};

fn scan(text: &str, start: usize, word: &'static str, hits: &mut Hits) {
    match word {
        "://" => userinfo(text, start, hits),
        " -u " | "--user " => basic(text, start + word.len(), hits),
        "thin:" => oracle(text, start + word.len(), hits),
        "sshpass -p " => flag(text, start + word.len() - 1, hits),
        _ if word.starts_with(';') => property(text, start + word.len(), hits),
        " password " => netrc(text, start, start + word.len(), hits),
        _ => flag(text, start + word.len(), hits),
    }
}

const fn is_url(b: u8) -> bool {
    b > b' ' && b != 0x7f && !matches!(b, b'"' | b'\'' | b'`' | b'<' | b'>' | b'\\')
}

/// `scheme://user:password@host`
fn userinfo(text: &str, start: usize, hits: &mut Hits) {
    if !before(text, start).is_some_and(|b| b.is_ascii_alphanumeric() || b == b'+') {
        return;
    }
    let from = start + 3;
    let limit = run_end(text, from, is_url);
    hits.spend(limit - from);
    let url = slice(text, from, limit);
    let authority = url.split(['/', '?', '#']).next().unwrap_or("");
    // A password that was not encoded can hold a slash; then the part before it is no port.
    let reach = match authority.split_once(':') {
        Some((_, port))
            if !authority.contains('@') && !port.bytes().all(|b| b.is_ascii_digit()) =>
        {
            url
        }
        _ => authority,
    };
    let Some(at) = reach.rfind('@') else { return };
    let Some((user, password)) = slice(reach, 0, at).split_once(':') else {
        return;
    };
    if !is_placeholder(password) && !user.contains('/') {
        let start = from + user.len() + 1;
        hits.add(Kind::Urlcred, start, start + password.len());
    }
}

/// `-u user:password`
fn basic(text: &str, from: usize, hits: &mut Hits) {
    let end = run_end(text, from, is_url);
    if let Some((user, password)) = slice(text, from, end).split_once(':')
        && !user.is_empty()
        && !is_placeholder(password)
        && password.len() > 1
    {
        hits.add(Kind::Urlcred, end - password.len(), end);
    }
}

/// `machine HOST login USER password VALUE`
fn netrc(text: &str, start: usize, from: usize, hits: &mut Hits) {
    let line = slice(text, 0, start).rsplit('\n').next().unwrap_or("");
    if !line.contains("login ") && !line.contains("machine ") {
        return;
    }
    let end = run_end(text, from, |b| !b.is_ascii_whitespace());
    if !is_placeholder(slice(text, from, end)) {
        hits.add(Kind::Urlcred, from, end);
    }
}

/// `jdbc:oracle:thin:user/password@host`
fn oracle(text: &str, from: usize, hits: &mut Hits) {
    let end = run_end(text, from, is_url);
    let url = slice(text, from, end);
    let Some((user, password)) = url
        .rsplit_once('@')
        .and_then(|(userinfo, _)| userinfo.split_once('/'))
    else {
        return;
    };
    if !user.is_empty() && !is_placeholder(password) {
        let start = from + user.len() + 1;
        hits.add(Kind::Urlcred, start, start + password.len());
    }
}

/// A property of an ODBC or ADO string: up to the semicolon, or in braces.
fn property(text: &str, from: usize, hits: &mut Hits) {
    let braced = byte(text, from) == Some(b'{');
    let end = if braced {
        run_end(text, from, |b| b != b'}' && b != b'\n').saturating_add(1)
    } else {
        run_end(text, from, |b| is_url(b) && b != b';')
    };
    let value = slice(text, from, end);
    if value.len() > 1 && !is_placeholder(value) {
        hits.add(Kind::Urlcred, from, end);
    }
}

/// `--password VALUE` or `--password=VALUE`
fn flag(text: &str, at: usize, hits: &mut Hits) {
    let from = match byte(text, at) {
        Some(b' ' | b'=') => at + 1,
        _ => return,
    };
    let (from, end) = match byte(text, from) {
        Some(q @ (b'"' | b'\'')) => (from + 1, run_end(text, from + 1, |b| b != q && b != b'\n')),
        _ => (
            from,
            run_end(text, from, |b| {
                !b.is_ascii_whitespace() && !matches!(b, b'"' | b'\'')
            }),
        ),
    };
    let value = slice(text, from, end);
    let option = value.starts_with("--") || value.starts_with("-h");
    if value.len() > 1 && !is_placeholder(value) && !option {
        hits.add(Kind::Urlcred, from, end);
    }
}

#[cfg(test)]
mod tests {
    use crate::redaction::testing::{assert_found, assert_survives};

    #[test]
    fn passwords_in_urls_and_on_command_lines_are_found_and_the_rest_stays() {
        let secret = ["hun", "ter", "2!"].concat();
        for text in [
            format!("postgres://app:{secret}@db.internal:5432/shop"),
            format!("amqp://app:{secret}@mq/"),
            format!("mysqldump --password={secret} shop"),
            format!("mysqldump --password {secret} shop"),
            format!("curl -u app:{secret} http://x/"),
            format!("machine git.internal login app password {secret}"),
            format!("curl --user app:{secret} http://x/"),
            format!("jdbc:oracle:thin:app/{secret}@//db:1521/shop"),
            format!("Driver=ODBC;Server=db;Uid=app;Pwd={secret};Timeout=3"),
            format!("sshpass -p {secret} ssh host"),
            format!("mongodb://app:{secret}@m1:27017,m2:27017/shop?w=1"),
            format!("vault login --token {secret}"),
        ] {
            assert_found(&text, &secret, "urlcred");
        }
    }

    #[test]
    fn urls_without_a_password_stay() {
        for text in [
            "http://127.0.0.1:8080/a@b",
            "https://user@host.example.org/x",
            "redis://:@cache:6379",
            "postgres://app:${PASS}@db/x",
            "postgres://app:***@db/x",
            "http://[::1]:80/",
            "s3://bucket/key",
            "mysqldump --password --host x",
        ] {
            assert_survives(text);
        }
    }
}
