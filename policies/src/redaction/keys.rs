//! Keys with a form of their own: a prefix, an alphabet, a length, and a checksum if there is one.
//!
//! The families are a table. A key whose checksum is wrong was mistyped, cut or made up; it is
//! redacted all the same and marked as unverified. Families without a prefix are in `keys_bare`.

use super::checksum::{github, gitlab, grafana};
use super::scan::{Hits, before, byte, run_within, slice};
use super::{Anchor, Entity, Kind};

pub(crate) const ENTITY: Entity = Entity {
    name: "keys",
    anchor: Anchor::Literals(PREFIXES, scan),
};

/// What may follow a prefix.
#[derive(Clone, Copy)]
pub(super) enum Alphabet {
    /// Letters and digits.
    Alnum,
    /// Capital letters and digits.
    Upper,
    /// Base64url: letters, digits, `-` and `_`.
    Url,
    /// Base64url and dots.
    UrlDot,
    /// Base64 with padding.
    Base64,
    /// Base64url and percent signs, as in a cookie.
    Percent,
    /// Lower-case hexadecimal.
    Hex,
    /// The letters of Bech32, capitals.
    Bech32,
}

/// How the body of a key is checked.
#[derive(Clone, Copy)]
pub(super) enum Check {
    /// The format has no checksum.
    Form,
    /// Last six letters: CRC-32 of the others in base 62.
    Github,
    /// `payload.01.LLCCCCCCC`: CRC-32 of what stands before it in base 36.
    Gitlab,
    /// `secret_HHHHHHHH`: CRC-32 of what stands before it.
    Grafana,
    /// A macaroon of the index.
    Pypi,
    /// Contains this.
    Holds(&'static str),
}

pub(super) struct Family {
    pub(super) prefix: &'static str,
    pub(super) kind: &'static str,
    pub(super) alphabet: Alphabet,
    pub(super) min: usize,
    pub(super) max: usize,
    pub(super) check: Check,
}

const fn family(
    prefix: &'static str,
    kind: &'static str,
    alphabet: Alphabet,
    min: usize,
    max: usize,
    check: Check,
) -> Family {
    Family {
        prefix,
        kind,
        alphabet,
        min,
        max,
        check,
    }
}

use Alphabet::{Alnum, Base64, Bech32, Hex, Percent, Upper, Url, UrlDot};
use Check::{Form, Github, Gitlab, Grafana, Holds, Pypi};

#[rustfmt::skip]
pub(super) const FAMILIES: &[Family] = &[
    family("ghp_", "key.github", Alnum, 36, 255, Github),
    family("gho_", "key.github", Alnum, 36, 255, Github),
    family("ghu_", "key.github", Alnum, 36, 255, Github),
    family("ghs_", "key.github", UrlDot, 36, 1024, Github),
    family("ghr_", "key.github", Alnum, 36, 255, Github),
    family("github_pat_", "key.github", Url, 82, 255, Form),
    family("glpat-", "key.gitlab", UrlDot, 20, 320, Gitlab),
    family("gldt-", "key.gitlab", UrlDot, 20, 320, Gitlab),
    family("glrt-", "key.gitlab", UrlDot, 20, 320, Gitlab),
    family("glrtr-", "key.gitlab", UrlDot, 20, 320, Gitlab),
    family("glcbt-", "key.gitlab", UrlDot, 20, 320, Gitlab),
    family("glptt-", "key.gitlab", UrlDot, 20, 320, Gitlab),
    family("glft-", "key.gitlab", UrlDot, 20, 320, Gitlab),
    family("glimt-", "key.gitlab", UrlDot, 20, 320, Gitlab),
    family("glagent-", "key.gitlab", UrlDot, 50, 1024, Gitlab),
    family("gloas-", "key.gitlab", UrlDot, 64, 320, Gitlab),
    family("glsoat-", "key.gitlab", UrlDot, 20, 320, Gitlab),
    family("glffct-", "key.gitlab", UrlDot, 20, 320, Gitlab),
    family("GR1348941", "key.gitlab", Url, 20, 20, Form),
    family("AKIA", "key.aws", Upper, 16, 16, Form),
    family("ASIA", "key.aws", Upper, 16, 16, Form),
    family("ABIA", "key.aws", Upper, 16, 16, Form),
    family("ACCA", "key.aws", Upper, 16, 16, Form),
    family("ABSKQmVkcm9ja0FQSUtleS", "key.aws", Base64, 80, 1024, Form),
    family("IQoJb3JpZ2lu", "key.aws", Base64, 100, 4096, Form),
    family("FwoGZXIvYXdz", "key.aws", Base64, 100, 4096, Form),
    family("FQoGZXIvYXdz", "key.aws", Base64, 100, 4096, Form),
    family("AIza", "key.gcp", Url, 35, 35, Form),
    family("ya29.", "key.gcp", UrlDot, 20, 4096, Form),
    family("GOCSPX-", "key.gcp", Url, 28, 28, Form),
    family("1//0", "key.gcp", Url, 40, 512, Form),
    family("xoxb-", "key.slack", Url, 20, 255, Form),
    family("xoxp-", "key.slack", Url, 20, 255, Form),
    family("xoxa-", "key.slack", Url, 20, 255, Form),
    family("xoxo-", "key.slack", Url, 20, 255, Form),
    family("xoxr-", "key.slack", Url, 20, 255, Form),
    family("xoxs-", "key.slack", Url, 20, 255, Form),
    family("xoxc-", "key.slack", Url, 20, 255, Form),
    family("xoxd-", "key.slack", Percent, 20, 512, Form),
    family("xoxe-", "key.slack", Url, 20, 255, Form),
    family("xoxe.", "key.slack", Url, 20, 255, Form),
    family("xapp-", "key.slack", Url, 20, 255, Form),
    family("xwfp-", "key.slack", Url, 20, 255, Form),
    family("hooks.slack.com/services/", "key.slack", Base64, 30, 255, Form),
    family("sk_live_", "key.stripe", Alnum, 16, 255, Form),
    family("sk_test_", "key.stripe", Alnum, 16, 255, Form),
    family("rk_live_", "key.stripe", Alnum, 16, 255, Form),
    family("rk_test_", "key.stripe", Alnum, 16, 255, Form),
    family("whsec_", "key.stripe", Base64, 24, 255, Form),
    family("sk-ant-", "key.anthropic", Url, 24, 255, Form),
    family("sk-proj-", "key.openai", Url, 32, 255, Form),
    family("sk-svcacct-", "key.openai", Url, 32, 255, Form),
    family("sk-admin-", "key.openai", Url, 32, 255, Form),
    family("sk-", "key.openai", Alnum, 48, 48, Holds("T3BlbkFJ")),
    family("hf_", "key.huggingface", Alnum, 34, 34, Form),
    family("api_org_", "key.huggingface", Alnum, 34, 34, Form),
    family("pypi-", "key.pypi", Url, 50, 1024, Pypi),
    family("npm_", "key.npm", Alnum, 36, 36, Github),
    family("dckr_pat_", "key.docker", Url, 24, 64, Form),
    family("dckr_oat_", "key.docker", Url, 24, 64, Form),
    family("glsa_", "key.grafana", Url, 41, 41, Grafana),
    family("glc_", "key.grafana", Base64, 32, 512, Form),
    family("eyJrIjoi", "key.grafana", Base64, 60, 512, Form),
    family("hvs.", "key.vault", Url, 24, 512, Form),
    family("hvb.", "key.vault", Url, 24, 512, Form),
    family("hvr.", "key.vault", Url, 24, 512, Form),
    family("SG.", "key.sendgrid", UrlDot, 66, 66, Form),
    family("shpat_", "key.shopify", Hex, 32, 32, Form),
    family("shpss_", "key.shopify", Hex, 32, 32, Form),
    family("shpca_", "key.shopify", Hex, 32, 32, Form),
    family("shppa_", "key.shopify", Hex, 32, 32, Form),
    family("dop_v1_", "key.digitalocean", Hex, 64, 64, Form),
    family("doo_v1_", "key.digitalocean", Hex, 64, 64, Form),
    family("dor_v1_", "key.digitalocean", Hex, 64, 64, Form),
    family("NRAK-", "key.newrelic", Upper, 27, 27, Form),
    family("NRII-", "key.newrelic", Url, 32, 32, Form),
    family("sntrys_", "key.sentry", Base64, 40, 1024, Form),
    family("sntryu_", "key.sentry", Hex, 64, 64, Form),
    family("AGE-SECRET-KEY-1", "key.age", Bech32, 58, 58, Form),
];

const PREFIXES: &[&str] = &{
    let mut words = [""; FAMILIES.len()];
    let mut i = 0;
    while i < FAMILIES.len() {
        #[expect(
            clippy::indexing_slicing,
            reason = "evaluated at compile time, the loop is bounded"
        )]
        {
            words[i] = FAMILIES[i].prefix;
        }
        i += 1;
    }
    words
};

pub(super) const fn accepts(alphabet: Alphabet, b: u8) -> bool {
    match alphabet {
        Alnum => b.is_ascii_alphanumeric(),
        Upper => b.is_ascii_uppercase() || b.is_ascii_digit(),
        Url => b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_'),
        UrlDot => b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.'),
        Base64 => b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'+' | b'/' | b'='),
        Percent => {
            b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'+' | b'/' | b'%' | b'=')
        }
        Hex => b.is_ascii_digit() || matches!(b, b'a'..=b'f'),
        Bech32 => {
            (b.is_ascii_uppercase() || b.is_ascii_digit())
                && !matches!(b, b'1' | b'B' | b'I' | b'O')
        }
    }
}

fn scan(text: &str, start: usize, word: &'static str, hits: &mut Hits) {
    let from = start + word.len();
    // The automaton folds letter case, the families do not.
    if slice(text, start, from) != word {
        return;
    }
    let Some(family) = FAMILIES.iter().find(|f| f.prefix == word) else {
        return;
    };
    let end = run_within(text, from, family.max + 1, |b| accepts(family.alphabet, b));
    let body = slice(text, from, end).trim_end_matches(['.', '-']);
    let end = from + body.len();
    let whole = !byte(text, end).is_some_and(|b| b.is_ascii_alphanumeric());
    let fits = body.len() >= family.min && body.len() <= family.max && whole && varied(body);
    if !fits || !has_form(family, body) {
        return;
    }
    let verified = verify(family, word, body);
    // Behind a letter or a dash the prefix is part of a word, unless the checksum says otherwise.
    if is_glued(text, start) && verified != Some(true) {
        return;
    }
    if verified == Some(false) {
        hits.add_unverified(Kind::Key(family.kind), start, end);
    } else {
        hits.add(Kind::Key(family.kind), start, end);
    }
}

/// True when what stands before `start` makes one word with it. The tail of an escape does not.
pub(super) fn is_glued(text: &str, start: usize) -> bool {
    let Some(b) = before(text, start) else {
        return false;
    };
    if !b.is_ascii_alphanumeric() && b != b'_' && b != b'-' {
        return false;
    }
    let tail = |length: usize| {
        start
            .checked_sub(length)
            .map_or("", |at| slice(text, at, start))
    };
    let hex = |s: &str| s.bytes().all(|b| b.is_ascii_hexdigit());
    let percent = tail(3).strip_prefix('%').is_some_and(hex);
    let letter = matches!(tail(2), "\\n" | "\\t" | "\\r");
    let coded = tail(4).strip_prefix("\\x").is_some_and(hex)
        || tail(6).strip_prefix("\\u").is_some_and(hex);
    !(percent || letter || coded)
}

/// What a family demands beyond alphabet and length.
fn has_form(family: &Family, body: &str) -> bool {
    let parts = |sizes: &[usize], sign: char| {
        let mut parts = body.split(sign).map(str::len);
        sizes.iter().all(|&size| parts.next() == Some(size)) && parts.next().is_none()
    };
    match family.prefix {
        "SG." => parts(&[22, 43], '.'),
        "glsa_" => parts(&[32, 8], '_'),
        "hooks.slack.com/services/" => body.starts_with('T') && body.matches('/').count() == 2,
        // The older tokens are twenty letters and hold no dot.
        "glpat-" | "gldt-" | "glrt-" => body.len() == 20 || body.len() > 26,
        "ghs_" => body.len() == 36 || body.contains('.'),
        _ => match family.check {
            Holds(mark) => body.contains(mark),
            _ => true,
        },
    }
}

/// What the checksum says, if the format has one.
fn verify(family: &Family, prefix: &str, body: &str) -> Option<bool> {
    match family.check {
        Form | Holds(_) => None,
        Github => (body.len() == 36).then(|| github(body)),
        Gitlab => body.contains('.').then(|| gitlab(prefix, body)),
        Grafana => Some(grafana(prefix, body)),
        Pypi => Some(is_macaroon(body)),
    }
}

/// A macaroon of version 2 whose location is the index.
fn is_macaroon(body: &str) -> bool {
    let whole = body.len() - body.len() % 4;
    let head = slice(body, 0, whole.min(40));
    let Ok(bytes) = data_encoding::BASE64URL_NOPAD.decode(head.as_bytes()) else {
        return false;
    };
    [&b"pypi.org"[..], b"test.pypi.org"].iter().any(|site| {
        matches!(bytes.as_slice(), [2, 1, length, rest @ ..] if usize::from(*length) == site.len() && rest.starts_with(site))
    })
}

/// Kind of the family whose key `token` can be the head of, beyond its prefix.
pub(super) fn begins_like(token: &str) -> Option<Kind> {
    let family = FAMILIES.iter().find(|f| {
        let body = token.strip_prefix(f.prefix);
        body.is_some_and(|b| !b.is_empty() && b.bytes().all(|b| accepts(f.alphabet, b)))
    });
    family.map(|f| Kind::Key(f.kind))
}

/// A key is no word and no row of one letter: at least six different characters.
fn varied(body: &str) -> bool {
    let seen = body.bytes().fold(0_u128, |seen, b| seen | 1 << (b & 0x7f));
    seen.count_ones() >= 6
}

#[cfg(test)]
mod tests {
    use super::super::checksum::{BASE36, BASE62, crc32, in_base};
    use super::{Alphabet, Check, FAMILIES, Family, accepts};
    use crate::redaction::testing::{assert_found, assert_survives, key};

    fn body(alphabet: Alphabet, length: usize) -> String {
        "a7Qx3Lm9Zk2Rb5TcW8Ve4Yd6Nf0Hg1J"
            .chars()
            .chain("dcba9876543210FEDCBA".chars())
            .cycle()
            .filter(|c| accepts(alphabet, u8::try_from(*c).unwrap()))
            .take(length)
            .collect()
    }

    fn valid(f: &Family) -> String {
        let secret = |n: usize| body(f.alphabet, n);
        let body = match (f.prefix, f.check) {
            ("SG.", _) => format!("{}.{}", body(Alphabet::Url, 22), body(Alphabet::Url, 43)),
            ("hooks.slack.com/services/", _) => format!("T{0}/B{0}/{1}", "01234ABCD", secret(24)),
            (_, Check::Holds(mark)) => format!("{}{mark}{}", secret(20), secret(20)),
            (_, Check::Github) => {
                let secret = body(Alphabet::Alnum, 30);
                format!("{secret}{}", in_base(crc32(secret.as_bytes()), BASE62, 6))
            }
            (_, Check::Gitlab) if f.min == 20 => {
                let head = format!("{}.01.1a", body(Alphabet::Alnum, 46));
                let sum = crc32(format!("{}{head}", f.prefix).as_bytes());
                format!("{head}{}", in_base(sum, BASE36, 7))
            }
            (_, Check::Grafana) => {
                let secret = body(Alphabet::Alnum, 32);
                let sum = crc32(format!("{}{secret}", f.prefix).as_bytes());
                format!(
                    "{secret}_{}",
                    data_encoding::HEXLOWER.encode(&sum.to_le_bytes())
                )
            }
            (_, Check::Pypi) => {
                let mut macaroon = b"\x02\x01\x08pypi.org\x02\x24".to_vec();
                macaroon.extend_from_slice(secret(64).as_bytes());
                data_encoding::BASE64URL_NOPAD.encode(&macaroon)
            }
            _ => secret(f.min),
        };
        format!("{}{body}", f.prefix)
    }

    #[test]
    fn every_family_is_found_at_its_shortest_and_no_shorter() {
        for f in FAMILIES {
            let value = valid(f);
            assert_found(&format!("using {value} now"), &value, f.kind);
            let short = format!("{}{}", f.prefix, body(f.alphabet, 8));
            assert_survives(&format!("using {short} now"));
        }
    }

    #[test]
    fn a_wrong_checksum_is_redacted_and_marked() {
        for f in FAMILIES {
            let value = valid(f);
            let checked = matches!(
                f.check,
                Check::Github | Check::Gitlab | Check::Grafana | Check::Pypi
            ) && f.min < 50
                || f.prefix == "pypi-";
            let (_, report) = crate::redaction::redact(&format!("x {value} y"), &key());
            assert_eq!(report.findings.len(), 1, "{value}");
            assert!(report.findings[0].verified, "{value}");
            if !checked || f.prefix == "ghs_" {
                continue;
            }
            let at = f.prefix.len() + 2;
            let other = if value.as_bytes()[at] == b'Z' {
                "Y"
            } else {
                "Z"
            };
            let mut wrong = value.clone();
            wrong.replace_range(at..=at, other);
            let (out, report) = crate::redaction::redact(&format!("x {wrong} y"), &key());
            assert!(!out.contains(&wrong), "{out}");
            assert!(!report.findings[0].verified, "{wrong}");
        }
    }

    #[test]
    fn c06_prefixes_inside_words_and_tags_are_no_keys() {
        for text in [
            "task-manager-of-the-night-shift-crew",
            "risk-assessment-1",
            "sk-learn",
            "registry/glpat-mirror:1",
            "pypi-mirror",
            "npm_config_registry",
            "desk-a7Qx3Lm9Zk2Rb5TcW8Ve4Yd6",
            "hvs.internal.example.org",
        ] {
            assert_survives(text);
        }
        for f in FAMILIES.iter().filter(|f| matches!(f.check, Check::Form)) {
            let value = valid(f);
            let (out, report) = crate::redaction::redact(&format!("xa{value}"), &key());
            assert_eq!(report.counts.get(f.kind), None, "{out}");
        }
    }
}
