//! `cargo xtask demo`: breaks a small shop of real processes, and leads the incident through the
//! decision of a person to the repair and its proof.
//!
//! It drives only what a person could: the built binary and the pages of the console. It links no
//! crate of the product and knows no route that a person could not use.

mod console;
mod faults;
mod result;
mod sentinel;
mod site;
mod totp;

use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use serde_json::Value;

use crate::place::Place;
use crate::{model, setup};
use console::Browser;
use faults::Row;
use site::Site;
use totp::Authenticator;

/// The shop runs well for this long before it breaks, so that there is something to compare with.
const BEFORE: Duration = Duration::from_secs(30);
/// Longest time from the fault to an incident.
const TO_INCIDENT: Duration = Duration::from_secs(120);
/// Longest time of an incident that decides itself or is decided by `--yes`.
const TO_END: Duration = Duration::from_secs(300);
/// Longest time that a person gets.
const TO_DECISION: Duration = Duration::from_secs(45 * 60);

struct Options {
    row: &'static Row,
    yes: bool,
    json: bool,
}

/// A person of the demo.
struct Person {
    name: &'static str,
    password: String,
    secret: String,
    url: String,
}

/// Runs one fault from end to end.
pub(crate) fn main(place: &Place, args: &[String]) -> Result<ExitCode> {
    let options = parse(args)?;
    setup::prerequisites()?;
    let model_file = model::ensure(place)?;
    let exe = place.sentinel()?;
    let done = one(place, &options, &exe, &model_file)?;
    if options.json {
        println!("{}", done.object);
    } else {
        println!("{}", done.summary());
    }
    for problem in &done.problems {
        eprintln!("demo: {problem}");
    }
    Ok(if done.problems.is_empty() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

/// Every fault, each on a site of its own, decided by the second person; gives back how many came
/// to what they must and how many did not.
pub(crate) fn every_fault(place: &Place) -> Result<(u64, u64)> {
    let model_file = model::ensure(place)?;
    let exe = place.sentinel()?;
    let (mut passed, mut failed) = (0, 0);
    for row in faults::ROWS {
        let options = Options {
            row,
            yes: true,
            json: false,
        };
        let problems = match one(place, &options, &exe, &model_file) {
            Ok(done) => {
                println!("{}", done.object);
                done.problems
            }
            Err(e) => vec![format!("{e:#}")],
        };
        for problem in &problems {
            println!("FAILED {}: {problem}", row.fault);
        }
        if problems.is_empty() {
            passed += 1;
        } else {
            failed += 1;
        }
    }
    Ok((passed, failed))
}

fn parse(args: &[String]) -> Result<Options> {
    let mut fault = "bad-deploy".to_owned();
    let (mut yes, mut json) = (false, false);
    let mut rest = args.iter();
    while let Some(arg) = rest.next() {
        match arg.as_str() {
            "--yes" => yes = true,
            "--json" => json = true,
            "--fault" => fault.clone_from(rest.next().context("`--fault` needs a name")?),
            other => match other.strip_prefix("--fault=") {
                Some(name) => fault = name.to_owned(),
                None => bail!("`demo` knows --fault NAME, --yes and --json, but not `{other}`"),
            },
        }
    }
    let row = faults::ROWS.iter().find(|row| row.fault == fault);
    let row = row.with_context(|| {
        let names: Vec<&str> = faults::ROWS.iter().map(|row| row.fault).collect();
        format!(
            "there is no fault `{fault}`; there are {}",
            names.join(", ")
        )
    })?;
    Ok(Options { row, yes, json })
}

/// Builds the one binary with the features of the whole workspace, so that nothing is built twice.
fn one(place: &Place, options: &Options, exe: &Path, model_file: &Path) -> Result<result::Done> {
    let start = Instant::now();
    let say = |text: &str| println!("demo [{:>5.1} s] {text}", start.elapsed().as_secs_f64());
    let row = options.row;
    say(&format!(
        "starting the shop and a scratch site for `{}`",
        row.fault
    ));
    let mut site = Site::start(place, exe, row.fault, model_file)?;
    say(&format!(
        "http://{}/ is up; everything lies in {}",
        site.address,
        site.folder.display()
    ));
    let alice = add_person(&site, "alice")?;
    let bob = add_person(&site, "bob")?;
    let mut bobs_codes = Authenticator::new(&bob.secret)?;
    let mut bobs_browser = Browser::new(&site.address);
    if options.yes {
        bobs_browser.log_in(bob.name, &bob.password, &mut bobs_codes)?;
        say("bob is logged in");
    } else {
        introduce(&site, &[&alice, &bob]);
    }
    say(&format!("the shop runs well for {} s", BEFORE.as_secs()));
    let mut ready = settle(&mut site)?;
    let lab = site.lab.to_string_lossy().into_owned();
    site.sentinel.lab(&["fault", row.fault, &lab])?;
    let broken = Instant::now();
    say(&format!("broke the shop: {}", row.fault));
    let incident = first_incident(&mut site)?;
    ready.insert("fault_to_incident".to_owned(), seconds(broken.elapsed()));
    say(&format!("incident {incident}"));
    let shown = follow(&mut site, options, &incident, &say, |action, target| {
        bobs_browser.approve(action, target, "the evidence fits", &mut bobs_codes)
    })?;
    say("the incident is closed; measuring the shop and exporting the audit log");
    let mut done = result::Done::collect(&site, row, &incident, &shown, ready)?;
    done.finish(seconds(start.elapsed()));
    done.problems
        .extend(faults::judge(row, &done.object, &site.lab));
    Ok(done)
}

fn seconds(time: Duration) -> Value {
    // Milliseconds are as exact as anything here is.
    let ms = u32::try_from(time.as_millis()).unwrap_or(u32::MAX);
    Value::from(f64::from(ms) / 1000.0)
}

fn add_person(site: &Site, name: &'static str) -> Result<Person> {
    let mut bytes = [0_u8; 12];
    std::io::Read::read_exact(&mut std::fs::File::open("/dev/urandom")?, &mut bytes)?;
    let password = data_encoding::BASE32_NOPAD.encode(&bytes).to_lowercase();
    let data = site.sentinel.ask_with(
        &["user", "add", name, "--roles", "viewer,responder,approver"],
        &format!("{password}\n"),
    )?;
    let text = |member: &str| -> Result<String> {
        let found = data.get(member).and_then(Value::as_str);
        Ok(found
            .with_context(|| format!("`user add` gives no `{member}`"))?
            .to_owned())
    };
    Ok(Person {
        name,
        password,
        secret: text("totp_secret")?,
        url: text("totp_url")?,
    })
}

fn introduce(site: &Site, people: &[&Person]) {
    println!("\n  Open http://{}/ and decide.\n", site.address);
    for person in people {
        println!("  {:<6} password {}", person.name, person.password);
        println!(
            "         authenticator {}\n         {}\n",
            person.secret, person.url
        );
    }
    println!("  Without an authenticator at hand: oathtool --totp -b SECRET\n");
}

/// Lets the shop run, and looks that it does.
fn settle(site: &mut Site) -> Result<serde_json::Map<String, Value>> {
    let start = Instant::now();
    while start.elapsed() < BEFORE {
        site.alive()?;
        std::thread::sleep(Duration::from_millis(500));
    }
    let mut stages = serde_json::Map::new();
    stages.insert("before_the_fault".to_owned(), seconds(start.elapsed()));
    Ok(stages)
}

fn first_incident(site: &mut Site) -> Result<String> {
    let start = Instant::now();
    loop {
        site.alive()?;
        let list = site.sentinel.ask(&["incident", "list"])?;
        if let Some(id) = list.pointer("/items/0/id").and_then(Value::as_str) {
            return Ok(id.to_owned());
        }
        if start.elapsed() > TO_INCIDENT {
            bail!("no incident after {} s", TO_INCIDENT.as_secs());
        }
        std::thread::sleep(Duration::from_millis(300));
    }
}

/// Follows the incident to its end, and has it decided when it asks.
fn follow(
    site: &mut Site,
    options: &Options,
    incident: &str,
    say: &dyn Fn(&str),
    mut approve: impl FnMut(&str, &str) -> Result<()>,
) -> Result<Value> {
    let limit = if options.yes { TO_END } else { TO_DECISION };
    let start = Instant::now();
    let mut before = String::new();
    let mut asked = false;
    loop {
        site.alive()?;
        let shown = site.sentinel.ask(&["incident", "show", incident])?;
        let text = |path: &str| {
            shown
                .pointer(path)
                .and_then(Value::as_str)
                .unwrap_or_default()
        };
        let phase = text("/record/phase");
        if phase != before {
            say(&format!("  {phase}"));
            phase.clone_into(&mut before);
        }
        match phase {
            "closed" => return Ok(shown),
            "in_doubt" => bail!("the action is in doubt, which no fault of the demo leads to"),
            "awaiting_approval" if !asked && !text("/record/action/id").is_empty() => {
                asked = true;
                let (action, target) = (text("/record/action/id"), text("/record/proposal/target"));
                if options.yes {
                    approve(action, target)?;
                    say("  bob has approved");
                } else {
                    println!(
                        "\n  It waits for you: http://{}/approvals/{action}\n",
                        site.address
                    );
                }
            }
            _ => {}
        }
        if start.elapsed() > limit {
            bail!(
                "the incident still is `{phase}` after {} s",
                limit.as_secs()
            );
        }
        std::thread::sleep(Duration::from_millis(300));
    }
}

#[cfg(test)]
mod tests {
    use super::parse;

    #[test]
    fn options_are_read_and_an_unknown_fault_is_named() {
        let args = |list: &[&str]| list.iter().map(|a| (*a).to_owned()).collect::<Vec<_>>();
        let options = parse(&args(&["--yes", "--json", "--fault", "disk-full"])).unwrap();
        assert!(options.yes && options.json && options.row.fault == "disk-full");
        let error = parse(&args(&["--fault=fire"])).err().unwrap().to_string();
        assert!(
            error.contains("`fire`") && error.contains("bad-deploy"),
            "{error}"
        );
    }
}
