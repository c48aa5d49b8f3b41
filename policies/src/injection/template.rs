//! Templates of log lines, mined online per source (guardrails 7.3).
//!
//! Lines before the onset are merged as in the Drain tree: by number of pieces and first word,
//! then by the share of equal constants. Lines from the onset on are only compared: a line that
//! fits no known template is `novel`. Nothing is random and nothing depends on time, the memory is
//! bounded, and a source that has more templates than fit only has more text slots.

use std::collections::{BTreeMap, BTreeSet};

use super::slots::{self, Kind, Piece};
use crate::claim::Provenance;
use crate::model::Millis;

/// Most templates of one source.
const MAX_TEMPLATES: usize = 1_024;
/// Most values of a place that varies; beyond that the place is a text slot.
const MAX_VALUES: usize = 8;

/// One place of a template.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Place {
    Word(String),
    Slot(Kind),
    /// A word that varies, and its values; `None` when there were too many.
    Varies(Option<BTreeSet<String>>),
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Group {
    length: usize,
    first: String,
}

/// The templates of one source.
#[derive(Clone, Debug, Default)]
pub(crate) struct Templates {
    groups: BTreeMap<Group, Vec<Vec<Place>>>,
    count: usize,
}

/// A piece of a line and who may have written it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Range {
    pub(crate) piece: Piece,
    pub(crate) provenance: Provenance,
}

impl Templates {
    /// Mines the lines that are older than `onset`. Without an onset nothing is known.
    pub(crate) fn mine<'a>(
        lines: impl Iterator<Item = (Option<Millis>, &'a str)>,
        onset: Option<Millis>,
    ) -> Self {
        let mut templates = Self::default();
        let Some(onset) = onset else {
            return templates;
        };
        let mut clock = None;
        for (at, text) in lines {
            // A line without a stamp belongs to the one before it.
            clock = at.or(clock);
            if clock.is_some_and(|at| at < onset) {
                templates.learn(text);
            }
        }
        templates
    }

    fn learn(&mut self, line: &str) {
        let pieces = slots::pieces(line);
        let group = Group::of(line, &pieces);
        let known = self.groups.entry(group).or_default();
        if let Some(best) = closest(known, line, &pieces) {
            merge(best, line, &pieces);
        } else if self.count < MAX_TEMPLATES {
            known.push(pieces.iter().map(|p| place(line, p)).collect());
            self.count = self.count.saturating_add(1);
        }
    }

    /// The pieces of a line with their provenance.
    pub(crate) fn ranges(&self, line: &str) -> Vec<Range> {
        let pieces = slots::pieces(line);
        let template = self
            .groups
            .get(&Group::of(line, &pieces))
            .and_then(|known| best(known, line, &pieces));
        pieces
            .iter()
            .enumerate()
            .map(|(n, piece)| {
                let word = line.get(piece.start..piece.end).unwrap_or("");
                let place = template.and_then(|t| t.get(n));
                let (kind, provenance) = judge(piece.kind, word, template.is_some(), place);
                Range {
                    piece: Piece { kind, ..*piece },
                    provenance,
                }
            })
            .collect()
    }

    /// Every constant, lower case.
    pub(crate) fn constants(&self) -> impl Iterator<Item = &str> {
        self.groups
            .values()
            .flatten()
            .flatten()
            .flat_map(|place| match place {
                Place::Word(word) => vec![word.as_str()],
                Place::Varies(Some(values)) => values.iter().map(String::as_str).collect(),
                Place::Slot(_) | Place::Varies(None) => Vec::new(),
            })
    }

    #[cfg(test)]
    fn len(&self) -> usize {
        self.count
    }
}

/// The kind and provenance of one piece under the template that its line has.
fn judge(kind: Kind, word: &str, known: bool, place: Option<&Place>) -> (Kind, Provenance) {
    match kind {
        Kind::Text => (kind, Provenance::User),
        _ if !known => (kind, Provenance::Novel),
        Kind::Word => {
            let familiar = match place {
                Some(Place::Word(constant)) => constant == word,
                Some(Place::Varies(Some(values))) => values.contains(word),
                Some(Place::Varies(None) | Place::Slot(_)) | None => false,
            };
            if familiar {
                (kind, Provenance::Service)
            } else {
                (Kind::Text, Provenance::User)
            }
        }
        Kind::Number
        | Kind::Duration
        | Kind::Time
        | Kind::Version
        | Kind::Id
        | Kind::Ip
        | Kind::Path => match place {
            // A typed value where a word stood was written by whoever fills that place.
            Some(Place::Slot(_)) | None => (kind, Provenance::Service),
            Some(Place::Word(_) | Place::Varies(_)) => (Kind::Text, Provenance::User),
        },
    }
}

impl Group {
    fn of(line: &str, pieces: &[Piece]) -> Self {
        let first = pieces.iter().find(|p| p.kind != Kind::Time);
        Self {
            length: pieces.len(),
            first: match first {
                Some(p) if p.kind == Kind::Word => {
                    line.get(p.start..p.end).unwrap_or("").to_owned()
                }
                Some(_) | None => String::new(),
            },
        }
    }
}

fn place(line: &str, piece: &Piece) -> Place {
    if piece.kind == Kind::Word {
        Place::Word(line.get(piece.start..piece.end).unwrap_or("").to_owned())
    } else {
        Place::Slot(piece.kind)
    }
}

/// Equal words, and words in all, of a template and a line.
fn likeness(template: &[Place], line: &str, pieces: &[Piece]) -> (usize, usize) {
    let (mut equal, mut words) = (0_usize, 0_usize);
    for (place, piece) in template.iter().zip(pieces) {
        match place {
            Place::Slot(_) => {}
            Place::Varies(values) => {
                words = words.saturating_add(1);
                let word = line.get(piece.start..piece.end).unwrap_or("");
                let same = values.as_ref().is_none_or(|v| v.contains(word));
                equal = equal.saturating_add(usize::from(same));
            }
            Place::Word(word) => {
                words = words.saturating_add(1);
                let same = piece.kind == Kind::Word
                    && line.get(piece.start..piece.end) == Some(word.as_str());
                equal = equal.saturating_add(usize::from(same));
            }
        }
    }
    (equal, words)
}

/// The index of the most similar template: at least two of three constants are equal.
fn find(known: &[Vec<Place>], line: &str, pieces: &[Piece]) -> Option<usize> {
    known
        .iter()
        .enumerate()
        .filter_map(|(n, template)| {
            let (equal, words) = likeness(template, line, pieces);
            (equal.saturating_mul(3) >= words.saturating_mul(2)).then_some((equal, n))
        })
        .max_by_key(|&(equal, n)| (equal, std::cmp::Reverse(n)))
        .map(|(_, n)| n)
}

fn best<'t>(known: &'t [Vec<Place>], line: &str, pieces: &[Piece]) -> Option<&'t Vec<Place>> {
    known.get(find(known, line, pieces)?)
}

fn closest<'t>(
    known: &'t mut [Vec<Place>],
    line: &str,
    pieces: &[Piece],
) -> Option<&'t mut Vec<Place>> {
    let at = find(known, line, pieces)?;
    known.get_mut(at)
}

fn merge(template: &mut [Place], line: &str, pieces: &[Piece]) {
    for (slot, piece) in template.iter_mut().zip(pieces) {
        let word = line.get(piece.start..piece.end).unwrap_or("");
        let is_word = piece.kind == Kind::Word;
        match slot {
            Place::Word(old) if is_word && old == word => {}
            Place::Word(old) => {
                *slot =
                    Place::Varies(is_word.then(|| BTreeSet::from([old.clone(), word.to_owned()])));
            }
            Place::Varies(Some(values)) if is_word => {
                values.insert(word.to_owned());
                if values.len() > MAX_VALUES {
                    *slot = Place::Varies(None);
                }
            }
            Place::Slot(_) if is_word => *slot = Place::Varies(None),
            Place::Varies(_) => *slot = Place::Varies(None),
            Place::Slot(_) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Templates;
    use crate::claim::Provenance;
    use crate::injection::slots::Kind;
    use crate::model::Millis;

    fn mined(lines: &[&str]) -> Templates {
        Templates::mine(
            lines.iter().map(|line| (Some(Millis(1)), *line)),
            Some(Millis(10)),
        )
    }

    fn of(templates: &Templates, line: &str, word: &str) -> Option<(Kind, Provenance)> {
        templates
            .ranges(line)
            .into_iter()
            .find(|r| &line[r.piece.start..r.piece.end] == word)
            .map(|r| (r.piece.kind, r.provenance))
    }

    #[test]
    fn r7_3_constants_known_before_the_onset_are_of_the_service_and_new_ones_are_novel() {
        let t = mined(&["INFO order 17 stored in 3ms", "INFO order 18 stored in 4ms"]);
        assert_eq!(t.len(), 1);
        let line = "INFO order 99 stored in 900ms";
        assert_eq!(
            of(&t, line, "stored"),
            Some((Kind::Word, Provenance::Service))
        );
        assert_eq!(
            of(&t, line, "99"),
            Some((Kind::Number, Provenance::Service))
        );
        let line = "ERROR pool is empty";
        assert_eq!(of(&t, line, "pool"), Some((Kind::Word, Provenance::Novel)));
    }

    #[test]
    fn a_word_that_varies_is_familiar_only_with_a_value_seen_before() {
        let t = mined(&[
            "INFO peer payments answered quickly enough today",
            "INFO peer inventory answered quickly enough today",
        ]);
        let line = "INFO peer payments answered quickly enough today";
        assert_eq!(
            of(&t, line, "payments"),
            Some((Kind::Word, Provenance::Service))
        );
        let line = "INFO peer rollback-now answered quickly enough today";
        assert_eq!(
            of(&t, line, "rollback-now"),
            Some((Kind::Text, Provenance::User))
        );
    }

    #[test]
    fn without_an_onset_nothing_is_known() {
        let t = Templates::mine([(Some(Millis(1)), "INFO ready")].into_iter(), None);
        assert_eq!(
            of(&t, "INFO ready", "ready"),
            Some((Kind::Word, Provenance::Novel))
        );
    }

    #[test]
    fn memory_is_bounded_and_the_result_depends_on_the_lines_alone() {
        let lines: Vec<String> = (0..4_000)
            .map(|n| format!("w{}a x{}b y{}c", n % 1999, n % 1997, n % 1993))
            .collect();
        let refs: Vec<&str> = lines.iter().map(String::as_str).collect();
        let (a, b) = (mined(&refs), mined(&refs));
        assert!(a.len() <= super::MAX_TEMPLATES);
        assert_eq!(format!("{a:?}"), format!("{b:?}"));
    }
}
