//! Keys with a form of their own: a prefix, an alphabet and a length by family.

use super::scan::{Hits, before, run_end, slice};
use super::{Anchor, Entity, Kind};

pub(crate) const ENTITY: Entity = Entity {
    anchor: Anchor::Literals(PREFIXES, scan),
};

/// What may follow a prefix.
#[derive(Clone, Copy)]
enum Alphabet {
    /// Letters and digits.
    Alnum,
    /// Capital letters and digits.
    Upper,
    /// Base64url: letters, digits, `-` and `_`.
    Url,
    /// Base64url and dots.
    UrlDot,
    /// Lower-case hexadecimal.
    Hex,
}

struct Family {
    prefix: &'static str,
    kind: &'static str,
    alphabet: Alphabet,
    min: usize,
    max: usize,
}

const fn family(
    prefix: &'static str,
    kind: &'static str,
    alphabet: Alphabet,
    min: usize,
    max: usize,
) -> Family {
    Family {
        prefix,
        kind,
        alphabet,
        min,
        max,
    }
}

use Alphabet::{Alnum, Hex, Upper, Url, UrlDot};

const FAMILIES: &[Family] = &[
    family("ghp_", "key.github", Alnum, 30, 255),
    family("gho_", "key.github", Alnum, 30, 255),
    family("ghu_", "key.github", Alnum, 30, 255),
    family("ghs_", "key.github", Alnum, 30, 255),
    family("ghr_", "key.github", Alnum, 30, 255),
    family("github_pat_", "key.github", Url, 40, 255),
    family("glpat-", "key.gitlab", UrlDot, 20, 300),
    family("gldt-", "key.gitlab", UrlDot, 20, 300),
    family("glrt-", "key.gitlab", UrlDot, 20, 300),
    family("glcbt-", "key.gitlab", UrlDot, 20, 300),
    family("glptt-", "key.gitlab", UrlDot, 20, 300),
    family("glsoat-", "key.gitlab", UrlDot, 20, 300),
    family("AKIA", "key.aws", Upper, 16, 16),
    family("ASIA", "key.aws", Upper, 16, 16),
    family("ABIA", "key.aws", Upper, 16, 16),
    family("ACCA", "key.aws", Upper, 16, 16),
    family("AIza", "key.gcp", Url, 35, 35),
    family("ya29.", "key.gcp", UrlDot, 20, 4096),
    family("GOCSPX-", "key.gcp", Url, 28, 28),
    family("xoxb-", "key.slack", Url, 20, 255),
    family("xoxp-", "key.slack", Url, 20, 255),
    family("xoxa-", "key.slack", Url, 20, 255),
    family("xoxr-", "key.slack", Url, 20, 255),
    family("xoxs-", "key.slack", Url, 20, 255),
    family("xapp-", "key.slack", Url, 20, 255),
    family("sk_live_", "key.stripe", Alnum, 16, 255),
    family("sk_test_", "key.stripe", Alnum, 16, 255),
    family("rk_live_", "key.stripe", Alnum, 16, 255),
    family("rk_test_", "key.stripe", Alnum, 16, 255),
    family("whsec_", "key.stripe", Alnum, 24, 255),
    family("sk-ant-", "key.anthropic", Url, 24, 255),
    family("sk-proj-", "key.openai", Url, 32, 255),
    family("sk-svcacct-", "key.openai", Url, 32, 255),
    family("sk-", "key.openai", Alnum, 40, 64),
    family("hf_", "key.huggingface", Alnum, 30, 64),
    family("pypi-", "key.pypi", Url, 50, 1024),
    family("npm_", "key.npm", Alnum, 36, 36),
    family("dckr_pat_", "key.docker", Url, 24, 64),
    family("dckr_oat_", "key.docker", Url, 24, 64),
    family("glsa_", "key.grafana", Url, 32, 64),
    family("glc_", "key.grafana", Url, 32, 512),
    family("hvs.", "key.vault", Url, 24, 512),
    family("hvb.", "key.vault", Url, 24, 512),
    family("SG.", "key.sendgrid", UrlDot, 60, 72),
    family("shpat_", "key.shopify", Hex, 32, 32),
    family("shpss_", "key.shopify", Hex, 32, 32),
    family("shpca_", "key.shopify", Hex, 32, 32),
    family("dop_v1_", "key.digitalocean", Hex, 64, 64),
    family("doo_v1_", "key.digitalocean", Hex, 64, 64),
    family("NRAK-", "key.newrelic", Upper, 27, 27),
    family("sntrys_", "key.sentry", UrlDot, 40, 1024),
    family("sntryu_", "key.sentry", Hex, 64, 64),
    family("AGE-SECRET-KEY-1", "key.age", Upper, 58, 58),
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

const fn accepts(alphabet: Alphabet, b: u8) -> bool {
    match alphabet {
        Alnum => b.is_ascii_alphanumeric(),
        Upper => b.is_ascii_uppercase() || b.is_ascii_digit(),
        Url => b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_'),
        UrlDot => b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.'),
        Hex => b.is_ascii_digit() || matches!(b, b'a'..=b'f'),
    }
}

fn scan(text: &str, start: usize, word: &'static str, hits: &mut Hits) {
    let Some(family) = FAMILIES.iter().find(|f| f.prefix == word) else {
        return;
    };
    let from = start + word.len();
    // The automaton folds letter case, the families do not.
    if slice(text, start, from) != word
        || before(text, start).is_some_and(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-')
    {
        return;
    }
    let end = run_end(text, from, |b| accepts(family.alphabet, b));
    let body = slice(text, from, end).trim_end_matches(['.', '-']);
    let end = from + body.len();
    let whole = !super::scan::byte(text, end).is_some_and(|b| b.is_ascii_alphanumeric());
    if body.len() >= family.min && body.len() <= family.max && whole && varied(body) {
        hits.add(Kind::Key(family.kind), start, end);
    }
}

/// A key is no word and no row of one letter: at least six different characters.
fn varied(body: &str) -> bool {
    let mut seen = std::collections::BTreeSet::new();
    body.bytes().any(|b| {
        seen.insert(b);
        seen.len() >= 6
    })
}

#[cfg(test)]
mod tests {
    use super::{Alphabet, FAMILIES, accepts};
    use crate::redaction::testing::{assert_found, assert_survives};

    fn body(alphabet: Alphabet, length: usize) -> String {
        "a7Qx3Lm9Zk2Rb5TcW8Ve4Yd6Nf0Hg1J"
            .chars()
            .chain("dcba9876543210FEDCBA".chars())
            .cycle()
            .filter(|c| accepts(alphabet, u8::try_from(*c).unwrap()))
            .take(length)
            .collect()
    }

    #[test]
    fn every_family_is_found_at_its_shortest_and_no_shorter() {
        for f in FAMILIES {
            let value = format!("{}{}", f.prefix, body(f.alphabet, f.min));
            assert_found(&format!("using {value} now"), &value, f.kind);
            let short = format!("{}{}", f.prefix, body(f.alphabet, 8));
            assert_survives(&format!("using {short} now"));
            assert_survives(&format!("a{value}"));
        }
    }

    #[test]
    fn prefixes_inside_words_and_tags_are_no_keys() {
        for text in [
            "task-manager-of-the-night-shift-crew",
            "risk-assessment-1",
            "sk-learn",
            "registry/glpat-mirror:1",
            "pypi-mirror",
            "npm_config_registry",
        ] {
            assert_survives(text);
        }
    }
}
