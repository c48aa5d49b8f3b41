//! The site of the lab: the two files that point Sentinel at the shop.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context as _;

use super::layout::{EDGES, INSTANCES, Layout, SERVICES};

/// Runbooks of the shop.
pub(super) const RUNBOOKS: &[(&str, &str)] = &[
    ("checkout.md", include_str!("runbooks/checkout.md")),
    ("payments.md", include_str!("runbooks/payments.md")),
    ("inventory.md", include_str!("runbooks/inventory.md")),
    ("general.md", include_str!("runbooks/general.md")),
];

/// A person of the policy file.
#[derive(Clone, Debug)]
pub struct Person {
    /// Person id.
    pub id: String,
    /// Subjects, for example `local:mara`.
    pub subjects: Vec<String>,
    /// Groups; `oncall` may approve.
    pub groups: Vec<String>,
}

/// The model that Sentinel is to load.
#[derive(Clone, Debug)]
pub struct ModelFile {
    /// The file.
    pub file: PathBuf,
    /// Its SHA-256 in hexadecimal digits.
    pub sha256: String,
    /// Length of the context in tokens.
    pub n_ctx: u32,
}

/// What the site's files are made from.
#[derive(Clone, Debug)]
pub struct LabSite {
    /// The lab directory.
    pub lab: PathBuf,
    /// Port of each instance, as the lab came up with.
    pub ports: BTreeMap<String, u16>,
    /// Address of the API and the console.
    pub listen: String,
    /// Address of Sentinel's own metrics page.
    pub metrics_listen: String,
    /// File with the bearer token of the intake.
    pub credential: PathBuf,
    /// People of the policy file.
    pub persons: Vec<Person>,
    /// The model; without one the rules decide alone.
    pub model: Option<ModelFile>,
}

fn quote(text: &str) -> String {
    toml_edit::Value::from(text).to_string().trim().to_owned()
}

fn quote_path(path: &Path) -> anyhow::Result<String> {
    let text = path
        .to_str()
        .with_context(|| format!("`{}` is not UTF-8", path.display()))?;
    Ok(quote(text))
}

impl LabSite {
    /// Writes `sentinel.toml` and `policy.toml` into `dir`.
    ///
    /// # Errors
    /// When a path is not UTF-8 or the folder cannot be written.
    pub fn write_site(&self, dir: &Path) -> anyhow::Result<()> {
        fs::create_dir_all(dir)?;
        let write = |name: &str, text: String| {
            let path = dir.join(name);
            fs::write(&path, text).with_context(|| format!("cannot write `{}`", path.display()))
        };
        write("sentinel.toml", self.sentinel_toml()?)?;
        write("policy.toml", self.policy_toml())
    }

    /// The configuration.
    ///
    /// # Errors
    /// When a path is not UTF-8.
    pub fn sentinel_toml(&self) -> anyhow::Result<String> {
        let mut out = String::new();
        write!(
            out,
            "# Written for the lab; made anew with each lab.\nschema = 1\n\n\
             [site]\nname = \"lab.example\"\n\n[http]\nlisten = {}\n\n\
             [telemetry]\nmetrics_listen = {}\n\n\
             [intake.alertmanager]\nkind = \"alertmanager\"\nfile = {}\ntenant = \"default\"\n\n",
            quote(&self.listen),
            quote(&self.metrics_listen),
            quote_path(&self.credential)?,
        )?;
        self.sources(&mut out)?;
        self.executors(&mut out)?;
        out.push_str(
            "[investigation]\nsettle = \"6s\"\nverify_for = \"60s\"\nverify_hold = \"5s\"\n",
        );
        if let Some(model) = &self.model {
            write!(
                out,
                "\n[model]\nfile = {}\nsha256 = {}\nn_ctx = {}\n",
                quote_path(&model.file)?,
                quote(&model.sha256),
                model.n_ctx
            )?;
        }
        Ok(out)
    }

    fn sources(&self, out: &mut String) -> anyhow::Result<()> {
        let lab = Layout::new(&self.lab);
        out.push_str("[sources.logs]\nkind = \"logs\"\nfiles = [\n");
        for (service, instance) in INSTANCES {
            let path = quote_path(&lab.log(instance))?;
            writeln!(
                out,
                "  {{ service = \"{service}\", instance = \"{instance}\", path = {path} }},"
            )?;
        }
        out.push_str("]\n\n[sources.metrics]\nkind = \"metrics\"\nevery = \"1s\"\ntargets = [\n");
        for (service, instance) in INSTANCES {
            let port = self.ports.get(instance);
            let port = port.with_context(|| format!("no port of {instance}"))?;
            writeln!(
                out,
                "  {{ service = \"{service}\", instance = \"{instance}\", \
                 address = \"127.0.0.1:{port}\", path = \"/metrics\" }},"
            )?;
        }
        write!(
            out,
            "]\n\n[sources.releases]\nkind = \"releases\"\nhistory = {}\nservices = [\n",
            quote_path(&lab.deploys())?
        )?;
        for service in SERVICES {
            writeln!(
                out,
                "  {{ name = \"{service}\", releases = {}, current = {} }},",
                quote_path(&lab.releases(service))?,
                quote_path(&lab.current(service))?
            )?;
        }
        let edges = EDGES.map(|(caller, callee)| quote(&format!("{caller}->{callee}")));
        write!(
            out,
            "]\n\n[sources.units]\nkind = \"units\"\npath = {}\n\n\
             [sources.topology]\nkind = \"topology\"\nedges = [{}]\n\n\
             [sources.runbooks]\nkind = \"runbooks\"\nfolder = {}\n\n",
            quote_path(&lab.units())?,
            edges.join(", "),
            quote_path(&lab.runbooks())?
        )?;
        Ok(())
    }

    fn executors(&self, out: &mut String) -> anyhow::Result<()> {
        let lab = Layout::new(&self.lab);
        let probe = "probe = { service = \"checkout\", metric = \"http_requests_total\", \
                     label = \"code\", bad_prefix = \"5\", max_ratio = 0.02, window = \"5s\" }\n\n";
        for service in SERVICES {
            write!(
                out,
                "[executors.rollback-{service}]\nkind = \"symlink\"\naction = \"rollback\"\n\
                 target = \"{service}\"\nlink = {}\nreleases = {}\n{probe}",
                quote_path(&lab.current(service))?,
                quote_path(&lab.releases(service))?
            )?;
        }
        write!(
            out,
            "[executors.resize-checkout]\nkind = \"value\"\naction = \"resize\"\n\
             target = \"checkout\"\nfile = {}\nkey = \"pool_size\"\nmin = 1\nmax = 16\n{probe}",
            quote_path(&lab.config("checkout"))?
        )?;
        // Inventory keeps its journal on its own disk: it has no automatic restart.
        for service in ["checkout", "payments"] {
            write!(
                out,
                "[executors.restart-{service}]\nkind = \"trigger\"\naction = \"restart\"\n\
                 target = \"{service}\"\nfile = {}\n{probe}",
                quote_path(&lab.restart(service))?
            )?;
        }
        Ok(())
    }

    /// The policy.
    #[must_use]
    pub fn policy_toml(&self) -> String {
        let mut out = "version = 1\nsite = \"lab.example\"\n\
             limits = { pending_per_requester = 20, proposals_per_requester_per_hour = 60, \
             refused_leaves_per_caller_per_minute = 30, deny_cooldown_h = 24 }\n\
             identity = [\n\
             \x20 { id = \"agent/rca\", role = \"agent\", peer = \"internal:conductor\", tenants = [\"default\"] },\n\
             \x20 { id = \"console\", role = \"delegate\", peer = \"internal:console\" },\n\
             \x20 { id = \"control\", role = \"delegate\", peer = \"internal:control\" },\n\
             ]\nperson = [\n"
            .to_owned();
        let list = |words: &[String]| {
            let quoted: Vec<String> = words.iter().map(|w| quote(w)).collect();
            quoted.join(", ")
        };
        for person in &self.persons {
            out += &format!(
                "  {{ id = {}, subjects = [{}], groups = [{}] }},\n",
                quote(&person.id),
                list(&person.subjects),
                list(&person.groups)
            );
        }
        out += "]\n";
        let changes = [
            (
                "rollback",
                "deploy = { type = \"id\" }, from = { type = \"name\" }, to = { type = \"name\" }",
            ),
            (
                "resize",
                "key = { type = \"enum\", values = [\"pool_size\"] }, \
                 from = { type = \"int\", min = 1, max = 16 }, \
                 to = { type = \"int\", min = 1, max = 16 }",
            ),
            ("restart", ""),
        ];
        for (name, change) in changes {
            let comma = if change.is_empty() { "" } else { ", " };
            out += &format!(
                "\n[[action]]\nname = \"{name}\"\nmay_propose = [\"agent/rca\"]\n\
                 may_approve = [\"group:oncall\"]\nexecutors = [\"internal:worker\"]\n\
                 approvals = 1\nmust_include = []\nmin_assurance = \"local\"\n\
                 pending_ttl_h = 72\napproval_ttl_s = 600\neffect_timeout_s = 120\n\
                 target = {{ namespace = {{ type = \"name\" }}, name = {{ type = \"name\" }} }}\n\
                 change = {{ incident = {{ type = \"id\" }}{comma}{change} }}\n"
            );
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn site() -> LabSite {
        LabSite {
            lab: PathBuf::from("/srv/lab"),
            ports: INSTANCES
                .iter()
                .map(|(_, instance)| ((*instance).to_owned(), 4000))
                .collect(),
            listen: "127.0.0.1:8470".to_owned(),
            metrics_listen: "127.0.0.1:9470".to_owned(),
            credential: PathBuf::from("/srv/token"),
            persons: vec![Person {
                id: "mara".to_owned(),
                subjects: vec!["local:mara".to_owned()],
                groups: vec!["oncall".to_owned()],
            }],
            model: Some(ModelFile {
                file: PathBuf::from("/srv/model.gguf"),
                sha256: "00".repeat(32),
                n_ctx: 8192,
            }),
        }
    }

    #[test]
    fn sentinel_takes_the_configuration_of_the_site_without_a_problem() {
        let text = site().sentinel_toml().unwrap();
        let loaded = daemon::config::load_text("sentinel.toml", &text);
        assert!(loaded.problems.is_empty(), "{:#?}", loaded.problems);
        assert_eq!(loaded.config.unwrap().site, "lab.example");
    }

    #[test]
    fn the_guard_takes_the_policy_of_the_site_and_knows_who_may_approve() {
        let policy = policies::guard::Policy::parse(&site().policy_toml()).unwrap();
        let person = policy.person_of_subject("local:mara").unwrap();
        for action in ["rollback", "resize", "restart"] {
            let rule = policy.action(action).unwrap();
            assert!(policy.may_approve(rule, person));
        }
    }

    #[test]
    fn both_files_of_the_site_are_toml_that_names_every_instance_and_person() {
        let text = site().sentinel_toml().unwrap();
        let config: toml_edit::DocumentMut = text.parse().unwrap();
        let targets = config["sources"]["metrics"]["targets"].as_array().unwrap();
        assert_eq!(targets.len(), INSTANCES.len());
        assert_eq!(config["executors"].as_table().unwrap().len(), 6);
        let policy: toml_edit::DocumentMut = site().policy_toml().parse().unwrap();
        let actions = policy["action"].as_array_of_tables().unwrap();
        assert_eq!(actions.len(), 3);
        assert_eq!(policy["person"].as_array().unwrap().len(), 1);
    }
}
