//! The constrained decoding loop (inference 6.1): our own, over raw logits, with no llama.cpp sampler.
//!
//! Every error of the matcher ends the request; nothing is ever sampled without a mask. The loop knows the model only
//! as "give me the logits after these tokens", so it is tested with noise in place of a model.

use llguidance::Matcher;
use llguidance::api::StopReason;
use toktrie::SimpleVob;

use crate::provider::{Code, Error, Finish};

/// What the loop needs from a model.
pub(crate) trait Logits {
    /// Appends tokens to the context.
    fn advance(&mut self, tokens: &[u32]) -> Result<(), Error>;

    /// Logits after the last token.
    fn logits(&self) -> &[f32];
}

/// What the loop needs from outside, between two calls of the model.
pub(crate) trait Watch {
    /// Why to stop now, if at all.
    fn stop(&mut self) -> Option<Finish>;

    /// New answer bytes.
    fn wrote(&mut self, bytes: &[u8], tokens: u32) -> Result<(), Error>;
}

/// A finished answer.
#[derive(Debug, Default)]
pub(crate) struct Answer {
    pub(crate) bytes: Vec<u8>,
    pub(crate) tokens: u32,
    pub(crate) forced: u32,
    /// Calls of the model.
    pub(crate) calls: u32,
}

/// Writes one answer. The context holds the whole prompt when this begins.
///
/// # Errors
/// `grammar_error` on any failure of the matcher, and what the model or the watch reports.
pub(crate) fn generate(
    matcher: &mut Matcher,
    model: &mut impl Logits,
    watch: &mut impl Watch,
    banned: &[bool],
    max_tokens: u32,
) -> Result<(Answer, Finish), Error> {
    let trie = matcher.tok_env().map_err(|_| grammar(matcher))?;
    let mut answer = Answer::default();
    let mut pending: Vec<u32> = Vec::new();
    loop {
        if let Some(finish) = watch.stop() {
            return Ok((answer, finish));
        }
        if !matcher.is_stopped() {
            let forced = matcher.consume_ff_tokens();
            if matcher.is_error() {
                return Err(grammar(matcher));
            }
            if !forced.is_empty() {
                let count = u32::try_from(forced.len()).unwrap_or(u32::MAX);
                write(&mut answer, watch, trie.tok_trie().decode(&forced), count)?;
                answer.forced += count;
                pending.extend(forced);
            }
        }
        if matcher.is_stopped() {
            return match matcher.stop_reason() {
                StopReason::NoExtension
                | StopReason::NoExtensionBias
                | StopReason::EndOfSentence => Ok((answer, Finish::Stop)),
                StopReason::NotStopped
                | StopReason::MaxTokensTotal
                | StopReason::MaxTokensParser
                | StopReason::InternalError
                | StopReason::LexerTooComplex
                | StopReason::ParserTooComplex
                | StopReason::Cancelled => Err(grammar(matcher)),
            };
        }
        if answer.tokens >= max_tokens {
            return Ok((answer, Finish::Length));
        }
        if !pending.is_empty() {
            model.advance(&pending)?;
            answer.calls += 1;
            pending.clear();
        }
        let mask = matcher.compute_mask().map_err(|_| grammar(matcher))?;
        let token = best(model.logits(), &mask, banned)
            .ok_or_else(|| Error::new(Code::GrammarError, "no token is allowed"))?;
        matcher.consume_token(token).map_err(|_| grammar(matcher))?;
        if !trie.tok_trie().eos_tokens().contains(&token) {
            write(&mut answer, watch, trie.tok_trie().decode(&[token]), 1)?;
            pending.push(token);
        }
    }
}

fn write(
    answer: &mut Answer,
    watch: &mut impl Watch,
    bytes: Vec<u8>,
    tokens: u32,
) -> Result<(), Error> {
    watch.wrote(&bytes, tokens)?;
    answer.bytes.extend(bytes);
    answer.tokens += tokens;
    Ok(())
}

/// The matcher's own message quotes the answer, so only the reason is kept.
fn grammar(matcher: &Matcher) -> Error {
    Error::new(
        Code::GrammarError,
        format!("the grammar stopped with {}", matcher.stop_reason()),
    )
}

/// The allowed token with the highest logit; the lowest id wins among equals, and what is not a number never does.
fn best(logits: &[f32], mask: &SimpleVob, banned: &[bool]) -> Option<u32> {
    let mut best: Option<(u32, f32)> = None;
    for ((id, &logit), &banned) in (0_u32..).zip(logits).zip(banned) {
        if !banned
            && !logit.is_nan()
            && mask.is_allowed(id)
            && best.is_none_or(|(_, highest)| logit > highest)
        {
            best = Some((id, logit));
        }
    }
    best.map(|(id, _)| id)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};
    use toktrie::ApproximateTokEnv;

    use super::{Logits, Watch, generate};
    use crate::child::grammar::Grammars;
    use crate::provider::{Code, Error, Finish};
    use crate::schema;

    /// Noise in place of a model: a fixed generator, so each run is the same.
    struct Noise {
        state: u64,
        logits: Vec<f32>,
    }

    impl Noise {
        fn new(seed: u64) -> Self {
            let mut noise = Self {
                state: seed,
                logits: vec![0.0; 262],
            };
            noise.roll();
            noise
        }

        fn roll(&mut self) {
            for logit in &mut self.logits {
                self.state ^= self.state << 13;
                self.state ^= self.state >> 7;
                self.state ^= self.state << 17;
                *logit = if self.state.is_multiple_of(97) {
                    f32::NEG_INFINITY
                } else {
                    (self.state >> 40) as f32
                };
            }
        }
    }

    impl Logits for Noise {
        fn advance(&mut self, _tokens: &[u32]) -> Result<(), Error> {
            self.roll();
            Ok(())
        }

        fn logits(&self) -> &[f32] {
            &self.logits
        }
    }

    struct Quiet;

    impl Watch for Quiet {
        fn stop(&mut self) -> Option<Finish> {
            None
        }

        fn wrote(&mut self, _bytes: &[u8], _tokens: u32) -> Result<(), Error> {
            Ok(())
        }
    }

    fn draft() -> Value {
        json!({"type": "object", "additionalProperties": false,
            "required": ["target", "summary", "citations"],
            "properties": {
                "target": {"type": "string", "enum": ["checkout", "payments"]},
                "summary": {"type": "string", "maxLength": 12},
                "citations": {"type": "array", "minItems": 1, "maxItems": 3,
                    "items": {"type": "string", "enum": ["E1", "E2"]}}}})
    }

    #[test]
    fn noise_in_place_of_a_model_writes_nothing_but_valid_answers() {
        let mut grammars = Grammars::new(ApproximateTokEnv::single_byte()).unwrap();
        let banned: Vec<bool> = (0..262).map(|id| (256..261).contains(&id)).collect();
        let schema = draft();
        let (mut calls, mut tokens) = (0, 0);
        for seed in 1..=1_000 {
            let mut matcher = grammars.matcher(&schema).unwrap();
            let (answer, finish) = generate(
                &mut matcher,
                &mut Noise::new(seed * 0x9e37_79b9),
                &mut Quiet,
                &banned,
                4_096,
            )
            .unwrap();
            assert_eq!(finish, Finish::Stop);
            let text = String::from_utf8(answer.bytes).unwrap();
            let value =
                schema::parse(&schema, &text).unwrap_or_else(|error| panic!("{error}: {text}"));
            assert!(["checkout", "payments"].contains(&value["target"].as_str().unwrap()));
            assert!(answer.forced > 0 && answer.calls < answer.tokens);
            calls += answer.calls;
            tokens += answer.tokens;
        }
        assert!(calls < tokens, "{calls} calls for {tokens} tokens");
    }

    #[test]
    fn an_answer_that_hits_the_token_limit_ends_as_too_long() {
        let mut grammars = Grammars::new(ApproximateTokEnv::single_byte()).unwrap();
        let mut matcher = grammars.matcher(&draft()).unwrap();
        let (_, finish) = generate(
            &mut matcher,
            &mut Noise::new(5),
            &mut Quiet,
            &[false; 262],
            3,
        )
        .unwrap();
        assert_eq!(finish, Finish::Length);
    }

    #[test]
    fn what_is_not_a_number_is_never_chosen() {
        let mut mask = toktrie::SimpleVob::alloc(4);
        mask.set_all(true);
        let logits = [f32::NAN, -1.0, f32::NEG_INFINITY, -1.0];
        assert_eq!(super::best(&logits, &mask, &[false; 4]), Some(1));
        assert_eq!(super::best(&[f32::NAN; 4], &mask, &[false; 4]), None);
    }

    #[test]
    fn a_model_without_a_single_allowed_token_ends_the_request() {
        let mut grammars = Grammars::new(ApproximateTokEnv::single_byte()).unwrap();
        let mut matcher = grammars.matcher(&draft()).unwrap();
        let error = generate(
            &mut matcher,
            &mut Noise::new(5),
            &mut Quiet,
            &[true; 262],
            64,
        )
        .unwrap_err();
        assert_eq!(error.code, Code::GrammarError);
    }

    #[test]
    fn a_schema_outside_the_allowed_kind_makes_no_matcher() {
        let mut grammars = Grammars::new(ApproximateTokEnv::single_byte()).unwrap();
        let Err(error) = grammars.matcher(&json!({"type": "string"})) else {
            panic!("an endless string was accepted");
        };
        assert_eq!(error.code, Code::SchemaRefused);
    }
}
