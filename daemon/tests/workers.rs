//! Worker processes as the kernel sees them: what they may do, when they die, what they answer.
#![allow(clippy::unwrap_used)]

mod support;

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::unix::fs::symlink;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use policies::model::{Millis, RemediationClass, Window};
use sentinel_daemon::executors::{ExecutorKind, ExecutorSpec};
use sentinel_daemon::jobs::{Attempts, ToolAnswer, ToolCall};
use sentinel_daemon::scrape::{Scraper, ScraperOptions};
use sentinel_daemon::tools::{LogFile, ScrapeTarget, SourceSpec};
use serde_json::json;
use support::{TURN, eventually, now, scheduler, workers};

const ALWAYS: Window = Window {
    from: Millis(0),
    to: Millis(i64::MAX),
};

fn logs(path: &Path) -> BTreeMap<String, SourceSpec> {
    let file = LogFile {
        service: "checkout".into(),
        instance: "checkout-1".into(),
        path: path.to_owned(),
    };
    BTreeMap::from([("files".to_owned(), SourceSpec::Logs { files: vec![file] })])
}

fn call(deadline: Duration) -> ToolCall {
    ToolCall {
        tool: "logs".into(),
        source: "files".into(),
        args: json!({}),
        window: ALWAYS,
        deadline,
    }
}

fn code(answer: &ToolAnswer) -> &'static str {
    match answer {
        ToolAnswer::Answered { .. } => "answered",
        ToolAnswer::Failed { code, .. } => code,
    }
}

fn fifo(path: &Path) {
    assert!(Command::new("mkfifo").arg(path).status().unwrap().success());
}

/// design.md 3: socket(2), open(2) of the database, execve(2) and connect(2) to the guard fail.
#[tokio::test]
async fn a_worker_can_make_no_socket_open_no_database_start_no_program_and_connect_nowhere() {
    let _turn = TURN.lock().await;
    let root = tempfile::tempdir().unwrap();
    let database = root.path().join("guard.db");
    std::fs::write(&database, "rows").unwrap();
    let socket = root.path().join("guard.sock");
    let _guard = UnixListener::bind(&socket).unwrap();
    let api = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = api.local_addr().unwrap();
    let program = Path::new("/bin/true").to_owned();
    // All of it works from here, so that the sandbox alone can be what refuses it there.
    assert!(std::fs::File::open(&database).is_ok() && UnixStream::connect(&socket).is_ok());
    assert!(TcpStream::connect(address).is_ok() && Command::new(&program).status().is_ok());

    let attempts = Attempts {
        files: vec![
            database.clone(),
            "/etc/passwd".into(),
            "/proc/1/status".into(),
        ],
        sockets: vec![socket],
        address,
        program,
    };
    let scheduler = scheduler(BTreeMap::new(), BTreeMap::new());
    let tried = scheduler.self_check(attempts).await.unwrap();
    let errno = |what: &str| {
        let found = tried.iter().find(|attempt| attempt.what == what);
        found
            .unwrap_or_else(|| panic!("{what} was not tried: {tried:?}"))
            .errno
    };
    let (not_permitted, denied) = (Some(1), Some(13));
    for what in [
        "socket inet",
        "socket unix",
        "connect",
        "connect tcp",
        "fork",
        "thread",
        "execve",
    ] {
        assert_eq!(errno(what), not_permitted, "{what}");
    }
    for verb in ["open", "write"] {
        assert_eq!(errno(&format!("{verb} {}", database.display())), denied);
        assert_eq!(errno(&format!("{verb} /etc/passwd")), denied);
    }
    assert!(
        tried.iter().any(|a| a.what == "inherited descriptors []"),
        "{tried:?}"
    );
}

#[tokio::test]
async fn a_tool_call_is_answered_by_a_worker_that_is_gone_afterwards() {
    let _turn = TURN.lock().await;
    let root = tempfile::tempdir().unwrap();
    let path = root.path().join("x.log");
    std::fs::write(&path, "2026-01-31T08:00:00.000Z ERROR checkout-1 boom\n").unwrap();
    let scheduler = scheduler(logs(&path), BTreeMap::new());
    match scheduler.run_tool(call(Duration::from_secs(10))).await {
        ToolAnswer::Answered { raw, partial } => {
            assert!(raw.len() > 80);
            assert_eq!(partial, None);
        }
        ToolAnswer::Failed { code, detail } => panic!("{code}: {detail}"),
    }
    assert!(eventually(Duration::from_secs(2), || workers().is_empty()));
}

#[tokio::test]
async fn calls_that_cannot_be_served_say_why_and_start_nothing() {
    let _turn = TURN.lock().await;
    let root = tempfile::tempdir().unwrap();
    let scheduler = scheduler(logs(&root.path().join("gone.log")), BTreeMap::new());
    let soon = Duration::from_secs(10);
    let mut unknown_tool = call(soon);
    unknown_tool.tool = "shell".into();
    let mut unknown_source = call(soon);
    unknown_source.source = "elsewhere".into();
    let mut wrong_source = call(soon);
    wrong_source.tool = "deploys".into();
    let mut bad_args = call(soon);
    bad_args.args = json!({"path": "/etc/shadow"});
    for (call, wanted) in [
        (unknown_tool, "unknown_tool"),
        (unknown_source, "unknown_source"),
        (wrong_source, "wrong_source"),
        (bad_args, "invalid_arguments"),
        (call(soon), "not_found"),
    ] {
        assert_eq!(code(&scheduler.run_tool(call).await), wanted);
    }
}

#[tokio::test]
async fn a_worker_past_its_deadline_is_killed() {
    let _turn = TURN.lock().await;
    let root = tempfile::tempdir().unwrap();
    let path = root.path().join("never.log");
    // Opening it for reading waits for a writer that never comes.
    fifo(&path);
    let scheduler = scheduler(logs(&path), BTreeMap::new());
    let begin = Instant::now();
    let answer = scheduler.run_tool(call(Duration::from_millis(700))).await;
    assert_eq!(code(&answer), "timeout");
    assert!(begin.elapsed() < Duration::from_secs(3));
    assert!(eventually(Duration::from_secs(2), || workers().is_empty()));
}

/// protocols.md 2.2.3
#[tokio::test]
async fn the_worker_of_a_caller_that_has_gone_away_is_dead_within_a_second() {
    let _turn = TURN.lock().await;
    let root = tempfile::tempdir().unwrap();
    let path = root.path().join("never.log");
    fifo(&path);
    let scheduler = scheduler(logs(&path), BTreeMap::new());
    let running = tokio::spawn({
        let scheduler = scheduler.clone();
        async move { scheduler.run_tool(call(Duration::from_secs(10))).await }
    });
    while workers().is_empty() {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    tokio::time::sleep(Duration::from_millis(200)).await;
    running.abort();
    assert!(running.await.is_err());
    assert!(eventually(Duration::from_secs(1), || workers().is_empty()));
}

#[tokio::test]
async fn a_dry_run_reads_the_target_and_changes_nothing() {
    let _turn = TURN.lock().await;
    let root = tempfile::tempdir().unwrap();
    for version in ["1.0", "1.1"] {
        std::fs::create_dir_all(root.path().join("releases").join(version)).unwrap();
    }
    let link = root.path().join("current");
    symlink("releases/1.1", &link).unwrap();
    let executor = ExecutorSpec {
        name: "rollback-checkout".into(),
        action: RemediationClass::Rollback,
        service: "checkout".into(),
        kind: ExecutorKind::Symlink {
            link: link.clone(),
            releases: root.path().join("releases"),
        },
    };
    let executors = BTreeMap::from([(executor.name.clone(), executor)]);
    let scheduler = scheduler(BTreeMap::new(), executors);
    let change = json!({"incident": "inc_a", "deploy": "d-1", "from": "1.1", "to": "1.0"});
    let seen = scheduler
        .preview("rollback-checkout", Some(change))
        .await
        .unwrap();
    assert_eq!((seen.now, seen.after), (json!("1.1"), Some(json!("1.0"))));
    let stale = json!({"from": "1.0", "to": "1.1"});
    let refused = scheduler.preview("rollback-checkout", Some(stale)).await;
    assert_eq!(refused.unwrap_err().code, "changed_since");
    assert_eq!(
        scheduler.preview("rm", None).await.unwrap_err().code,
        "unknown_executor"
    );
    assert_eq!(
        std::fs::read_link(&link).unwrap(),
        Path::new("releases/1.1")
    );
}

fn serve_metrics(listener: TcpListener, hits: Arc<AtomicUsize>) {
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let Ok(mut stream) = stream else { return };
            let mut head = [0; 2048];
            let n = stream.read(&mut head).unwrap_or(0);
            let n_hits = hits.fetch_add(1, Ordering::SeqCst);
            let right = String::from_utf8_lossy(&head[..n]).starts_with("GET /metrics HTTP/1.1");
            let body = format!("http_requests_total{{code=\"200\"}} {n_hits}\n");
            let status = if right { "200 OK" } else { "404 Not Found" };
            let length = body.len();
            let _ = write!(
                stream,
                "HTTP/1.1 {status}\r\nContent-Length: {length}\r\n\r\n{body}"
            );
        }
    });
}

#[test]
fn a_dead_target_a_hanging_one_and_a_dead_worker_cost_the_other_pages_nothing() {
    let _turn = TURN.blocking_lock();
    let good = TcpListener::bind("127.0.0.1:0").unwrap();
    let hanging = TcpListener::bind("127.0.0.1:0").unwrap();
    let target = |service: &str, address: SocketAddr| ScrapeTarget {
        service: service.into(),
        instance: format!("{service}-1"),
        address,
        path: "/metrics".into(),
    };
    let targets = vec![
        target("good", good.local_addr().unwrap()),
        target("dead", ([127, 0, 0, 1], 1).into()),
        target("hanging", hanging.local_addr().unwrap()),
        target("public", ([192, 0, 2, 1], 80).into()),
    ];
    let hits = Arc::new(AtomicUsize::new(0));
    serve_metrics(good, Arc::clone(&hits));
    let scheduler = scheduler(BTreeMap::new(), BTreeMap::new());
    let ring = scheduler.ring();
    let told = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&told);
    let scraper = Scraper::start(ScraperOptions {
        spawner: scheduler.spawner(),
        clock: Arc::new(now),
        every: Duration::from_millis(50),
        targets,
        ring: Arc::clone(&ring),
        on_scrape: Box::new(move |_, _, samples| {
            counted.fetch_add(samples.len(), Ordering::SeqCst);
        }),
    })
    .unwrap();
    let points = |service: &str| {
        ring.query(service, ALWAYS)
            .first()
            .map_or(0, |s| s.points.len())
    };
    assert!(eventually(Duration::from_secs(10), || points("good") >= 1));
    let pids = workers();
    assert_eq!(pids.len(), 1);
    let pid = rustix::process::Pid::from_raw(i32::try_from(pids[0]).unwrap()).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
    let before = points("good");
    assert!(eventually(Duration::from_secs(15), || points("good") > before + 1));
    assert_eq!(
        (points("dead"), points("hanging"), points("public")),
        (0, 0, 0)
    );
    for service in ["dead", "hanging", "public"] {
        assert_eq!(ring.gaps(service, ALWAYS).len(), 1, "{service}");
    }
    assert!(told.load(Ordering::SeqCst) >= points("good") - 1);
    drop(scraper);
    assert!(eventually(Duration::from_secs(5), || workers().is_empty()));
}
