//! What a site sets: profile, packs, mail domains, terms and exceptions (`[redaction]`).
//!
//! Every setting but `allow` adds. An exception names one whole value of one kind, is refused for
//! credentials, and each of its uses is counted.

use aho_corasick::{AhoCorasick, MatchKind};

use super::Kind;

/// How much counts as sensitive.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Profile {
    /// Personal data and credentials.
    #[default]
    Default,
    /// Also addresses, hosts and users of the site.
    Strict,
}

impl Profile {
    /// Reads a profile by its name.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        match name {
            "default" => Some(Self::Default),
            "strict" => Some(Self::Strict),
            _ => None,
        }
    }
}

/// National ids of one country.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Pack {
    /// France.
    Nir,
    /// Germany.
    SteuerId,
    /// Spain, citizens and foreigners.
    Dni,
    /// Italy.
    CodiceFiscale,
    /// Poland.
    Pesel,
    /// Brazil, persons and companies.
    Cpf,
    /// India.
    Aadhaar,
    /// Canada.
    Sin,
    /// England and Wales, health service.
    Nhs,
    /// United Kingdom, national insurance.
    Nino,
}

impl Pack {
    /// Every pack.
    pub const ALL: &'static [Self] = &[
        Self::Nir,
        Self::SteuerId,
        Self::Dni,
        Self::CodiceFiscale,
        Self::Pesel,
        Self::Cpf,
        Self::Aadhaar,
        Self::Sin,
        Self::Nhs,
        Self::Nino,
    ];

    /// Name in the configuration and in tokens.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Nir => "nir",
            Self::SteuerId => "steuer-id",
            Self::Dni => "dni",
            Self::CodiceFiscale => "codice-fiscale",
            Self::Pesel => "pesel",
            Self::Cpf => "cpf",
            Self::Aadhaar => "aadhaar",
            Self::Sin => "sin",
            Self::Nhs => "nhs",
            Self::Nino => "nino",
        }
    }

    /// Reads a pack by its name.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|pack| pack.name() == name)
    }
}

/// One value that stays readable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Allowed {
    /// Kind as in a token.
    pub kind: String,
    /// The whole value.
    pub value: String,
}

/// The settings of a site, as configured.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// `profile`
    pub profile: Profile,
    /// `packs`
    pub packs: Vec<Pack>,
    /// `mail_domains`: domains of the site; its addresses are found below any of them.
    pub mail_domains: Vec<String>,
    /// The lines of `terms_file`: words that must not leave.
    pub terms: Vec<String>,
    /// `allow`
    pub allow: Vec<Allowed>,
}

/// Why settings were refused.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// Credentials cannot be excepted.
    #[error("a value of kind `{0}` cannot be allowed")]
    Allow(String),
    /// No such kind.
    #[error("there is no kind `{0}`")]
    Kind(String),
    /// The word list does not fit into one automaton.
    #[error("the list of terms is too large")]
    Terms,
}

/// Kinds that an exception may name.
const ALLOWABLE: &[&str] = &[
    "email", "pan", "iban", "ssn", "natid", "phone", "term", "entropy", "ip", "mac", "host",
    "user", "urlcred", "cookie",
];

/// Settings that were checked and are ready to use.
#[derive(Clone, Debug, Default)]
pub struct Rules {
    options: Options,
    terms: Option<AhoCorasick>,
}

impl Rules {
    /// Checks settings.
    ///
    /// # Errors
    /// An exception for a credential or an unknown kind, or more terms than fit.
    pub fn new(options: Options) -> Result<Self, Error> {
        for entry in &options.allow {
            let kind = entry.kind.as_str();
            if ["privkey", "jwt", "auth", "secret"].contains(&kind) || kind.starts_with("key.") {
                return Err(Error::Allow(entry.kind.clone()));
            }
            if !ALLOWABLE.contains(&kind) {
                return Err(Error::Kind(entry.kind.clone()));
            }
        }
        let words: Vec<&str> = options
            .terms
            .iter()
            .map(|line| line.trim())
            .filter(|line| !line.is_empty() && !line.starts_with('#'))
            .collect();
        let terms = if words.is_empty() {
            None
        } else {
            let built = AhoCorasick::builder()
                .ascii_case_insensitive(true)
                .match_kind(MatchKind::LeftmostLongest)
                .build(words)
                .map_err(|_| Error::Terms)?;
            Some(built)
        };
        Ok(Self { options, terms })
    }

    /// True in profile `strict`.
    pub(super) fn is_strict(&self) -> bool {
        self.options.profile == Profile::Strict
    }

    /// True when any pack is chosen.
    pub(super) fn has_packs(&self) -> bool {
        !self.options.packs.is_empty()
    }

    /// True when this pack is chosen.
    pub(super) fn has_pack(&self, pack: Pack) -> bool {
        self.options.packs.contains(&pack)
    }

    /// The automaton of the site's terms.
    pub(super) const fn terms(&self) -> Option<&AhoCorasick> {
        self.terms.as_ref()
    }

    /// The site's domain that `domain` is or lies below.
    pub(super) fn mail_domain(&self, domain: &str) -> Option<&str> {
        self.options
            .mail_domains
            .iter()
            .map(String::as_str)
            .find(|site| {
                let head = domain.len().checked_sub(site.len());
                head.is_some_and(|at| {
                    domain
                        .get(at..)
                        .is_some_and(|tail| tail.eq_ignore_ascii_case(site))
                        && (at == 0 || domain.as_bytes().get(at - 1) == Some(&b'.'))
                })
            })
    }

    /// True when `value`, found as `kind`, is an exception of the site.
    pub(super) fn allows(&self, kind: Kind, value: &str) -> bool {
        self.options.allow.iter().any(|entry| {
            entry.kind == kind.name() && kind.canonical(&entry.value) == kind.canonical(value)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::{Allowed, Error, Options, Pack, Profile, Rules};

    #[test]
    fn credentials_and_unknown_kinds_cannot_be_excepted() {
        let allow = |kind: &str| {
            let entry = Allowed {
                kind: kind.to_owned(),
                value: "x".to_owned(),
            };
            Rules::new(Options {
                allow: vec![entry],
                ..Options::default()
            })
            .map(|_| ())
        };
        for kind in ["privkey", "key.github", "jwt", "auth", "secret"] {
            assert_eq!(allow(kind), Err(Error::Allow(kind.to_owned())));
        }
        assert_eq!(allow("mail"), Err(Error::Kind("mail".to_owned())));
        assert_eq!(allow("email"), Ok(()));
    }

    #[test]
    fn every_profile_and_pack_is_read_by_its_name() {
        assert_eq!(Profile::parse("strict"), Some(Profile::Strict));
        assert_eq!(Profile::parse("off"), None);
        for pack in Pack::ALL {
            assert_eq!(Pack::parse(pack.name()), Some(*pack));
        }
    }

    #[test]
    fn a_site_owns_its_domain_and_what_lies_below() {
        let rules = Rules::new(Options {
            mail_domains: vec!["shop.zz".to_owned()],
            ..Options::default()
        })
        .unwrap();
        assert_eq!(rules.mail_domain("eu.Shop.zz"), Some("shop.zz"));
        assert_eq!(rules.mail_domain("workshop.zz"), None);
    }
}
