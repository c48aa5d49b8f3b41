//! From text to [`Config`], with every problem at once.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use policies::model::{Edge, RemediationClass};
use toml_edit::Document;

use super::modes;
use super::notify;
use super::problem::{Level, Problem};
use super::reader::{Reader, Section, locate};
use super::{
    Config, DEFAULT_TOML, Executor, ExecutorKind, Http, Intake, Investigation, LogFile, Model,
    Probe, ReleaseTree, ScrapeTarget, Source,
};

/// A configuration and what was found while it was read.
#[derive(Debug)]
pub struct Loaded {
    /// `None` when an error was found.
    pub config: Option<Config>,
    /// Errors and warnings, in file order.
    pub problems: Vec<Problem>,
}

/// Largest configuration file (operations 4.2).
const MAX_FILE_BYTES: u64 = 1 << 20;

/// Reads and checks `path`, the files that it names included.
#[must_use]
pub fn load(path: &Path) -> Loaded {
    let name = path.display().to_string();
    let text = std::fs::metadata(path).and_then(|m| {
        if m.len() > MAX_FILE_BYTES {
            return Err(std::io::Error::other("it is larger than 1 MiB"));
        }
        std::fs::read_to_string(path)
    });
    match text {
        Ok(text) => {
            let mut loaded = load_text(&name, &text);
            loaded.problems.extend(modes::writable(path));
            if let Some(config) = &loaded.config {
                loaded.problems.extend(check_files(&name, config));
            }
            if loaded.problems.iter().any(|p| p.level == Level::Error) {
                loaded.config = None;
            }
            loaded
        }
        Err(e) => Loaded {
            config: None,
            problems: vec![whole_file(&name, "SN-0101", format!("cannot be read: {e}"))],
        },
    }
}

pub(super) fn whole_file(file: &str, code: &'static str, message: String) -> Problem {
    Problem {
        level: Level::Error,
        code,
        file: file.to_owned(),
        line: 0,
        column: 0,
        message,
        source_line: String::new(),
        width: 0,
        help: String::new(),
    }
}

/// Reads and checks a text; files that it names are not looked at.
#[must_use]
pub fn load_text(file: &str, text: &str) -> Loaded {
    let defaults = match Document::parse(DEFAULT_TOML.to_owned()) {
        Ok(doc) => doc,
        Err(e) => {
            return Loaded {
                config: None,
                problems: vec![whole_file("default.toml", "SN-0101", e.to_string())],
            };
        }
    };
    let doc = match Document::parse(text.to_owned()) {
        Ok(doc) => doc,
        Err(e) => {
            return Loaded {
                config: None,
                problems: vec![syntax(file, text, &e)],
            };
        }
    };
    let mut reader = Reader::new(file, text);
    let root = Section::root(&doc, Some(&defaults));
    let config = read_config(&mut reader, &root);
    let mut problems = reader.problems;
    problems.sort_by_key(|p| (p.line, p.column));
    let failed = problems.iter().any(|p| p.level == Level::Error);
    Loaded {
        config: if failed { None } else { config },
        problems,
    }
}

fn syntax(file: &str, text: &str, e: &toml_edit::TomlError) -> Problem {
    let (line, column, source_line, width) = e
        .span()
        .map_or((0, 0, String::new(), 0), |s| locate(text, &s));
    Problem {
        line,
        column,
        source_line,
        width,
        ..whole_file(
            file,
            "SN-0101",
            format!("no valid TOML: {}", e.message().trim_end()),
        )
    }
}

fn read_config(r: &mut Reader<'_>, root: &Section<'_>) -> Option<Config> {
    if r.int(root, "schema", 1..=1) != 1 {
        return None;
    }
    let site = r.section(root, "site");
    let site_name = r.text(&site, "name");
    r.close(&site, &["name"]);
    let http = read_http(r, root);
    let telemetry = r.section(root, "telemetry");
    let metrics_listen = address(r, &telemetry, "metrics_listen");
    r.close(&telemetry, &["metrics_listen"]);
    let log = r.section(root, "log");
    let level = r.word(&log, "level", &["error", "warn", "info", "debug", "trace"]);
    let log_level = ["error", "warn", "info", "debug", "trace"]
        .get(level.unwrap_or(2))
        .copied()
        .unwrap_or("info")
        .to_owned();
    r.close(&log, &["level"]);
    let audit = r.section(root, "audit");
    let trust = r.text(&audit, "trust_file");
    r.close(&audit, &["trust_file"]);
    let model = read_model(r, root);
    let investigation = read_investigation(r, root);
    let intake = read_intakes(r, root);
    let sources = read_sources(r, root);
    let executors = read_executors(r, root);
    let notify = notify::read(r, root);
    r.close(
        root,
        &[
            "schema",
            "site",
            "http",
            "telemetry",
            "log",
            "audit",
            "model",
            "investigation",
            "intake",
            "sources",
            "executors",
            "notify",
        ],
    );
    if metrics_listen.port() == http.listen.port() && metrics_listen.port() != 0 {
        r.error(
            "SN-0106",
            Reader::span(&telemetry, "metrics_listen"),
            "`telemetry.metrics_listen` and `http.listen` share a port".to_owned(),
            "give each its own".to_owned(),
        );
    }
    Some(Config {
        site: site_name,
        http,
        metrics_listen,
        log_level,
        trust_file: (!trust.is_empty()).then(|| PathBuf::from(trust)),
        model,
        investigation,
        intake,
        sources,
        executors,
        notify,
    })
}

fn address(r: &mut Reader<'_>, section: &Section<'_>, key: &'static str) -> SocketAddr {
    let text = r.text(section, key);
    let fallback = SocketAddr::from(([127, 0, 0, 1], 0));
    if text.is_empty() {
        return fallback;
    }
    match text.parse::<SocketAddr>() {
        Ok(a) if a.ip().is_loopback() => a,
        Ok(_) => {
            r.error(
                "SN-0107",
                Reader::span(section, key),
                format!(
                    "`{}.{key}` is off loopback and there is no TLS",
                    section.name
                ),
                "use an address of 127.0.0.0/8 or [::1]".to_owned(),
            );
            fallback
        }
        Err(_) => {
            r.error(
                "SN-0103",
                Reader::span(section, key),
                format!(
                    "`{}.{key}` must be an address with a port, for example \"127.0.0.1:8470\"",
                    section.name
                ),
                String::new(),
            );
            fallback
        }
    }
}

fn read_http(r: &mut Reader<'_>, root: &Section<'_>) -> Http {
    let http = r.section(root, "http");
    let listen = address(r, &http, "listen");
    let names = r.texts(&http, "names");
    r.close(&http, &["listen", "names"]);
    Http { listen, names }
}

fn read_model(r: &mut Reader<'_>, root: &Section<'_>) -> Option<Model> {
    let s = r.section(root, "model");
    let file = r.text(&s, "file");
    let sha256 = r.text(&s, "sha256");
    let n_ctx = r.int(&s, "n_ctx", 512..=131_072);
    let threads = r.int(&s, "threads", 0..=256);
    r.close(&s, &["file", "sha256", "n_ctx", "threads"]);
    if file.is_empty() {
        return None;
    }
    if sha256.len() != 64
        || !sha256
            .bytes()
            .all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'))
    {
        r.error(
            "SN-0108",
            Reader::span(&s, "sha256"),
            "`model.sha256` must be the SHA-256 of the file, 64 lower-case hexadecimal digits"
                .to_owned(),
            "`sha256sum FILE` prints it".to_owned(),
        );
    }
    Some(Model {
        file: PathBuf::from(file),
        sha256,
        n_ctx: u32::try_from(n_ctx).unwrap_or(4096),
        threads: u32::try_from(threads).unwrap_or(0),
    })
}

fn read_investigation(r: &mut Reader<'_>, root: &Section<'_>) -> Investigation {
    let s = r.section(root, "investigation");
    let read = Investigation {
        lookback_ms: r.duration(&s, "lookback"),
        settle_ms: r.duration(&s, "settle"),
        model_deadline_ms: r.duration(&s, "model_deadline"),
        verify_for_ms: r.duration(&s, "verify_for"),
        verify_hold_ms: r.duration(&s, "verify_hold"),
    };
    r.close(
        &s,
        &[
            "lookback",
            "settle",
            "model_deadline",
            "verify_for",
            "verify_hold",
        ],
    );
    if read.verify_hold_ms >= read.verify_for_ms {
        r.error(
            "SN-0109",
            Reader::span(&s, "verify_hold"),
            "`investigation.verify_hold` must be shorter than `verify_for`".to_owned(),
            String::new(),
        );
    }
    read
}

fn read_intakes(r: &mut Reader<'_>, root: &Section<'_>) -> BTreeMap<String, Intake> {
    let mut found = BTreeMap::new();
    for (name, s) in r.named(root, "intake") {
        r.word(&s, "kind", &["alertmanager"]);
        let token_file = PathBuf::from(r.text(&s, "file"));
        let tenant = r.text_or(&s, "tenant", "default");
        let mut heartbeats = r.texts(&s, "heartbeats");
        if heartbeats.is_empty() {
            heartbeats = vec!["Watchdog".to_owned(), "DeadMansSwitch".to_owned()];
        }
        let storm = if Reader::span(&s, "storm_threshold").is_some() {
            r.int(&s, "storm_threshold", 1..=100_000)
        } else {
            100
        };
        r.close(
            &s,
            &["kind", "file", "tenant", "heartbeats", "storm_threshold"],
        );
        found.insert(
            name,
            Intake {
                token_file,
                tenant,
                heartbeats,
                storm_threshold: usize::try_from(storm).unwrap_or(100),
            },
        );
    }
    found
}

const SOURCE_KINDS: [&str; 6] = [
    "logs", "metrics", "releases", "units", "topology", "runbooks",
];

fn read_sources(r: &mut Reader<'_>, root: &Section<'_>) -> BTreeMap<String, Source> {
    let mut found = BTreeMap::new();
    for (name, s) in r.named(root, "sources") {
        let source = match r.word(&s, "kind", &SOURCE_KINDS) {
            Some(0) => read_logs(r, &s),
            Some(1) => read_metrics(r, &s),
            Some(2) => read_releases(r, &s),
            Some(3) => {
                let path = PathBuf::from(r.text(&s, "path"));
                r.close(&s, &["kind", "path"]);
                Source::Units { path }
            }
            Some(4) => read_topology(r, &s),
            Some(5) => {
                let folder = PathBuf::from(r.text(&s, "folder"));
                r.close(&s, &["kind", "folder"]);
                Source::Runbooks { folder }
            }
            Some(_) | None => continue,
        };
        found.insert(name, source);
    }
    found
}

fn read_logs(r: &mut Reader<'_>, s: &Section<'_>) -> Source {
    let files = r
        .tables(s, "files")
        .iter()
        .map(|f| {
            let file = LogFile {
                service: r.text(f, "service"),
                instance: r.text(f, "instance"),
                path: PathBuf::from(r.text(f, "path")),
            };
            r.close(f, &["service", "instance", "path"]);
            file
        })
        .collect();
    r.close(s, &["kind", "files"]);
    Source::Logs { files }
}

fn read_metrics(r: &mut Reader<'_>, s: &Section<'_>) -> Source {
    let every_ms = r.duration(s, "every");
    let targets = r
        .tables(s, "targets")
        .iter()
        .map(|t| {
            let target = ScrapeTarget {
                service: r.text(t, "service"),
                instance: r.text(t, "instance"),
                address: address(r, t, "address"),
                path: r.text_or(t, "path", "/metrics"),
            };
            r.close(t, &["service", "instance", "address", "path"]);
            target
        })
        .collect();
    r.close(s, &["kind", "every", "targets"]);
    if every_ms < 250 {
        r.error(
            "SN-0103",
            Reader::span(s, "every"),
            format!("`{}.every` must be at least 250ms", s.name),
            String::new(),
        );
    }
    Source::Metrics { every_ms, targets }
}

fn read_releases(r: &mut Reader<'_>, s: &Section<'_>) -> Source {
    let history = PathBuf::from(r.text(s, "history"));
    let services = r
        .tables(s, "services")
        .iter()
        .map(|t| {
            let tree = ReleaseTree {
                service: r.text(t, "name"),
                releases: PathBuf::from(r.text(t, "releases")),
                current: PathBuf::from(r.text(t, "current")),
            };
            r.close(t, &["name", "releases", "current"]);
            tree
        })
        .collect();
    r.close(s, &["kind", "history", "services"]);
    Source::Releases { history, services }
}

fn read_topology(r: &mut Reader<'_>, s: &Section<'_>) -> Source {
    let mut edges = Vec::new();
    for text in r.texts(s, "edges") {
        match text.split_once("->") {
            Some((a, b)) if !a.trim().is_empty() && !b.trim().is_empty() => edges.push(Edge {
                caller: a.trim().to_owned(),
                callee: b.trim().to_owned(),
            }),
            Some(_) | None => r.error(
                "SN-0103",
                Reader::span(s, "edges"),
                format!("`{text}` is no call edge"),
                "write \"caller->callee\"".to_owned(),
            ),
        }
    }
    r.close(s, &["kind", "edges"]);
    Source::Topology { edges }
}

fn read_executors(r: &mut Reader<'_>, root: &Section<'_>) -> BTreeMap<String, Executor> {
    let mut found = BTreeMap::new();
    for (name, s) in r.named(root, "executors") {
        let target = r.text(&s, "target");
        let action = r.text(&s, "action");
        let action = match action.parse::<RemediationClass>() {
            Ok(class) if class.is_mutating() => class,
            Ok(_) | Err(_) => {
                r.error(
                    "SN-0105",
                    Reader::span(&s, "action"),
                    format!("`{}.action` does not know `{action}`", s.name),
                    "one of: rollback, resize, restart and the other changing classes".to_owned(),
                );
                RemediationClass::Restart
            }
        };
        let kind = match r.word(&s, "kind", &["symlink", "value", "trigger"]) {
            Some(0) => {
                r.close(
                    &s,
                    &["kind", "action", "target", "probe", "link", "releases"],
                );
                ExecutorKind::Symlink {
                    link: PathBuf::from(r.text(&s, "link")),
                    releases: PathBuf::from(r.text(&s, "releases")),
                }
            }
            Some(1) => {
                r.close(
                    &s,
                    &[
                        "kind", "action", "target", "probe", "file", "key", "min", "max",
                    ],
                );
                ExecutorKind::Value {
                    file: PathBuf::from(r.text(&s, "file")),
                    key: r.text(&s, "key"),
                    min: r.int(&s, "min", -1_000_000_000..=1_000_000_000),
                    max: r.int(&s, "max", -1_000_000_000..=1_000_000_000),
                }
            }
            Some(2) => {
                r.close(&s, &["kind", "action", "target", "probe", "file"]);
                ExecutorKind::Trigger {
                    file: PathBuf::from(r.text(&s, "file")),
                }
            }
            Some(_) | None => continue,
        };
        let probe = read_probe(r, &s);
        found.insert(
            name,
            Executor {
                action,
                target,
                kind,
                probe,
            },
        );
    }
    found
}

fn read_probe(r: &mut Reader<'_>, executor: &Section<'_>) -> Probe {
    let s = r.section(executor, "probe");
    let probe = Probe {
        service: r.text(&s, "service"),
        metric: r.text(&s, "metric"),
        label: r.text(&s, "label"),
        bad_prefix: r.text(&s, "bad_prefix"),
        max_ratio: r.number(&s, "max_ratio"),
        window_ms: r.duration(&s, "window"),
    };
    r.close(
        &s,
        &[
            "service",
            "metric",
            "label",
            "bad_prefix",
            "max_ratio",
            "window",
        ],
    );
    probe
}

/// Checks of the files that the configuration names.
fn check_files(file: &str, config: &Config) -> Vec<Problem> {
    let mut problems = Vec::new();
    let tokens = config
        .intake
        .iter()
        .map(|(name, intake)| (format!("[intake.{name}]"), &intake.token_file));
    let secrets = config
        .notify
        .iter()
        .map(|(name, sink)| (format!("[notify.{name}]"), &sink.secret_file));
    for (section, path) in tokens.chain(secrets) {
        if let Err(why) = secret_file_is_private(path) {
            let mut p = whole_file(file, "SN-0110", format!("credential of {section}: {why}"));
            p.help = format!("chmod 600 {}", path.display());
            problems.push(p);
        }
    }
    if let Some(model) = &config.model
        && !model.file.is_file()
    {
        problems.push(Problem {
            level: Level::Warning,
            ..whole_file(
                file,
                "SN-0111",
                format!(
                    "model file `{}` is missing; incidents are diagnosed by rules alone",
                    model.file.display()
                ),
            )
        });
    }
    problems
}

/// A secret must be a regular file, not a link, of root or of the running user, closed to others
/// (operations 5.2).
///
/// # Errors
/// A sentence that names the file and what is wrong with it.
pub(crate) fn secret_file_is_private(path: &Path) -> Result<(), String> {
    use std::os::unix::fs::MetadataExt;
    let meta = std::fs::symlink_metadata(path).map_err(|e| format!("`{}`: {e}", path.display()))?;
    let own = rustix::process::geteuid().as_raw();
    if !meta.is_file() {
        return Err(format!("`{}` is not a regular file", path.display()));
    }
    if meta.uid() != 0 && meta.uid() != own {
        return Err(format!(
            "`{}` belongs to uid {}",
            path.display(),
            meta.uid()
        ));
    }
    if meta.mode() & 0o077 != 0 {
        return Err(format!(
            "`{}` is open to group or others (mode {:o})",
            path.display(),
            meta.mode() & 0o777
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::{DEFAULT_TOML, load_text};

    #[test]
    fn the_embedded_default_is_a_valid_configuration_and_equals_the_defaults() {
        let own = load_text("default.toml", DEFAULT_TOML);
        assert_eq!(own.problems, vec![]);
        let bare = load_text("empty.toml", "schema = 1\n");
        assert_eq!(own.config, bare.config);
        assert_eq!(bare.config.unwrap().http.listen.port(), 8470);
    }

    #[test]
    fn an_unknown_key_is_named_with_line_column_and_the_nearest_key() {
        let text = "schema = 1\n\n[http]\nlistn = \"127.0.0.1:8470\"\n";
        let loaded = load_text("/etc/sentinel/sentinel.toml", text);
        assert!(loaded.config.is_none());
        let shown = loaded.problems.first().unwrap().to_string();
        assert_eq!(
            shown,
            "/etc/sentinel/sentinel.toml:4:1: error[SN-0102]: unknown key `listn` in [http]\n    \
             4 | listn = \"127.0.0.1:8470\"\n      | ^^^^^ did you mean `listen`?"
        );
    }

    #[test]
    fn a_key_of_another_table_is_said_to_belong_there() {
        let loaded = load_text(
            "s.toml",
            "schema = 1\n[telemetry]\nlisten = \"127.0.0.1:1\"\n",
        );
        assert_eq!(
            loaded.problems.first().unwrap().help,
            "`listen` belongs to [http]"
        );
    }

    #[test]
    fn every_problem_is_reported_at_once_in_file_order() {
        let text = "schema = 1\n[http]\nlisten = 5\n[investigation]\nsettle = \"soon\"\n[sources.x]\nkind = \"log\"\n";
        let loaded = load_text("s.toml", text);
        let lines: Vec<usize> = loaded.problems.iter().map(|p| p.line).collect();
        assert_eq!(lines, [3, 5, 7]);
    }

    #[test]
    fn a_listener_off_loopback_is_refused_without_tls() {
        let loaded = load_text("s.toml", "schema = 1\n[http]\nlisten = \"0.0.0.0:80\"\n");
        assert_eq!(loaded.problems.first().map(|p| p.code), Some("SN-0107"));
    }

    #[test]
    fn broken_toml_is_placed_and_never_a_panic() {
        let loaded = load_text("s.toml", "schema = 1\n[http\nlisten = 1\n");
        let p = loaded.problems.first().unwrap();
        assert_eq!((p.code, p.line), ("SN-0101", 2));
    }
}
