//! Performs the effects of the investigation machines.
//!
//! One task for each open incident. A step is saved, with its evidence, leaves and postmortem, in
//! one transaction before any of its effects is performed; after a restart the machine says which
//! effects are outstanding. Decides nothing.

mod actor;
mod effects;
mod probe;
mod site;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use inference::Engine;
use policies::claim::RedactKey;
use policies::machine::Input;
use policies::model::{Alert, IncidentId};
use store::sentinel::{AlertRow, Db};
use tokio::sync::mpsc;

use crate::config::Config;
use crate::events::Bus;
use crate::guard::{AgentHandle, Guard};
use crate::jobs::Scheduler;
use crate::notify::Notifier;

pub use site::SiteFacts;

/// What the conductor works with.
pub struct Parts {
    /// `sentinel.db`.
    pub db: Arc<Db>,
    /// The guard.
    pub guard: Guard,
    /// The identity that proposes.
    pub agent: AgentHandle,
    /// Jobs.
    pub scheduler: Scheduler,
    /// The chat model, if one is configured.
    pub engine: Option<Arc<Engine>>,
    /// Live events.
    pub bus: Bus,
    /// Words notifications.
    pub notifier: Notifier,
    /// Configuration.
    pub config: Arc<Config>,
    /// Key that wraps the redaction keys of the incidents.
    pub wrap_key: [u8; 32],
}

/// A cheap handle.
#[derive(Clone)]
pub struct Conductor {
    shared: Arc<Shared>,
}

struct Shared {
    parts: Parts,
    site: SiteFacts,
    actors: Mutex<BTreeMap<IncidentId, mpsc::UnboundedSender<Input>>>,
}

/// Why an incident cannot be taken up.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The database refused.
    #[error(transparent)]
    Store(#[from] store::sentinel::Error),
    /// Its redaction key does not open.
    #[error("the redaction key of `{0}` does not open; is `redact-key` that of this folder?")]
    Key(IncidentId),
    /// Its record does not come back.
    #[error("the record of `{id}` does not come back")]
    Record {
        /// Which.
        id: IncidentId,
        /// Why.
        #[source]
        source: policies::machine::RehydrateError,
    },
}

impl Conductor {
    /// Makes a conductor; nothing runs until [`Conductor::resume_all`].
    #[must_use]
    pub fn new(parts: Parts) -> Self {
        let site = SiteFacts::of(&parts.config);
        Self {
            shared: Arc::new(Shared {
                parts,
                site,
                actors: Mutex::default(),
            }),
        }
    }

    /// Takes up every open incident, follows the guard, and sends the waiting leaves.
    ///
    /// # Errors
    /// The database refused.
    pub fn resume_all(&self) -> Result<(), Error> {
        tokio::spawn(effects::follow_guard(self.clone()));
        tokio::spawn(effects::pump_leaves(self.clone()));
        for id in self.shared.parts.db.open_incidents()? {
            self.touch(&id);
        }
        Ok(())
    }

    /// Takes up an incident, or tells its task that its alerts changed. A closed one is left alone:
    /// a late resolve belongs to its record and starts nothing.
    pub fn touch(&self, id: &IncidentId) {
        match self.shared.parts.db.incident(id) {
            Ok(Some(row)) if row.closed_at.is_none() => {}
            Ok(_) => return,
            Err(e) => {
                tracing::error!(incident.id = %id, error = &e as &dyn std::error::Error, "the incident cannot be taken up");
                return;
            }
        }
        let mut actors = self.actors();
        if let Some(sender) = actors.get(id)
            && let Ok(rows) = self.shared.parts.db.alerts(id)
            && sender.send(Input::Alerts(current_alerts(rows))).is_ok()
        {
            return;
        }
        let (sender, inbox) = mpsc::unbounded_channel();
        let own = sender.clone();
        actors.insert(id.clone(), sender.clone());
        drop(actors);
        let (conductor, id) = (self.clone(), id.clone());
        tokio::spawn(async move {
            if let Err(e) = actor::run(&conductor, &id, sender, inbox).await {
                tracing::error!(incident.id = %id, error = &e as &dyn std::error::Error, "the incident cannot be taken up");
            }
            // Another task may have taken the incident up since this one stopped to listen.
            let mut actors = conductor.actors();
            if actors.get(&id).is_some_and(|s| s.same_channel(&own)) {
                actors.remove(&id);
            }
        });
    }

    /// A new incident's id and wrapped redaction key.
    ///
    /// # Errors
    /// The kernel gives no random bits.
    pub fn new_incident(&self) -> Result<(IncidentId, Vec<u8>), getrandom::Error> {
        let mut bits = [0_u8; 10];
        let mut key = zeroize::Zeroizing::new([0_u8; 32]);
        let mut nonce = [0_u8; 12];
        getrandom::fill(&mut bits)?;
        getrandom::fill(key.as_mut_slice())?;
        getrandom::fill(&mut nonce)?;
        let id = IncidentId::from_random(bits);
        let blob = store::seal::wrap(
            &self.shared.parts.wrap_key,
            nonce,
            id.as_str().as_bytes(),
            key.as_slice(),
        );
        Ok((id, blob.unwrap_or_default()))
    }

    fn key(&self, id: &IncidentId) -> Result<RedactKey, Error> {
        let parts = &self.shared.parts;
        let blob = parts
            .db
            .redact_key(id)?
            .ok_or_else(|| Error::Key(id.clone()))?;
        let key = store::seal::unwrap(&parts.wrap_key, id.as_str().as_bytes(), &blob)
            .and_then(|key| <[u8; 32]>::try_from(key).ok())
            .ok_or_else(|| Error::Key(id.clone()))?;
        Ok(RedactKey::from_bytes(key))
    }

    fn actors(
        &self,
    ) -> std::sync::MutexGuard<'_, BTreeMap<IncidentId, mpsc::UnboundedSender<Input>>> {
        self.shared
            .actors
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    fn tell(&self, id: &IncidentId, input: Input) {
        if let Some(sender) = self.actors().get(id) {
            let _ = sender.send(input);
        }
    }
}

/// The last word on each alert of an incident, in the order in which they came first.
fn current_alerts(rows: Vec<AlertRow>) -> Vec<Alert> {
    let mut alerts: Vec<Alert> = Vec::new();
    for row in rows {
        match alerts
            .iter_mut()
            .find(|a| a.dedup_key == row.alert.dedup_key)
        {
            Some(known) => *known = row.alert,
            None => alerts.push(row.alert),
        }
    }
    alerts
}
