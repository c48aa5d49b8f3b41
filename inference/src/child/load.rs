//! From an open file to a warm model (inference 4 and 10): checked, hashed and mapped through one descriptor, so the
//! file cannot be exchanged in between.

use std::fs::File;
use std::io::{BufReader, Read, Seek, SeekFrom};
use std::num::NonZeroU32;
use std::os::fd::AsRawFd;
use std::sync::Arc;
use std::time::Instant;

use llama_cpp_2::context::params::LlamaContextParams;
use llama_cpp_2::llama_backend::LlamaBackend;
use llama_cpp_2::model::LlamaModel;
use llama_cpp_2::model::params::LlamaModelParams;
use llama_cpp_2::token::LlamaToken;
use sha2::{Digest, Sha256};

use super::fault::Fault;
use super::grammar::Grammars;
use super::sandbox;
use super::serve::Channel;
use super::session::{CHUNK, Session};
use super::template::Template;
use super::tokens::{self, ModelTokens};
use crate::frame::{FromChild, Load, Phase, Progress, Ready};
use crate::gguf;
use crate::provider::{Code, Error};

/// Address space for the compute buffers, the vocabulary and the grammars.
const COMPUTE: u64 = 512 << 20;
/// Address space on top, for stacks, libraries and the allocator's arenas.
const SLACK: u64 = 1 << 30;
/// Single tokens decoded in the warm-up.
const WARM_TOKENS: u16 = 4;

/// A model that is ready to answer.
pub(crate) struct Loaded {
    pub(crate) model: &'static LlamaModel,
    pub(crate) session: Session,
    pub(crate) template: Template,
    pub(crate) grammars: Grammars,
    pub(crate) banned: Vec<bool>,
    pub(crate) sha256: String,
    pub(crate) facts: Ready,
    /// The best prompt speed so far, in tokens per second.
    pub(crate) prefill_tps: f32,
}

fn corrupt(what: impl Into<String>) -> Error {
    Error::new(Code::ModelCorrupt, what)
}

/// Loads the model of `file`; the sandbox is at stage A.
///
/// # Errors
/// `model_corrupt`, `model_too_large`, `template_missing`, `template_unsupported` or `decode_failed`.
pub(crate) fn load(
    backend: &LlamaBackend,
    channel: &Arc<Channel>,
    ask: &Load,
    mut file: File,
    fault: Option<Fault>,
) -> Result<Loaded, Error> {
    let unreadable = |_| corrupt("the model file cannot be read");
    let size = file.metadata().map_err(unreadable)?.len();
    let header = gguf::check(BufReader::new(&file), size).map_err(|e| corrupt(e.to_string()))?;
    let n_ctx = match u32::try_from(header.context_length) {
        Ok(trained @ 1..) => ask.n_ctx.min(trained),
        Ok(0) | Err(_) => ask.n_ctx,
    };
    let context = u64::from(n_ctx).saturating_mul(header.kv_bytes_per_token);
    let space = size.saturating_add(context).saturating_add(COMPUTE + SLACK);
    sandbox::limit_memory(space)
        .map_err(|error| Error::new(Code::SandboxFailed, error.to_string()))?;
    file.seek(SeekFrom::Start(0)).map_err(unreadable)?;
    if digest(&mut file, size, channel)? != ask.sha256 {
        return Err(corrupt(
            "the SHA-256 of the model file is not the configured one",
        ));
    }
    if fault == Some(Fault::AbortAtLoad) {
        std::process::abort();
    }
    let model = map(backend, &file, channel)?;
    let source = model
        .chat_template(None)
        .ok()
        .and_then(|template| template.to_string().ok())
        .ok_or_else(|| Error::new(Code::TemplateMissing, "the model has no chat template"))?;
    let eos = model
        .vocab()
        .token_to_piece(model.vocab().eos(), true, None);
    let template = Template::new(source, String::from_utf8_lossy(&eos).into_owned())?;
    let tokens = ModelTokens::new(model)
        .ok_or_else(|| corrupt("the vocabulary has no token that ends an answer"))?;
    let mut loaded = Loaded {
        session: session(backend, model, ask, n_ctx)?,
        grammars: Grammars::new(tokens)?,
        banned: tokens::banned(model),
        sha256: ask.sha256.clone(),
        facts: Ready {
            architecture: header.architecture,
            n_ctx_train: model.n_ctx_train(),
            n_ctx,
            vocabulary: model.n_vocab().cast_unsigned(),
            kv_bytes_per_token: header.kv_bytes_per_token,
            template_sha256: template.sha256().to_owned(),
            prefill_tps: 0.0,
            decode_tps: 0.0,
            sandbox: "a+b".to_owned(),
        },
        prefill_tps: 1.0,
        template,
        model,
    };
    warm_up(&mut loaded, channel)?;
    Ok(loaded)
}

fn digest(file: &mut File, size: u64, channel: &Channel) -> Result<String, Error> {
    let mut hash = Sha256::new();
    let mut buffer = vec![0; 1 << 20];
    let (mut done, mut told) = (0_u64, Instant::now());
    loop {
        let count = file
            .read(&mut buffer)
            .map_err(|_| corrupt("the model file cannot be read"))?;
        if count == 0 {
            return Ok(crate::hex(&hash.finalize()));
        }
        hash.update(&buffer[..count]);
        done += count as u64;
        if told.elapsed().as_millis() >= 250 {
            told = Instant::now();
            progress(channel, Phase::Hash, done as f32 / size as f32);
        }
    }
}

fn progress(channel: &Channel, phase: Phase, ratio: f32) {
    channel.send(0, &FromChild::Progress(Progress { phase, ratio }));
}

fn map(
    backend: &LlamaBackend,
    file: &File,
    channel: &Arc<Channel>,
) -> Result<&'static LlamaModel, Error> {
    let path = format!("/proc/self/fd/{}", file.as_raw_fd());
    let reporter = Arc::clone(channel);
    let mut told = Instant::now();
    let params = LlamaModelParams::default()
        .with_n_gpu_layers(0)
        .with_use_mmap(true)
        .with_progress_callback(move |ratio| {
            if told.elapsed().as_millis() >= 250 {
                told = Instant::now();
                progress(&reporter, Phase::Map, ratio);
            }
            true
        });
    let model = LlamaModel::load_from_file(backend, path, &params)
        .map_err(|_| corrupt("the engine cannot load the model file"))?;
    // One model for the life of the process: the context and the grammar may then borrow it without a lifetime.
    Ok(Box::leak(Box::new(model)))
}

fn session(
    backend: &LlamaBackend,
    model: &'static LlamaModel,
    ask: &Load,
    n_ctx: u32,
) -> Result<Session, Error> {
    let chunk = u32::try_from(CHUNK).unwrap_or(u32::MAX);
    let params = LlamaContextParams::default()
        .with_n_ctx(NonZeroU32::new(n_ctx))
        .with_n_batch(chunk)
        .with_n_ubatch(chunk)
        .with_n_seq_max(1)
        .with_kv_unified(true)
        .with_n_threads(ask.threads_decode.cast_signed())
        .with_n_threads_batch(ask.threads_prefill.cast_signed())
        .with_flash_attention_policy(llama_cpp_sys_2::LLAMA_FLASH_ATTN_TYPE_DISABLED)
        .with_no_perf(true);
    model
        .new_context(backend, params)
        .map(Session::new)
        .map_err(|_| Error::new(Code::ModelTooLarge, "the context cannot be allocated"))
}

/// One full batch and a few single tokens: afterwards all threads exist and both speeds are known.
fn warm_up(loaded: &mut Loaded, channel: &Channel) -> Result<(), Error> {
    progress(channel, Phase::Warmup, 0.0);
    let token = LlamaToken::new(0);
    let begin = Instant::now();
    loaded.session.append(&[token; CHUNK])?;
    loaded.facts.prefill_tps = CHUNK as f32 / begin.elapsed().as_secs_f32().max(1e-3);
    loaded.prefill_tps = loaded.facts.prefill_tps;
    progress(channel, Phase::Warmup, 0.5);
    let begin = Instant::now();
    for _ in 0..WARM_TOKENS {
        loaded.session.append(&[token])?;
    }
    loaded.facts.decode_tps = f32::from(WARM_TOKENS) / begin.elapsed().as_secs_f32().max(1e-3);
    loaded.session.cut(0, "");
    Ok(())
}
