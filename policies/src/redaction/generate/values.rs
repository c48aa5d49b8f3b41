//! Values that must not leave: valid by checksum, length and alphabet.

use data_encoding::{BASE64, BASE64URL_NOPAD};

use super::super::checksum::{BASE36, BASE62, crc32, in_base};
use super::{ALNUM, BASE32, DIGITS, HEX, LOWER, Rng, UPPER_DIGITS, URL};

/// A value and the text that it stands in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Planted {
    /// Kind as in a token.
    pub kind: &'static str,
    /// What stands before it: the word of context or the key that the kind needs, or plain words.
    pub before: String,
    /// What must be replaced.
    pub value: String,
    /// What stands after it.
    pub after: String,
    /// The part of the value that nothing may show: no six characters of it may be left.
    pub secret: String,
}

impl Planted {
    /// The whole text.
    #[must_use]
    pub fn line(&self) -> String {
        format!("{}{}{}", self.before, self.value, self.after)
    }
}

/// Kinds that can be planted, as tokens name them.
pub const KINDS: &[&str] = &[
    "email",
    "pan",
    "iban",
    "ssn",
    "phone",
    "jwt",
    "auth",
    "cookie",
    "urlcred",
    "secret",
    "privkey",
    "key.github",
    "key.gitlab",
    "key.aws",
    "key.gcp",
    "key.slack",
    "key.stripe",
    "key.openai",
    "key.anthropic",
    "key.huggingface",
    "key.pypi",
    "key.npm",
    "key.docker",
    "key.grafana",
    "key.vault",
    "key.sendgrid",
    "key.shopify",
    "key.digitalocean",
    "key.newrelic",
    "key.terraform",
    "key.azure",
    "key.sentry",
    "key.age",
];

const NAMES: &[&str] = &[
    "margarete",
    "tobias",
    "lucia",
    "henrik",
    "amelie",
    "giorgos",
    "ines",
    "pawel",
    "noor",
    "kenji",
];
const SURNAMES: &[&str] = &[
    "huber",
    "lindqvist",
    "moreau",
    "castellano",
    "okafor",
    "novak",
    "sorensen",
    "tanaka",
];
const DOMAINS: &[&str] = &[
    "kundenpost.de",
    "mailhaus.fr",
    "correo-sur.es",
    "postbox.co.uk",
    "depot.internal",
    "brevo.dk",
];

/// Draws a value of `kind`, or an `entropy`, which is judged as it stands and so is not among the
/// kinds that are planted in every encoding; an unknown kind gives a `secret`.
#[must_use]
pub fn plant(kind: &str, rng: &mut Rng) -> Planted {
    match kind {
        "email" => email(rng),
        "pan" => pan(rng),
        "iban" => iban(rng),
        "ssn" => ssn(rng),
        "phone" => phone(rng),
        "jwt" => jwt(rng),
        "auth" => auth(rng),
        "cookie" => cookie(rng),
        "urlcred" => urlcred(rng),
        "privkey" => privkey(rng),
        "entropy" => {
            let length = rng.between(44, 60);
            let value = format!("x{}9Q", rng.text(ALNUM, length));
            planted("entropy", "opaque ", value.clone(), value)
        }
        _ => match KINDS.iter().find(|known| **known == kind) {
            Some(known) if known.starts_with("key.") => key(known, rng),
            Some(_) | None => secret(rng),
        },
    }
}

fn planted(kind: &'static str, before: &str, value: String, secret: String) -> Planted {
    Planted {
        kind,
        before: before.to_owned(),
        value,
        after: " done".to_owned(),
        secret,
    }
}

fn email(rng: &mut Rng) -> Planted {
    let local = format!(
        "{}.{}{}",
        rng.pick(NAMES),
        rng.pick(SURNAMES),
        rng.below(100)
    );
    let value = [local.as_str(), rng.pick(DOMAINS)].join("@");
    let before = rng.pick(&["sent to ", "user=", "from ", "contact: "]);
    planted("email", before, value, local)
}

/// A number that passes Luhn (ISO/IEC 7812-1 annex B).
pub(crate) fn luhn(mut digits: Vec<u32>) -> Vec<u32> {
    let sum: u32 = digits
        .iter()
        .rev()
        .enumerate()
        .map(|(i, d)| match (i % 2 == 0, d * 2) {
            (true, double) if double > 9 => double - 9,
            (true, double) => double,
            (false, _) => *d,
        })
        .sum();
    digits.push((10 - sum % 10) % 10);
    digits
}

fn numbers(digits: &str) -> Vec<u32> {
    digits.chars().filter_map(|c| c.to_digit(10)).collect()
}

fn spelled(digits: &[u32]) -> String {
    digits.iter().map(ToString::to_string).collect()
}

fn pan(rng: &mut Rng) -> Planted {
    let (head, length) = [
        ("4", 16),
        ("51", 16),
        ("34", 15),
        ("37", 15),
        ("6011", 16),
        ("3528", 16),
    ]
    .get(rng.below(6))
    .copied()
    .unwrap_or(("4", 16));
    let body = format!("{head}{}", rng.text(DIGITS, length - head.len() - 1));
    let digits = spelled(&luhn(numbers(&body)));
    let separator = rng.pick(&["", "", " ", "-"]);
    let groups: &[usize] = if length == 15 { &[4, 6, 5] } else { &[4; 4] };
    let mut rest = digits.as_str();
    let mut parts = Vec::new();
    for size in groups {
        let (part, tail) = rest.split_at_checked(*size).unwrap_or((rest, ""));
        parts.push(part);
        rest = tail;
    }
    let value = parts.join(separator);
    let before = rng.pick(&["paid with ", "card=", "pan: ", "charge of "]);
    planted("pan", before, value, digits)
}

fn iban(rng: &mut Rng) -> Planted {
    let (country, length) = [("DE", 18), ("FR", 23), ("AT", 16), ("BE", 12)]
        .get(rng.below(4))
        .copied()
        .unwrap_or(("DE", 18));
    let body = rng.text(DIGITS, length);
    let mut rest = 0_u32;
    for c in format!("{body}{country}00").chars() {
        let value = c.to_digit(36).unwrap_or(0);
        rest = (rest * if value > 9 { 100 } else { 10 } + value) % 97;
    }
    let compact = format!("{country}{:02}{body}", 98 - rest);
    let value = if rng.below(2) == 0 {
        compact.clone()
    } else {
        let letters: Vec<char> = compact.chars().collect();
        let groups: Vec<String> = letters.chunks(4).map(|c| c.iter().collect()).collect();
        groups.join(" ")
    };
    let mut planted = planted("iban", "refund to ", value, compact);
    planted.after = "; done".to_owned();
    planted
}

fn ssn(rng: &mut Rng) -> Planted {
    let (area, group, serial) = (
        rng.between(100, 665),
        rng.between(10, 99),
        rng.between(1000, 9999),
    );
    let value = format!("{area}-{group}-{serial}");
    planted("ssn", "applicant ", value.clone(), value)
}

fn phone(rng: &mut Rng) -> Planted {
    let head = rng.pick(&["+49171", "+33612", "+44790", "+1415"]);
    let rest = if head == "+1415" {
        7
    } else {
        7 - usize::from(head == "+33612")
    };
    let first = rng.text("23456789", 1);
    let value = format!("{head}{first}{}", rng.text(DIGITS, rest - 1));
    let secret = value.trim_start_matches('+').to_owned();
    planted("phone", "call ", value, secret)
}

fn jwt(rng: &mut Rng) -> Planted {
    let header = rng.pick(&[
        r#"{"alg":"HS256","typ":"JWT"}"#,
        r#"{"typ":"JWT","alg":"RS256"}"#,
        r#"{ "alg": "ES256" }"#,
    ]);
    let claims = format!(
        r#"{{"sub":"{}","n":{}}}"#,
        rng.pick(NAMES),
        rng.below(100_000)
    );
    let signature = BASE64URL_NOPAD.encode(&rng.bytes(32));
    let value = format!(
        "{}.{}.{signature}",
        BASE64URL_NOPAD.encode(header.as_bytes()),
        BASE64URL_NOPAD.encode(claims.as_bytes())
    );
    planted("jwt", "session ", value, signature)
}

fn auth(rng: &mut Rng) -> Planted {
    let token = rng.text(ALNUM, 40);
    planted("auth", "Authorization: Bearer ", token.clone(), token)
}

fn cookie(rng: &mut Rng) -> Planted {
    let token = rng.text(HEX, 32);
    let mut planted = planted("cookie", "Cookie: sid=", token.clone(), token);
    planted.after = String::new();
    planted
}

fn urlcred(rng: &mut Rng) -> Planted {
    let password = rng.text(ALNUM, 14);
    let scheme = rng.pick(&["postgres", "amqp", "mongodb", "https", "redis"]);
    let mut planted = planted(
        "urlcred",
        &format!("connect {scheme}://app:"),
        password.clone(),
        password,
    );
    planted.after = "@db.example:5432/main".to_owned();
    planted
}

fn secret(rng: &mut Rng) -> Planted {
    let value = format!("{}{}", rng.text(ALNUM, 11), rng.text(DIGITS, 3));
    let before = rng.pick(&["password=", "db_password: ", "api_key=", "client_secret = "]);
    planted("secret", before, value.clone(), value)
}

fn privkey(rng: &mut Rng) -> Planted {
    let label = rng.pick(&["", "RSA ", "EC ", "OPENSSH "]);
    let body = BASE64.encode(&rng.bytes(450));
    let lines: Vec<String> = body
        .as_bytes()
        .chunks(64)
        .map(|c| String::from_utf8_lossy(c).into_owned())
        .collect();
    let label = format!("{label}PRIVATE KEY");
    let value = format!(
        "-----BEGIN {label}-----\n{}\n-----END {label}-----",
        lines.join("\n")
    );
    let mut planted = planted("privkey", "", value, lines.concat());
    planted.after = String::new();
    planted
}

fn with_crc(prefix: &str, rng: &mut Rng) -> String {
    let body = rng.text(ALNUM, 30);
    format!(
        "{prefix}{body}{}",
        in_base(crc32(body.as_bytes()), BASE62, 6)
    )
}

fn key(kind: &'static str, rng: &mut Rng) -> Planted {
    let value = match kind {
        "key.github" => {
            let prefix = rng.pick(&["ghp_", "gho_", "ghs_", "ghu_"]);
            with_crc(prefix, rng)
        }
        "key.npm" => with_crc("npm_", rng),
        "key.gitlab" => gitlab(rng),
        "key.aws" => format!("{}{}", rng.pick(&["AKIA", "ASIA"]), rng.text(BASE32, 16)),
        "key.gcp" => format!("AIza{}", rng.text(URL, 34) + &rng.text(ALNUM, 1)),
        "key.slack" => format!(
            "xoxb-{}-{}-{}",
            rng.text(DIGITS, 12),
            rng.text(DIGITS, 12),
            rng.text(ALNUM, 24)
        ),
        "key.stripe" => format!("sk_live_{}", rng.text(ALNUM, 24)),
        "key.openai" => format!(
            "sk-proj-{}",
            rng.text(ALNUM, 20) + "T3BlbkFJ" + &rng.text(ALNUM, 20)
        ),
        "key.anthropic" => format!("sk-ant-api03-{}AA", rng.text(URL, 93)),
        "key.huggingface" => format!("hf_{}", rng.text(ALNUM, 34)),
        "key.pypi" => pypi(rng),
        "key.docker" => format!("dckr_pat_{}", rng.text(ALNUM, 27)),
        "key.grafana" => {
            let head = format!("glsa_{}", rng.text(ALNUM, 32));
            let sum = crc32(head.as_bytes()).to_le_bytes();
            format!("{head}_{}", data_encoding::HEXLOWER.encode(&sum))
        }
        "key.terraform" => format!("{}.atlasv1.{}", rng.text(ALNUM, 14), rng.text(ALNUM, 67)),
        "key.azure" => format!(
            "{}{}Q~{}",
            rng.text(ALNUM, 3),
            rng.text(DIGITS, 1),
            rng.text(ALNUM, 34)
        ),
        "key.sentry" => format!("sntryu_{}", rng.text(HEX, 64)),
        "key.vault" => format!("hvs.{}", rng.text(ALNUM, 90)),
        "key.sendgrid" => format!("SG.{}.{}", rng.text(ALNUM, 22), rng.text(ALNUM, 43)),
        "key.shopify" => format!("shpat_{}", rng.text(HEX, 32)),
        "key.digitalocean" => format!("dop_v1_{}", rng.text(HEX, 64)),
        "key.newrelic" => format!("NRAK-{}", rng.text(UPPER_DIGITS, 27)),
        _ => format!(
            "AGE-SECRET-KEY-1{}",
            rng.text("QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7L", 58)
        ),
    };
    let cut = value.find(['_', '-', '.', '/']).map_or(4, |at| at + 1);
    let secret = value.get(cut..).unwrap_or("").to_owned();
    let before = rng.pick(&["using ", "credential ", "with "]);
    planted(kind, before, value, secret)
}

/// Plain, or routable with its length and CRC32.
fn gitlab(rng: &mut Rng) -> String {
    if rng.below(2) == 0 {
        return format!("glpat-{}{}", rng.text(URL, 19), rng.text(ALNUM, 1));
    }
    let head = format!("glpat-{}.01.1a", rng.text(ALNUM, 46));
    let sum = in_base(crc32(head.as_bytes()), BASE36, 7);
    format!("{head}{sum}")
}

/// A macaroon of the package index: version, location, identifier, signature.
fn pypi(rng: &mut Rng) -> String {
    let location = b"pypi.org";
    let mut bytes = vec![2, 1, 8];
    bytes.extend_from_slice(location);
    bytes.extend_from_slice(&[2, 36]);
    bytes.extend_from_slice(rng.text(HEX, 36).as_bytes());
    bytes.extend_from_slice(&[0, 0, 6, 32]);
    bytes.extend_from_slice(&rng.bytes(32));
    format!("pypi-{}", BASE64URL_NOPAD.encode(&bytes))
}

/// Words for prose around values.
pub(super) fn word(rng: &mut Rng) -> String {
    let length = rng.between(3, 9);
    rng.text(LOWER, length)
}
