//! Words that a site listed: whole words, any letter case.

use super::scan::{Hits, before, byte, is_word};
use super::{Anchor, Entity, Kind};

pub(crate) const ENTITY: Entity = Entity {
    name: "term",
    anchor: Anchor::Text(scan),
};

fn scan(text: &str, hits: &mut Hits) {
    let Some(terms) = hits.rules.terms() else {
        return;
    };
    hits.spend(text.len());
    for found in terms.find_iter(text) {
        let whole = !before(text, found.start()).is_some_and(is_word)
            && !byte(text, found.end()).is_some_and(is_word);
        if whole {
            hits.add(Kind::Term, found.start(), found.end());
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::redaction::testing::{assert_found_with, assert_survives_with};
    use crate::redaction::{Options, Rules};

    fn rules() -> Rules {
        Rules::new(Options {
            terms: vec![
                "Project Heron".to_owned(),
                "# note".to_owned(),
                String::new(),
            ],
            ..Options::default()
        })
        .unwrap()
    }

    #[test]
    fn listed_words_are_found_whole_and_in_any_case() {
        assert_found_with(&rules(), "see PROJECT heron.", "PROJECT heron", "term");
        for text in ["project herons", "subproject heron", "# note", "heron"] {
            assert_survives_with(&rules(), text);
        }
    }
}
