//! The one context of the process, and what it holds (inference 7).
//!
//! There is one sequence. A prompt is computed in chunks that begin at multiples of [`CHUNK`], and what an earlier
//! prompt left is taken over only up to such a border, so an answer is the same bytes whether the context was cold or
//! warm (inference 6.8). A session takes over no more of another session than the system text (inference 7.4).

use llama_cpp_2::context::LlamaContext;
use llama_cpp_2::llama_batch::LlamaBatch;
use llama_cpp_2::token::LlamaToken;

use super::decode::Logits;
use super::tokens::PromptTokens;
use crate::provider::{Code, Error};

/// Tokens of one prompt chunk: the border for reuse, for cancelling and for deadlines. Longer ones are not faster, and
/// this one stays near half a second on a slow machine.
pub(crate) const CHUNK: usize = 128;
const SEQUENCE: i32 = 0;

/// The context and its content.
pub(crate) struct Session {
    context: LlamaContext<'static>,
    batch: LlamaBatch<'static>,
    /// Tokens in the sequence.
    held: Vec<LlamaToken>,
    owner: String,
    /// Row of the logits in the last batch.
    row: i32,
}

fn failed(what: &str) -> Error {
    Error::new(Code::DecodeFailed, what)
}

impl Session {
    pub(crate) fn new(context: LlamaContext<'static>) -> Self {
        Self {
            context,
            batch: LlamaBatch::new(CHUNK, 1),
            held: Vec::new(),
            owner: String::new(),
            row: 0,
        }
    }

    /// Size of the context.
    pub(crate) fn capacity(&self) -> usize {
        self.context.n_ctx() as usize
    }

    /// How many tokens of a prompt need not be computed.
    pub(crate) fn reusable(&self, prompt: &PromptTokens, owner: &str) -> usize {
        let common = self
            .held
            .iter()
            .zip(&prompt.tokens)
            .take_while(|(held, wanted)| held == wanted)
            .count();
        let allowed = if owner == self.owner {
            common
        } else {
            common.min(prompt.shared)
        };
        // The last token is always computed: its logits begin the answer.
        let below = allowed.min(prompt.tokens.len().saturating_sub(1));
        below / CHUNK * CHUNK
    }

    /// Makes the sequence hold exactly the first `keep` tokens of what it holds, and gives it to `owner`. Returns how
    /// many are left: a model that cannot cut starts afresh.
    pub(crate) fn cut(&mut self, keep: usize, owner: &str) -> usize {
        owner.clone_into(&mut self.owner);
        let from = u32::try_from(keep).ok();
        let cut = self
            .context
            .clear_kv_cache_seq(SEQUENCE.try_into().ok(), from, None);
        if keep > 0 && matches!(cut, Ok(true)) {
            self.held.truncate(keep);
        } else {
            self.context.clear_kv_cache();
            self.held.clear();
        }
        self.held.len()
    }

    /// Decodes tokens at the end of the sequence; the logits after the last one are kept.
    pub(crate) fn append(&mut self, tokens: &[LlamaToken]) -> Result<(), Error> {
        if self.held.len() + tokens.len() > self.capacity() {
            return Err(failed("the context is full"));
        }
        for chunk in tokens.chunks(CHUNK) {
            self.batch.clear();
            for (index, token) in chunk.iter().enumerate() {
                let position = i32::try_from(self.held.len() + index)
                    .map_err(|_| failed("a position overflows"))?;
                // One sequence per token: the batch writes past its array with more than it was made for.
                self.batch
                    .add(*token, position, &[SEQUENCE], index + 1 == chunk.len())
                    .map_err(|_| failed("a batch is full"))?;
            }
            self.context
                .decode(&mut self.batch)
                .map_err(|error| failed(&format!("decode reports `{error}`")))?;
            self.held.extend_from_slice(chunk);
            self.row = self.batch.n_tokens() - 1;
        }
        Ok(())
    }
}

impl Logits for Session {
    fn advance(&mut self, tokens: &[u32]) -> Result<(), Error> {
        let tokens: Vec<LlamaToken> = tokens
            .iter()
            .map(|token| LlamaToken::new(token.cast_signed()))
            .collect();
        self.append(&tokens)
    }

    fn logits(&self) -> &[f32] {
        self.context.get_logits_ith(self.row)
    }
}
