//! Releases of the shop: whole sources on disk, each an edit of the one before, and their history.
//!
//! The sources beside this file are the releases in force. Older ones are made by taking edits
//! back, newer ones by applying them, so every difference that a deploy record shows is a
//! difference of files that really lie on disk.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use anyhow::{Context as _, ensure};
use policies::model::Millis;
use serde::{Deserialize, Serialize};

use super::layout::{Layout, append_line, relink};

/// Files of one release by name.
pub(super) type Source = BTreeMap<&'static str, String>;

/// One replacement in one file.
struct Edit {
    file: &'static str,
    before: &'static str,
    after: &'static str,
}

/// One release of one service.
pub(super) struct Release {
    /// Service.
    pub(super) service: &'static str,
    /// Version.
    pub(super) version: &'static str,
    /// Version before it.
    pub(super) previous: &'static str,
    /// Commit it was built from.
    pub(super) commit: &'static str,
    /// Who deployed it.
    pub(super) actor: &'static str,
    /// First line of the commit message.
    pub(super) message: &'static str,
    /// How long before the lab was made it was deployed, in minutes.
    minutes_ago: i64,
    edits: &'static [Edit],
}

/// One line of the deploy history.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct DeployRecord {
    /// Id of the record.
    pub(super) id: String,
    /// Service.
    pub(super) service: String,
    /// Version it brought.
    pub(super) version: String,
    /// Version that ran before.
    pub(super) previous_version: Option<String>,
    /// Commit.
    pub(super) commit: Option<String>,
    /// Begin, RFC 3339.
    pub(super) started_at: String,
    /// End, RFC 3339.
    pub(super) finished_at: Option<String>,
    /// `succeeded` for all that the lab writes: its deploy tool is done when the link is switched.
    pub(super) status: String,
    /// Who started it.
    pub(super) actor: String,
    /// Commit message.
    pub(super) message: String,
}

fn source_in_force(service: &str) -> Source {
    let own: &[(&'static str, &str)] = match service {
        "checkout" => &[
            ("app.py", include_str!("shop/checkout/app.py")),
            ("orders.py", include_str!("shop/checkout/orders.py")),
            ("pool.py", include_str!("shop/checkout/pool.py")),
        ],
        "payments" => &[
            ("app.py", include_str!("shop/payments/app.py")),
            ("statements.py", include_str!("shop/payments/statements.py")),
        ],
        "inventory" => &[
            ("app.py", include_str!("shop/inventory/app.py")),
            ("journal.py", include_str!("shop/inventory/journal.py")),
        ],
        _ => &[],
    };
    let shared = [("shopkit.py", include_str!("shop/shopkit.py"))];
    own.iter()
        .chain(&shared)
        .map(|(name, text)| (*name, (*text).to_owned()))
        .collect()
}

/// Deploys of the hours before the lab was made, oldest first.
pub(super) const HISTORY: &[Release] = &[
    Release {
        service: "checkout",
        version: "1.5.0",
        previous: "1.4.2",
        commit: "3b0f6a9d2c11",
        actor: "nadia",
        message: "Show a priced cart",
        minutes_ago: 344,
        edits: &[],
    },
    Release {
        service: "payments",
        version: "3.1.0",
        previous: "3.0.4",
        commit: "a91c55e07f2d",
        actor: "tomas",
        message: "Print statements for the back office",
        minutes_ago: 311,
        edits: &[],
    },
    Release {
        service: "inventory",
        version: "2.3.0",
        previous: "2.2.7",
        commit: "07d4be61a3c8",
        actor: "ines",
        message: "Book warehouse counts",
        minutes_ago: 272,
        edits: &[],
    },
    Release {
        service: "checkout",
        version: "1.6.0",
        previous: "1.5.0",
        commit: "c62e9f1180b4",
        actor: "nadia",
        message: "Put the mug into the example cart",
        minutes_ago: 228,
        edits: &[Edit {
            file: "app.py",
            before: r#"    items = [{"sku": "tea", "count": 2}]"#,
            after: r#"    items = [{"sku": "tea", "count": 2}, {"sku": "mug"}]"#,
        }],
    },
    Release {
        service: "payments",
        version: "3.2.0",
        previous: "3.1.0",
        commit: "5e8830cd914b",
        actor: "tomas",
        message: "Name the acquirer's batch on each line of a statement",
        minutes_ago: 181,
        edits: &[
            Edit {
                file: "statements.py",
                before: "position %05d  settled\\n",
                after: "position %05d  settled, acquirer batch %08d\\n",
            },
            Edit {
                file: "statements.py",
                before: "LINE % (n, account, n) for",
                after: "LINE % (n, account, n, n * 7919) for",
            },
        ],
    },
    Release {
        service: "inventory",
        version: "2.4.0",
        previous: "2.3.0",
        commit: "e14a7720d9f5",
        actor: "ines",
        message: "Keep more journal segments for the auditors",
        minutes_ago: 174,
        edits: &[Edit {
            file: "journal.py",
            before: "KEEP_SEGMENTS = 128",
            after: "KEEP_SEGMENTS = 256",
        }],
    },
    Release {
        service: "checkout",
        version: "1.6.1",
        previous: "1.6.0",
        commit: "90ab34d7e6c2",
        actor: "nadia",
        message: "Log who placed an order",
        minutes_ago: 139,
        edits: &[Edit {
            file: "app.py",
            before: "        order=order[\"id\"],\n        cents=total,",
            after: "        order=order[\"id\"],\n        customer=order.get(\"customer\", \"guest\"),\n        cents=total,",
        }],
    },
    Release {
        service: "payments",
        version: "3.2.1",
        previous: "3.2.0",
        commit: "d7f21b8c4a60",
        actor: "tomas",
        message: "Refuse negative amounts",
        minutes_ago: 96,
        edits: &[
            Edit {
                file: "app.py",
                before: "from shopkit import LOG, METRICS, run",
                after: "from shopkit import LOG, METRICS, HttpError, run",
            },
            Edit {
                file: "app.py",
                before: "    cents = int(request[\"cents\"])\n    time",
                after: "    cents = int(request[\"cents\"])\n    if cents < 0:\n        raise HttpError(400, \"negative amount\")\n    time",
            },
        ],
    },
    Release {
        service: "inventory",
        version: "2.4.1",
        previous: "2.4.0",
        commit: "418cc05be93a",
        actor: "ines",
        message: "Say which article is sold out",
        minutes_ago: 71,
        edits: &[Edit {
            file: "app.py",
            before: "raise HttpError(409, \"sold out\")",
            after: "raise HttpError(409, \"%s is sold out\" % item[\"sku\"])",
        }],
    },
    Release {
        service: "checkout",
        version: "1.7.0",
        previous: "1.6.1",
        commit: "f3309d5a17be",
        actor: "nadia",
        message: "Bound the discount",
        minutes_ago: 52,
        edits: &[
            Edit {
                file: "orders.py",
                before: "GIFT_DEFAULT = 250\n",
                after: "GIFT_DEFAULT = 250\nDISCOUNT_MAX_PERCENT = 30\n",
            },
            Edit {
                file: "orders.py",
                before: "    \"\"\"Takes a discount off, rounded down.\"\"\"\n",
                after: "    \"\"\"Takes a discount off, rounded down, never more than the shop allows.\"\"\"\n    percent = max(0, min(percent, DISCOUNT_MAX_PERCENT))\n",
            },
        ],
    },
];

/// An innocent release of inventory.
pub(super) const INVENTORY_NEXT: Release = Release {
    service: "inventory",
    version: "2.4.2",
    previous: "2.4.1",
    commit: "6cd0e4f9b872",
    actor: "ines",
    message: "Show the stock in the order of the articles",
    minutes_ago: 0,
    edits: &[
        Edit {
            file: "app.py",
            before: "    \"\"\"Shows the stock.\"\"\"\n    return 200, dict(STOCK)\n",
            after: "    \"\"\"Shows the stock, sorted by article.\"\"\"\n    return 200, dict(sorted(STOCK.items()))\n",
        },
        Edit {
            file: "journal.py",
            before: "it is on disk when this returns.",
            after: "it is with the kernel when this returns.",
        },
    ],
};

/// A release of checkout that loses the default price of a gift wrap.
pub(super) const CHECKOUT_NEXT: Release = Release {
    service: "checkout",
    version: "1.8.0",
    previous: "1.7.0",
    commit: "b85d2e60c7f1",
    actor: "nadia",
    message: "Keep price and label of a gift wrap in one table",
    minutes_ago: 0,
    edits: &[
        Edit {
            file: "orders.py",
            before: "GIFT_PRICES = {\"none\": 0, \"paper\": 250, \"box\": 490}\nGIFT_DEFAULT = 250\n",
            after: "GIFT_WRAPS = {\"none\": (0, \"\"), \"paper\": (250, \"Kraft paper\"), \"box\": (490, \"Gift box\")}\n",
        },
        Edit {
            file: "orders.py",
            before: "    return GIFT_PRICES.get(wrap, GIFT_DEFAULT)\n",
            after: "    cents, _label = GIFT_WRAPS[wrap]\n    return cents\n",
        },
    ],
};

fn exchange(source: &mut Source, file: &str, old: &str, new: &str) -> anyhow::Result<()> {
    let text = source
        .get_mut(file)
        .with_context(|| format!("no file `{file}` in the release"))?;
    ensure!(
        text.matches(old).count() == 1,
        "`{file}` does not hold exactly once: {old}"
    );
    *text = text.replacen(old, new, 1);
    Ok(())
}

/// The source of the newest release with `edits` applied.
fn source_after(release: &Release) -> anyhow::Result<Source> {
    let mut source = source_in_force(release.service);
    for edit in release.edits {
        exchange(&mut source, edit.file, edit.before, edit.after)?;
    }
    Ok(source)
}

/// The sources of the history of a service, newest first.
fn sources_of_history(service: &str) -> anyhow::Result<Vec<(&'static Release, Source)>> {
    let mut source = source_in_force(service);
    let mut out = Vec::new();
    for release in HISTORY.iter().rev().filter(|r| r.service == service) {
        out.push((release, source.clone()));
        for edit in release.edits.iter().rev() {
            exchange(&mut source, edit.file, edit.after, edit.before)
                .with_context(|| format!("{service} {}", release.version))?;
        }
    }
    Ok(out)
}

fn write_release(folder: &Path, source: &Source) -> anyhow::Result<()> {
    if folder.exists() {
        return Ok(());
    }
    // A release appears whole or not at all.
    let fresh = folder.with_extension("new");
    fs::create_dir_all(&fresh)?;
    for (name, text) in source {
        fs::write(fresh.join(name), text)?;
    }
    fs::rename(&fresh, folder).with_context(|| format!("cannot write `{}`", folder.display()))
}

fn record(release: &Release, number: usize, at: Millis) -> DeployRecord {
    DeployRecord {
        id: format!("dep-{}", 1041 + number),
        service: release.service.to_owned(),
        version: release.version.to_owned(),
        previous_version: Some(release.previous.to_owned()),
        commit: Some(release.commit.to_owned()),
        started_at: at.rfc3339(),
        finished_at: Some(at.plus(900).rfc3339()),
        status: "succeeded".to_owned(),
        actor: release.actor.to_owned(),
        message: release.message.to_owned(),
    }
}

/// Writes all releases and the back-dated history, and points each link at the newest release.
///
/// # Errors
/// When the folder cannot be written.
pub(super) fn write_history(layout: &Layout, now: Millis) -> anyhow::Result<()> {
    for service in super::layout::SERVICES {
        fs::create_dir_all(layout.releases(service))?;
        let sources = sources_of_history(service)?;
        for (release, source) in &sources {
            write_release(&layout.releases(service).join(release.version), source)?;
        }
        let (newest, _) = sources
            .first()
            .with_context(|| format!("no release of {service}"))?;
        relink(
            &layout.current(service),
            &Path::new("releases").join(newest.version),
        )?;
    }
    for (number, release) in HISTORY.iter().enumerate() {
        let at = now.plus(-release.minutes_ago * 60_000 + 137 * i64::try_from(number)?);
        let line = serde_json::to_string(&record(release, number, at))?;
        append_line(&layout.deploys(), &line)?;
    }
    Ok(())
}

/// Deploys a release on top of the one in force: files, link, history.
///
/// # Errors
/// When the folder cannot be written.
pub(super) fn deploy(layout: &Layout, release: &Release, now: Millis) -> anyhow::Result<String> {
    let number = fs::read_to_string(layout.deploys())?.lines().count();
    let folder = layout.releases(release.service).join(release.version);
    write_release(&folder, &source_after(release)?)?;
    let record = record(release, number, now);
    append_line(&layout.deploys(), &serde_json::to_string(&record)?)?;
    relink(
        &layout.current(release.service),
        &Path::new("releases").join(release.version),
    )?;
    Ok(record.id)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_release_differs_from_the_one_before_it() {
        for service in super::super::layout::SERVICES {
            let sources = sources_of_history(service).unwrap();
            assert!(sources.len() >= 3);
            for pair in sources.windows(2) {
                assert_ne!(pair[0].1, pair[1].1);
                assert_eq!(pair[0].0.previous, pair[1].0.version);
            }
        }
        for next in [&INVENTORY_NEXT, &CHECKOUT_NEXT] {
            let before = source_in_force(next.service);
            assert_ne!(source_after(next).unwrap(), before);
        }
    }

    #[test]
    fn the_history_covers_hours_and_its_releases_lie_on_disk() {
        let folder = tempfile::tempdir().unwrap();
        let layout = Layout::new(folder.path());
        let now = Millis(1_790_000_000_000);
        write_history(&layout, now).unwrap();
        deploy(&layout, &CHECKOUT_NEXT, now).unwrap();
        assert_eq!(layout.version_in_force("checkout").unwrap(), "1.8.0");
        let text = fs::read_to_string(layout.deploys()).unwrap();
        let records: Vec<DeployRecord> = text
            .lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect();
        assert!(records.len() >= 9);
        let times: Vec<_> = records
            .iter()
            .map(|r| Millis::parse_rfc3339(&r.started_at).unwrap())
            .collect();
        assert!(times.is_sorted());
        assert!(now.since(times[0]) > 5 * 3_600_000);
        for record in records {
            let release = layout.releases(&record.service).join(&record.version);
            assert!(release.join("app.py").is_file());
        }
    }
}
