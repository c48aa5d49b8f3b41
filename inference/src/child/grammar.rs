//! Compiled grammars: one factory per model, and the last 64 schemas (inference 6.3).

use std::collections::VecDeque;
use std::sync::Arc;

use llguidance::api::TopLevelGrammar;
use llguidance::earley::SlicedBiasComputer;
use llguidance::{Matcher, ParserFactory};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use toktrie::{InferenceCapabilities, TokEnv, TokenizerEnv};

use crate::provider::{Code, Error};
use crate::schema;

const CACHED: usize = 64;

/// Makes matchers for schemas.
pub(crate) struct Grammars {
    factory: ParserFactory,
    cache: VecDeque<([u8; 32], Matcher)>,
}

impl Grammars {
    /// Builds the factory; this walks the vocabulary.
    ///
    /// # Errors
    /// `grammar_error` when the vocabulary cannot be used.
    pub(crate) fn new<T: TokenizerEnv + Sync + 'static>(tokens: T) -> Result<Self, Error> {
        let environment: TokEnv = Arc::new(tokens);
        let capabilities = InferenceCapabilities {
            ff_tokens: true,
            ..InferenceCapabilities::default()
        };
        let slices = SlicedBiasComputer::json_slices();
        let mut factory = ParserFactory::new(&environment, capabilities, &slices)
            .map_err(|_| Error::new(Code::GrammarError, "the vocabulary cannot be used"))?;
        factory.quiet();
        let limits = factory.limits_mut();
        limits.step_lexer_fuel = 200_000;
        limits.step_max_items = 50_000;
        limits.max_grammar_size = 100_000;
        limits.verbose_errors = false;
        Ok(Self {
            factory,
            cache: VecDeque::new(),
        })
    }

    /// A fresh matcher for a schema of the allowed kind.
    ///
    /// # Errors
    /// `schema_refused` or `grammar_error`.
    pub(crate) fn matcher(&mut self, schema: &Value) -> Result<Matcher, Error> {
        schema::check(schema)
            .map_err(|error| Error::new(Code::SchemaRefused, error.to_string()))?;
        let key: [u8; 32] = Sha256::digest(schema.to_string().as_bytes()).into();
        if let Some((_, matcher)) = self.cache.iter().find(|(known, _)| *known == key) {
            return Ok(matcher.deep_clone());
        }
        let mut schema = schema.clone();
        if let Some(map) = schema.as_object_mut() {
            // Small models loop in white space when they may write it.
            map.insert(
                "x-guidance".to_owned(),
                json!({"whitespace_flexible": false}),
            );
        }
        let grammar = TopLevelGrammar::from_json_schema(schema);
        let mut matcher = Matcher::new(self.factory.create_parser(grammar));
        if matcher.is_error() || !matcher.grammar_warnings().is_empty() {
            return Err(Error::new(
                Code::GrammarError,
                "the schema cannot be compiled",
            ));
        }
        if self.cache.len() == CACHED {
            self.cache.pop_front();
        }
        self.cache.push_back((key, matcher.deep_clone()));
        Ok(matcher)
    }
}

#[cfg(test)]
mod tests {
    use policies::claim::{Draft, DraftSchema};
    use policies::model::EvidenceId;
    use serde_json::json;
    use toktrie::ApproximateTokEnv;

    use super::Grammars;

    #[test]
    fn the_schema_of_a_draft_compiles_without_a_warning() {
        let schema = Draft::json_schema(&DraftSchema {
            hypotheses: vec!["H1".to_owned(), "H2".to_owned()],
            citations: vec![EvidenceId(1), EvidenceId(12)],
        });
        let mut grammars = Grammars::new(ApproximateTokEnv::single_byte()).unwrap();
        assert!(grammars.matcher(&schema).is_ok());
        // The second one comes from the cache and is as fresh as the first.
        let mut again = grammars.matcher(&schema).unwrap();
        assert!(again.consume_token(u32::from(b'{')).is_ok());
        assert!(grammars.matcher(&schema).unwrap().compute_mask().is_ok());
    }

    #[test]
    fn the_oldest_schema_leaves_when_the_cache_is_full() {
        let mut grammars = Grammars::new(ApproximateTokEnv::single_byte()).unwrap();
        for length in 1..=70 {
            let schema = json!({"type": "string", "maxLength": length});
            assert!(grammars.matcher(&schema).is_ok());
        }
        assert_eq!(grammars.cache.len(), super::CACHED);
    }
}
