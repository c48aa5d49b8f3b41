//! The engine with its real child process and a real model. The test runner names the model in `SENTINEL_TEST_MODEL`;
//! without it these tests say so and check nothing.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::print_stdout,
    clippy::print_stderr
)]

use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use policies::claim::{Boundary, OwnText, Prompt, PromptBuilder, RedactKey, Sight};
use sentinel_inference::{
    Cancel, Code, CompletionRequest, Engine, EngineEvent, EngineOptions, EngineState, Finish,
    Limits, Provider, prompts,
};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

const PATIENCE: Duration = Duration::from_secs(120);

fn model() -> Option<PathBuf> {
    let path = std::env::var_os("SENTINEL_TEST_MODEL").map(PathBuf::from);
    if path.is_none() {
        eprintln!("SKIPPED: `SENTINEL_TEST_MODEL` names no model file");
    }
    path
}

fn sha256(path: &Path) -> String {
    let digest = Sha256::digest(std::fs::read(path).unwrap());
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn limits() -> Limits {
    Limits {
        hang: Duration::from_secs(2),
        pause: Duration::from_millis(50),
        ..Limits::default()
    }
}

fn start(model: &Path, fault: Option<&str>, limits: Limits) -> (Engine, Receiver<EngineEvent>) {
    start_as(model, sha256(model), fault, limits)
}

fn start_as(
    model: &Path,
    sha256: String,
    fault: Option<&str>,
    limits: Limits,
) -> (Engine, Receiver<EngineEvent>) {
    let (to, events) = channel();
    let options = EngineOptions {
        exe: env!("CARGO_BIN_EXE_sentinel-infer").into(),
        model: model.to_path_buf(),
        sha256,
        n_ctx: 2_048,
        threads: None,
        fault: fault.map(str::to_owned),
        on_event: Box::new(move |event| {
            let _ = to.send(event);
        }),
    };
    (Engine::start_with(options, limits).unwrap(), events)
}

fn prompt(words: i64) -> Prompt {
    let mut facts = OwnText::new().say("Facts of the incident:\n");
    for index in 0..words {
        facts = facts
            .say("- E1 line ")
            .number(index)
            .say(": checkout answered 500 after the deploy of version 2\n");
    }
    let facts = facts.say("H1: bad deploy of checkout. H2: payments is slow.\n");
    let sight = Sight::new(&[], None, &[], &RedactKey::from_bytes([7; 32]));
    PromptBuilder::new(Boundary::from_random([7; 10]), sight)
        .system(prompts::RCA_SYSTEM)
        .trusted(facts)
        .trusted(OwnText::new().say(prompts::RCA_QUESTION))
        .build()
        .unwrap()
}

fn schema() -> Value {
    json!({"type": "object", "additionalProperties": false,
        "required": ["hypothesis", "summary", "citations"],
        "properties": {
            "hypothesis": {"type": "string", "enum": ["H1", "H2"]},
            "summary": {"type": "string", "maxLength": 80},
            "citations": {"type": "array", "minItems": 1, "maxItems": 2,
                "items": {"type": "string", "enum": ["E1", "E2"]}}}})
}

fn request(session: &str) -> CompletionRequest {
    CompletionRequest {
        schema: schema(),
        max_tokens: 160,
        deadline: PATIENCE,
        session: session.to_owned(),
    }
}

fn wait_for(events: &Receiver<EngineEvent>, wanted: impl Fn(&EngineEvent) -> bool) -> EngineEvent {
    let end = Instant::now() + PATIENCE;
    loop {
        let left = end.saturating_duration_since(Instant::now());
        let event = events.recv_timeout(left).expect("the event comes in time");
        if wanted(&event) {
            return event;
        }
    }
}

#[test]
fn a_real_model_answers_under_the_schema_the_same_whether_its_context_is_cold_or_warm() {
    let Some(model) = model() else { return };
    let (engine, events) = start(&model, None, Limits::default());
    let cold = engine.complete(&prompt(12), &request("a")).unwrap();
    let value: Value = serde_json::from_str(&cold.text).unwrap();
    assert!(["H1", "H2"].contains(&value["hypothesis"].as_str().unwrap()));
    assert_eq!(cold.finish, Finish::Stop);
    assert!(cold.model.contains('@'));
    let usage = cold.usage;
    assert_eq!((usage.cached, usage.evaluated), (0, usage.prompt));
    assert!(usage.forced > 0 && usage.forced < usage.completion);
    assert!(cold.timings.cpu_ms > 0 && cold.timings.ttft_ms >= cold.timings.prefill_ms);

    let warm = engine.complete(&prompt(12), &request("a")).unwrap();
    assert_eq!(warm.text, cold.text);
    assert_eq!(warm.usage.prompt, usage.prompt);
    assert!(warm.usage.cached >= 256 && warm.usage.cached.is_multiple_of(128));
    assert_eq!(warm.usage.cached + warm.usage.evaluated, usage.prompt);

    // Another session shares the system text at most, and of it whole chunks only.
    let other = engine.complete(&prompt(12), &request("b")).unwrap();
    assert_eq!(other.text, cold.text);
    assert!(other.usage.cached <= 128, "{:?}", other.usage);
    let ready = wait_for(&events, |event| matches!(event, EngineEvent::Ready(_)));
    println!(
        "{ready:?}\n{:?}\n{:?}\n{}",
        cold.usage, cold.timings, warm.text
    );
}

#[test]
fn the_engine_process_with_a_real_model_can_reach_nothing() {
    let Some(model) = model() else { return };
    let (engine, _events) = start(&model, None, Limits::default());
    assert!(engine.wait_ready(PATIENCE));
    // The model file itself is the hardest case: stage A allowed it.
    for path in [model.to_str().unwrap(), "/etc/passwd"] {
        let results = engine.probe(path).unwrap();
        let names: Vec<&str> = results.iter().map(|result| result.what.as_str()).collect();
        assert_eq!(names, ["socket", "connect", "open", "execve", "fork"]);
        for result in results {
            let error = result.error.unwrap_or_default();
            assert!(
                error.contains("not permitted"),
                "{}: {error:?}",
                result.what
            );
        }
    }
    // The probe leaves the engine as it was.
    engine.complete(&prompt(1), &request("a")).unwrap();
}

#[test]
fn a_killed_engine_with_a_real_model_starts_again_and_answers() {
    let Some(model) = model() else { return };
    let (engine, events) = start(&model, None, limits());
    assert!(engine.wait_ready(PATIENCE));
    let EngineEvent::Started { pid } = wait_for(&events, |event| {
        matches!(event, EngineEvent::Started { .. })
    }) else {
        unreachable!()
    };
    let pid = rustix::process::Pid::from_raw(pid.cast_signed()).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
    let crash = wait_for(&events, |event| {
        matches!(event, EngineEvent::Crashed { .. })
    });
    assert!(matches!(crash, EngineEvent::Crashed { cause, .. } if cause == "signal 9"));
    engine.complete(&prompt(1), &request("a")).unwrap();
    assert_eq!(engine.state(), EngineState::Ready);
}

#[test]
fn a_prompt_that_crashes_a_real_model_twice_is_quarantined() {
    let Some(model) = model() else { return };
    let (engine, events) = start(&model, Some("crash-mid-decode"), limits());
    for _ in 0..2 {
        let error = engine.complete(&prompt(1), &request("a")).unwrap_err();
        assert_eq!(error.code, Code::EngineCrashed);
        let crash = wait_for(&events, |event| {
            matches!(event, EngineEvent::Crashed { .. })
        });
        assert!(matches!(crash, EngineEvent::Crashed { cause, .. } if cause == "signal 6"));
    }
    let error = engine.complete(&prompt(1), &request("a")).unwrap_err();
    assert_eq!(error.code, Code::Quarantined);
}

#[test]
fn a_real_model_that_hangs_is_killed_and_one_that_sends_garbage_is_too() {
    let Some(model) = model() else { return };
    for (fault, expected) in [("hang", "hang"), ("garbage-frame", "garbage")] {
        let (engine, events) = start(&model, Some(fault), limits());
        let error = engine.complete(&prompt(1), &request("a")).unwrap_err();
        assert_eq!(error.code, Code::EngineCrashed, "{fault}");
        let crash = wait_for(&events, |event| {
            matches!(event, EngineEvent::Crashed { .. })
        });
        assert!(matches!(crash, EngineEvent::Crashed { cause, .. } if cause == expected));
    }
}

#[test]
fn an_engine_that_dies_while_a_real_model_is_loaded_ends_up_degraded() {
    let Some(model) = model() else { return };
    let limits = Limits {
        crashes: 3,
        ..limits()
    };
    let (engine, events) = start(&model, Some("abort-at-load"), limits);
    wait_for(&events, |event| *event == EngineEvent::Degraded);
    assert_eq!(engine.state(), EngineState::Degraded);
    let error = engine.complete(&prompt(1), &request("a")).unwrap_err();
    assert_eq!(error.code, Code::EngineUnavailable);
}

#[test]
fn a_real_model_file_that_was_changed_or_cut_is_never_loaded() {
    let Some(model) = model() else { return };
    let mut bytes = std::fs::read(&model).unwrap();
    let last = bytes.len() - 1;
    bytes[last] ^= 1;
    let folder = std::env::temp_dir().join(format!("sentinel-engine-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    for (name, content) in [
        ("flip", &bytes[..]),
        ("cut", &bytes[..last]),
        ("text", b"no model"),
    ] {
        let path = folder.join(name);
        std::fs::File::create(&path)
            .unwrap()
            .write_all(content)
            .unwrap();
        let (engine, events) = start_as(&path, sha256(&model), None, limits());
        let refusal = wait_for(&events, |event| {
            matches!(event, EngineEvent::Refused { .. })
        });
        assert!(
            matches!(
                refusal,
                EngineEvent::Refused {
                    code: Code::ModelCorrupt,
                    ..
                }
            ),
            "{refusal:?}"
        );
        assert_eq!(
            engine.state(),
            EngineState::Unavailable {
                code: Code::ModelCorrupt
            }
        );
    }
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn a_real_model_ends_early_when_cancelled_or_late_and_refuses_what_does_not_fit() {
    let Some(model) = model() else { return };
    let (engine, _events) = start(&model, None, Limits::default());
    assert!(engine.wait_ready(PATIENCE));
    let cancel = Cancel::default();
    cancel.cancel();
    let error = engine
        .complete_cancellable(&prompt(40), &request("a"), &cancel)
        .unwrap_err();
    assert_eq!(error.code, Code::Cancelled);
    assert_eq!(error.usage.map(|usage| usage.completion), Some(0));

    let mut hurried = request("a");
    hurried.deadline = Duration::from_millis(30);
    let error = engine.complete(&prompt(40), &hurried).unwrap_err();
    assert!([Code::DeadlineUnreachable, Code::Deadline].contains(&error.code));

    let error = engine.complete(&prompt(200), &request("a")).unwrap_err();
    assert_eq!(error.code, Code::ContextOverflow);

    let mut short = request("a");
    short.max_tokens = 8;
    let error = engine.complete(&prompt(1), &short).unwrap_err();
    assert_eq!(error.code, Code::Truncated);

    let mut open = request("a");
    open.schema = json!({"type": "string"});
    let error = engine.complete(&prompt(1), &open).unwrap_err();
    assert_eq!(error.code, Code::SchemaRefused);
}
