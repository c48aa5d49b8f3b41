//! Puts the daemon together: the only place that constructs components.

use std::collections::BTreeMap;
use std::fs::File;
use std::net::SocketAddr;
use std::os::unix::fs::{DirBuilderExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use inference::{Engine, EngineEvent, EngineOptions, EngineState, Provider};
use policies::claim::RedactKey;
use policies::guard::Policy;
use policies::model::Millis;
use rustix::fs::{FlockOperation, flock};
use sha2::{Digest, Sha256};
use store::logins::Logins;
use store::sentinel::{Db, Scrape};

use crate::conductor::{self, Conductor};
use crate::config::{self, Config, Problem, Source};
use crate::console::ConsoleOptions;
use crate::console::reach::Reach;
use crate::console::records::Records;
use crate::control::Control;
use crate::events::Bus;
use crate::executors::ExecutorSpec;
use crate::guard::{AgentHandle, Clock, DelegateHandle, Guard, GuardOptions};
use crate::health::Health;
use crate::identity::Identity;
use crate::identity::secret::FormKey;
use crate::intake::{self, Intake};
use crate::jobs::{Scheduler, SchedulerOptions, WorkerExe};
use crate::keys;
use crate::notify::{self, Notifier};
use crate::scrape::{Scraper, ScraperOptions};
use crate::telemetry::{self, names};
use crate::tools::SourceSpec;
use crate::{clock, console, control, listen};

/// Scraped samples are kept for so long.
const KEEP_SAMPLES_MS: i64 = 6 * 3600 * 1000;

/// What a scratch run is started with (operations 1.8).
pub struct Options {
    /// The state folder.
    pub state_dir: PathBuf,
    /// The configuration, if not `etc/sentinel.toml` of the folder.
    pub config: Option<PathBuf>,
    /// A fault for the engine child; test builds only.
    pub engine_fault: Option<String>,
}

/// Why the daemon does not start.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The configuration is invalid.
    #[error("the configuration is invalid")]
    Config(Vec<Problem>),
    /// Another process owns the folder.
    #[error("`{}` is in use by process {holder}", dir.display())]
    Locked {
        /// The folder.
        dir: PathBuf,
        /// Its owner, as it wrote itself down.
        holder: String,
    },
    /// A scratch folder lies where a system's folder belongs.
    #[error("`{}` lies below /var/lib: keys beside data are for scratch runs only", .0.display())]
    NotScratch(PathBuf),
    /// A file or socket.
    #[error("{what}: {source}")]
    Io {
        /// What was being done.
        what: String,
        /// Why it failed.
        #[source]
        source: std::io::Error,
    },
    /// The incidents are gone and the signed log that names them is there.
    #[error("`{}` is missing beside the signed log of this folder; restore it from a copy of the folder", .0.display())]
    Missing(PathBuf),
    /// A key.
    #[error(transparent)]
    Key(#[from] keys::Error),
    /// `sentinel.db`.
    #[error(transparent)]
    Store(#[from] store::sentinel::Error),
    /// The tables of logins.
    #[error(transparent)]
    Logins(#[from] store::logins::Error),
    /// The guard.
    #[error("the guard does not start")]
    Guard(#[source] crate::guard::Error),
    /// Accounts.
    #[error(transparent)]
    Identity(#[from] crate::identity::Error),
    /// Jobs.
    #[error(transparent)]
    Jobs(#[from] crate::jobs::Error),
    /// The conductor.
    #[error(transparent)]
    Conductor(#[from] conductor::Error),
    /// Anything else that a library refused.
    #[error("{0}")]
    Other(String),
}

fn io(what: impl Into<String>) -> impl FnOnce(std::io::Error) -> Error {
    let what = what.into();
    move |source| Error::Io { what, source }
}

/// Makes the folders of a scratch run and takes its lock.
fn scratch(dir: &Path) -> Result<(PathBuf, File), Error> {
    let make = |path: &Path, mode: u32| {
        std::fs::DirBuilder::new()
            .recursive(true)
            .mode(mode)
            .create(path)
            .and_then(|()| std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)))
            .map_err(io(format!("cannot make `{}`", path.display())))
    };
    if !dir.exists() {
        make(dir, 0o711)?;
    }
    let dir = dir
        .canonicalize()
        .map_err(io(format!("cannot resolve `{}`", dir.display())))?;
    if dir.starts_with("/var/lib") {
        return Err(Error::NotScratch(dir));
    }
    make(&dir, 0o711)?;
    make(&dir.join("run"), 0o755)?;
    for private in ["anchor", "cache", "etc"] {
        make(&dir.join(private), 0o700)?;
    }
    let path = dir.join("lock");
    let lock = File::options()
        .create(true)
        .truncate(false)
        .read(true)
        .write(true)
        .open(&path)
        .map_err(io(format!("cannot open `{}`", path.display())))?;
    if flock(&lock, FlockOperation::NonBlockingLockExclusive).is_err() {
        let holder = std::fs::read_to_string(&path).unwrap_or_default();
        return Err(Error::Locked {
            dir,
            holder: holder.trim().to_owned(),
        });
    }
    std::fs::write(&path, format!("{}\n", std::process::id()))
        .map_err(io("cannot write the lock"))?;
    Ok((dir, lock))
}

/// A running daemon: dropping it ends what it supervises.
pub struct Running {
    /// Address of console, API and intake.
    pub address: SocketAddr,
    /// Address of `/metrics`.
    pub metrics: SocketAddr,
    _lock: File,
    _scrapers: Vec<Scraper>,
    engine: Option<Arc<Engine>>,
}

impl Running {
    /// Ends the engine child.
    pub fn stop(self) {
        drop(self.engine);
    }
}

/// Reads the configuration and starts the log with its level.
fn configuration(file: &Path) -> Result<Arc<Config>, Error> {
    let loaded = config::load(file);
    let Some(config) = loaded.config.map(Arc::new) else {
        return Err(Error::Config(loaded.problems));
    };
    telemetry::install_subscriber(&config.log_level);
    for problem in &loaded.problems {
        tracing::warn!(code = problem.code, "{}", problem.message);
    }
    Ok(config)
}

async fn open_guard(dir: &Path, kek: [u8; 32]) -> Result<Guard, Error> {
    let guard = Guard::open(GuardOptions {
        state_dir: dir.to_owned(),
        anchor_dir: dir.join("anchor"),
        run_dir: dir.join("run"),
        policy_path: dir.join("etc/policy.toml"),
        kek,
        now: Clock::system(),
    })
    .map_err(Error::Guard)?;
    if let Ok(health) = guard.health().await {
        for found in health.states {
            tracing::error!(
                code = "SN-0215",
                state = found.state,
                cause = found.cause,
                "the guard starts, but stops changes"
            );
        }
    }
    Ok(guard)
}

/// Opens `sentinel.db`. It is made where no signed log stands; a lost one, or one of another key, is
/// refused, since nobody could say what became of the incidents in it.
fn open_db(dir: &Path, redact_key: &[u8; 32]) -> Result<Arc<Db>, Error> {
    let path = dir.join("sentinel.db");
    let logged = dir.join("guard.db").exists() || dir.join("anchor/head").exists();
    if logged && !path.exists() {
        return Err(Error::Missing(path));
    }
    let db = Db::open(&path)?;
    if !db.key_matches("redact-key", &keys::derive(redact_key, "check/1"))? {
        return Err(keys::Error::Other(dir.join("etc/redact-key")).into());
    }
    Ok(Arc::new(db))
}

/// The policy that the guard has just opened: it is read again at the next start only.
fn policy(dir: &Path) -> Result<Policy, Error> {
    let path = dir.join("etc/policy.toml");
    let text = std::fs::read_to_string(&path).map_err(io("cannot read the policy"))?;
    Policy::parse(&text).map_err(|e| Error::Other(e.to_string()))
}

fn console_of(
    config: &Config,
    backend: Records,
    identity: Identity,
    bus: Bus,
) -> Result<ConsoleOptions, Error> {
    Ok(ConsoleOptions {
        backend: Arc::new(backend),
        identity,
        bus,
        site: config.site.clone(),
        names: console::own_hosts(config.http.listen.ip(), &config.http.names),
        tls: false,
        now: Arc::new(clock::now),
        form_key: FormKey::generate().map_err(|e| Error::Other(e.to_string()))?,
    })
}

/// Puts the version and the start of the process on the metrics page.
fn introduce() {
    telemetry::gauge(names::BUILD_INFO, &[env!("CARGO_PKG_VERSION")], 1.0);
    #[allow(clippy::cast_precision_loss, reason = "a time in seconds fits")]
    telemetry::gauge(names::START_TIME, &[], clock::now().0 as f64 / 1000.0);
}

/// Serves `app` until the process ends.
async fn listen(address: SocketAddr, app: Router) -> Result<SocketAddr, Error> {
    let listener = tokio::net::TcpListener::bind(address)
        .await
        .map_err(io(format!("cannot listen on {address}")))?;
    let address = listener
        .local_addr()
        .map_err(io("cannot read the listener's address"))?;
    tokio::spawn(listen::serve(listener, app, listen::HEAD));
    Ok(address)
}

/// The keys `guard-kek` and `redact-key`; made only for a folder that holds no data yet.
fn own_keys(dir: &Path) -> Result<([u8; 32], [u8; 32]), Error> {
    let has_data = ["guard.db", "sentinel.db", "anchor/head"]
        .iter()
        .any(|name| dir.join(name).exists());
    let own = |name| keys::load_or_make(&dir.join("etc"), name, has_data);
    Ok((own("guard-kek")?, own("redact-key")?))
}

/// Starts everything.
///
/// # Errors
/// [`Error`]; nothing is left running.
pub async fn start(options: Options) -> Result<Running, Error> {
    let (dir, lock) = scratch(&options.state_dir)?;
    let file = options.config.clone();
    let open = config::open_files(&dir);
    if !open.is_empty() {
        return Err(Error::Config(open));
    }
    let config = configuration(&file.unwrap_or_else(|| dir.join("etc/sentinel.toml")))?;
    let recorder = telemetry::install_recorder().map_err(|e| Error::Other(e.to_string()))?;
    introduce();
    let (kek, redact_key) = own_keys(&dir)?;
    let db = open_db(&dir, &redact_key)?;
    let guard = open_guard(&dir, kek).await?;
    let exe = std::env::current_exe().map_err(io("cannot find the program's own file"))?;
    let bus = Bus::new(clock::now);
    let (engine, engine_refused) = engine(&config, &exe, options.engine_fault);
    let scheduler = scheduler(&config, &exe)?;
    let scrapers = scrapers(&config, &scheduler, &db)?;
    let notifier = Notifier::new(Arc::clone(&config));
    let reach = Reach::new(&config, policy(&dir)?, scheduler.clone());
    let conductor = Conductor::new(conductor::Parts {
        db: Arc::clone(&db),
        guard: guard.clone(),
        agent: AgentHandle::internal("conductor"),
        scheduler,
        engine: engine.clone(),
        bus: bus.clone(),
        notifier: notifier.clone(),
        config: Arc::clone(&config),
        wrap_key: keys::derive(&redact_key, "wrap/1"),
    });
    let health = Health {
        db: Arc::clone(&db),
        guard: guard.clone(),
        engine: engine.clone(),
        engine_refused,
    };
    let identity = identity(&dir, &guard, &config)?;
    notify::start(&notifier, &db, &health).map_err(io("cannot read the key of a [notify] sink"))?;
    conductor.resume_all()?;
    serve_control(&dir, &identity, &health)?;
    let metrics = telemetry::serve_metrics(config.metrics_listen, recorder)
        .await
        .map_err(io(format!("cannot listen on {}", config.metrics_listen)))?;
    let model = engine.clone();
    let intake = intake_of(&config, &db, &conductor, &redact_key)?;
    let backend = Records::new(
        db,
        guard,
        DelegateHandle::internal("console"),
        reach,
        move || model_words(model.as_ref()),
    );
    let console = console_of(&config, backend, identity, bus)?;
    let app = intake::router(intake)
        .merge(crate::health::router(health))
        .fallback_service(console::router(console));
    let address = listen(config.http.listen, app).await?;
    tracing::info!(address = %address, metrics = %metrics, "serving");
    Ok(Running {
        address,
        metrics,
        _lock: lock,
        _scrapers: scrapers,
        engine,
    })
}

fn serve_control(dir: &Path, identity: &Identity, health: &Health) -> Result<(), Error> {
    let control = Control {
        db: Arc::clone(&health.db),
        guard: health.guard.clone(),
        delegate: DelegateHandle::internal("control"),
        identity: identity.clone(),
        health: health.clone(),
    };
    control::serve(&dir.join("run/control.sock"), control)
        .map_err(io("cannot make `run/control.sock`"))
}

fn engine(config: &Config, exe: &Path, fault: Option<String>) -> (Option<Arc<Engine>>, String) {
    let Some(model) = &config.model else {
        return (None, String::new());
    };
    let started = Engine::start(EngineOptions {
        exe: exe.to_owned(),
        model: model.file.clone(),
        sha256: model.sha256.clone(),
        n_ctx: model.n_ctx,
        threads: (model.threads > 0).then_some(model.threads),
        fault,
        on_event: Box::new(engine_event),
    });
    match started {
        Ok(engine) => (Some(Arc::new(engine)), String::new()),
        Err(e) => {
            tracing::error!(
                code = e.code.as_str(),
                detail = e.detail,
                "the engine does not start"
            );
            (None, e.code.as_str().to_owned())
        }
    }
}

/// How the model is, for the console's bar.
fn model_words(engine: Option<&Arc<Engine>>) -> String {
    match engine.map(|e| e.state()) {
        None => "none: rules only".to_owned(),
        Some(EngineState::Ready) => "ready".to_owned(),
        Some(EngineState::Loading) => "loading".to_owned(),
        Some(EngineState::Restarting) => "restarting".to_owned(),
        Some(EngineState::Degraded) => "degraded: rules only".to_owned(),
        Some(EngineState::Unavailable { code }) => format!("{}: rules only", code.as_str()),
        Some(EngineState::Stopped) => "stopped: rules only".to_owned(),
    }
}

fn engine_event(event: EngineEvent) {
    match event {
        EngineEvent::Started { pid } => tracing::info!(pid, "engine started"),
        EngineEvent::Ready(_) => tracing::info!("engine ready"),
        EngineEvent::Crashed { cause, stderr } => {
            let cause_class = if cause == "hang" || cause == "garbage" {
                cause.as_str()
            } else {
                "exit"
            };
            telemetry::count(names::ENGINE_RESTARTS, &[cause_class], 1);
            tracing::error!(
                cause,
                lines = stderr.len(),
                "the engine ended; incidents go on by rules"
            );
        }
        EngineEvent::Restarting { after } => {
            tracing::warn!(after_ms = after.as_millis(), "engine restarts")
        }
        EngineEvent::Degraded => tracing::error!("the engine crashed too often and is left alone"),
        EngineEvent::Refused { code, detail } => {
            tracing::error!(code = code.as_str(), detail, "the engine refused")
        }
        EngineEvent::Quarantined { prompt } => tracing::error!(prompt, "a prompt is quarantined"),
    }
}

fn scheduler(config: &Config, exe: &Path) -> Result<Scheduler, Error> {
    Ok(Scheduler::new(SchedulerOptions {
        exe: WorkerExe {
            path: exe.to_owned(),
            args: vec!["worker".to_owned()],
        },
        clock: Arc::new(clock::now),
        sources: config
            .sources
            .iter()
            .map(|(name, s)| (name.clone(), SourceSpec::from(s)))
            .collect(),
        executors: config
            .executors
            .iter()
            .map(|(name, e)| (name.clone(), ExecutorSpec::configured(name, e)))
            .collect(),
        observer: Arc::new(|job| {
            telemetry::count(names::JOBS, &[job.tool, job.result], 1);
            telemetry::observe(names::JOB_SECONDS, &[job.tool], job.took.as_secs_f64());
        }),
    })?)
}

/// Starts a scraper for each metrics source, on a ring that remembers what was stored.
fn scrapers(config: &Config, scheduler: &Scheduler, db: &Arc<Db>) -> Result<Vec<Scraper>, Error> {
    let mut running = Vec::new();
    let ring = scheduler.ring();
    let stored = db.scrapes(clock::now().plus(-KEEP_SAMPLES_MS))?;
    for source in config.sources.values() {
        let Source::Metrics { every_ms, targets } = source else {
            continue;
        };
        for scrape in &stored {
            let target = targets
                .iter()
                .find(|t| t.service == scrape.service && t.instance == scrape.instance);
            if let Some(target) = target {
                ring.push(&target.into(), scrape.at, &scrape.samples);
            }
        }
        let db = Arc::clone(db);
        running.push(
            Scraper::start(ScraperOptions {
                spawner: scheduler.spawner(),
                clock: Arc::new(clock::now),
                every: Duration::from_millis(u64::try_from(*every_ms).unwrap_or(1000)),
                targets: targets.iter().map(Into::into).collect(),
                ring: Arc::clone(&ring),
                on_scrape: Box::new(move |target, at: Millis, samples| {
                    let scrape = Scrape {
                        service: target.service.clone(),
                        instance: target.instance.clone(),
                        at,
                        samples: samples.to_vec(),
                    };
                    if let Err(e) = db.add_scrape(&scrape, at.plus(-KEEP_SAMPLES_MS)) {
                        tracing::error!(
                            error = &e as &dyn std::error::Error,
                            "samples are not stored"
                        );
                    }
                }),
            })
            .map_err(io("cannot start a scraper"))?,
        );
    }
    Ok(running)
}

fn identity(dir: &Path, guard: &Guard, config: &Config) -> Result<Identity, Error> {
    let logins = Logins::open(&dir.join("sentinel.db"))?;
    Ok(Identity::new(
        logins,
        Arc::new(guard.clone()),
        config.site.clone(),
    )?)
}

fn intake_of(
    config: &Config,
    db: &Arc<Db>,
    conductor: &Conductor,
    redact_key: &[u8; 32],
) -> Result<Arc<Intake>, Error> {
    let mut sources = BTreeMap::new();
    for (name, source) in &config.intake {
        let token = std::fs::read_to_string(&source.token_file)
            .map_err(io(format!("cannot read the credential of [intake.{name}]")))?;
        let token = Sha256::digest(token.trim_end().as_bytes()).into();
        sources.insert(
            name.clone(),
            intake::Source {
                config: source.clone(),
                token,
            },
        );
    }
    Ok(Arc::new(Intake {
        db: Arc::clone(db),
        conductor: conductor.clone(),
        sources,
        site_key: keys::derive(redact_key, "site/1"),
        redact_key: RedactKey::from_bytes(keys::derive(redact_key, "intake/1")),
    }))
}
