//! One batch: judged changes, their leaves and the signed head in one transaction, then the second
//! copy and the anchor (guard 6.3.3).

use policies::audit::{
    self, Checkpoint, EntryProof, Event, EventType, Frontier, Hash, NewEvent, Place, hash_from_text,
};
use policies::canon::Value;
use policies::guard::{Action, Leaf, State, Who};
use policies::model::Millis;
use rusqlite::{Connection, OptionalExtension, params};

use super::rows::as_sql;
use super::spent::Receipt;
use super::{Error, GuardDb, Log, people, rows};

/// What every leaf of a batch has in common.
#[derive(Clone, Debug)]
pub struct Stamp {
    /// Boot id.
    pub boot: String,
    /// Wall clock.
    pub wall: Millis,
    /// The guard's time.
    pub now: Millis,
    /// Hash of the policy in force.
    pub policy: Option<String>,
}

/// What became of one judgement inside a batch.
#[derive(Clone, Debug, Default)]
pub struct Applied {
    /// Index of its last leaf; `None` where it left none.
    pub index: Option<u64>,
    /// Its actions, with the indices of their leaves.
    pub actions: Vec<Action>,
}

/// An open batch.
pub struct Batch<'a> {
    pub(super) conn: &'a Connection,
    pub(super) log: &'a mut Log,
    pub(super) stamp: Stamp,
    frontier_before: Frontier,
    committed: bool,
    events: Vec<String>,
    receipts: Vec<(String, u64)>,
    fill: &'a mut dyn FnMut(&mut [u8]),
}

/// What a batch made durable, copied and signed.
#[derive(Debug)]
pub struct Committed {
    size: u64,
    note: String,
    receipts: Vec<(String, u64, String)>,
}

impl Committed {
    /// The receipt of a spend of this batch; each is given once.
    pub fn receipt(&mut self, jti: &str) -> Option<Receipt> {
        let at = self
            .receipts
            .iter()
            .position(|(known, _, _)| known == jti)?;
        let (jti, index, event) = self.receipts.swap_remove(at);
        Some(Receipt { jti, index, event })
    }

    /// The signed head.
    #[must_use]
    pub fn note(&self) -> &str {
        &self.note
    }

    /// Leaves in the log.
    #[must_use]
    pub fn size(&self) -> u64 {
        self.size
    }
}

impl GuardDb {
    /// Begins a batch: the copy and the anchor are looked at before anything is judged.
    ///
    /// # Errors
    /// The copy or the anchor was replaced (nothing has changed), or SQLite refuses.
    pub fn begin<'a>(
        &'a mut self,
        stamp: Stamp,
        fill: &'a mut dyn FnMut(&mut [u8]),
    ) -> Result<Batch<'a>, Error> {
        self.log.tail.as_ref().ok_or(Error::NoCopy)?.check()?;
        self.log.anchor.as_ref().ok_or(Error::NoCopy)?.check()?;
        self.conn.execute_batch("BEGIN IMMEDIATE")?;
        Ok(Batch {
            conn: &self.conn,
            frontier_before: self.log.frontier.clone(),
            log: &mut self.log,
            stamp,
            committed: false,
            events: Vec::new(),
            receipts: Vec::new(),
            fill,
        })
    }

    /// The `.tlog-proof` of a leaf against the newest head.
    ///
    /// # Errors
    /// No such leaf.
    pub fn proof(&self, index: u64) -> Result<String, Error> {
        let tree = &self.log.tree;
        Ok(EntryProof {
            index,
            path: tree.inclusion(index, tree.size())?,
            checkpoint: self.log.note.clone(),
        }
        .to_text())
    }
}

impl Batch<'_> {
    /// Leaves in the log, those of this batch included.
    #[must_use]
    pub fn size(&self) -> u64 {
        self.log.size()
    }

    /// Epoch of the keys.
    #[must_use]
    pub fn epoch(&self) -> u64 {
        self.log.epoch
    }

    /// Incarnation of the log.
    #[must_use]
    pub fn inc(&self) -> u64 {
        self.log.inc
    }

    /// The policy that leaves of this batch name from now on.
    pub fn set_policy(&mut self, hash: &str) {
        self.stamp.policy = Some(hash.to_owned());
    }

    /// Uses a step up, in the transaction of what it was accepted for.
    ///
    /// # Errors
    /// The database cannot be written.
    pub fn use_totp_step(&self, subject: &str, step: i64) -> Result<bool, Error> {
        people::use_step(self.conn, subject, step)
    }

    /// Counts a wrong code, in the transaction of the refusal that it got.
    ///
    /// # Errors
    /// The database cannot be written.
    pub fn code_failed(&self, subject: &str, at: Millis) -> Result<(), Error> {
        people::code_failed(self.conn, subject, at)
    }

    /// Keeps a small value of the guard's own (the hold).
    ///
    /// # Errors
    /// The database cannot be written.
    pub fn set_meta(&self, key: &str, value: Option<&str>) -> Result<(), Error> {
        match value {
            Some(value) => self.conn.execute(
                "INSERT INTO meta (key, value) VALUES (?1, ?2) \
                 ON CONFLICT (key) DO UPDATE SET value = excluded.value",
                [key, value],
            )?,
            None => self
                .conn
                .execute("DELETE FROM meta WHERE key = ?1", [key])?,
        };
        Ok(())
    }

    /// Appends leaves and writes the next versions of actions.
    ///
    /// # Errors
    /// A change is no arrow of guard 4.1, an action was changed in between, a leaf cannot be built,
    /// or SQLite refuses. The whole batch must then be dropped.
    pub fn apply(&mut self, actions: Vec<Action>, leaves: Vec<Leaf>) -> Result<Applied, Error> {
        let mut written: Vec<(Option<String>, u64)> = Vec::new();
        let mut decided: Vec<(String, u64)> = Vec::new();
        for leaf in leaves {
            let (aid, kind) = (leaf.aid.clone(), leaf.kind);
            let jti = leaf.jti.clone();
            let index = self.append(leaf)?;
            if let (EventType::SpendOk, Some(jti)) = (kind, jti) {
                self.receipts.push((jti, index));
            }
            let decision = matches!(
                kind,
                EventType::DecisionApproved | EventType::DecisionDenied
            );
            decided.extend(aid.clone().filter(|_| decision).map(|aid| (aid, index)));
            written.push((aid, index));
        }
        let index = written.last().map(|(_, index)| *index);
        let mut done = Vec::new();
        for mut action in actions {
            self.check_arrow(&action)?;
            let of_action = |(aid, _): &&(Option<String>, u64)| aid.as_ref() == Some(&action.id);
            if let Some((_, index)) = written.iter().rev().find(of_action) {
                action.index = *index;
            }
            if let Some(spend) = action.spend.as_mut().filter(|s| s.index == 0) {
                spend.index = action.index;
            }
            let initiator = self.pseudonym(action.initiator.as_deref())?;
            rows::put(self.conn, &action, initiator.as_deref())?;
            if let Some((_, index)) = decided.iter().find(|(aid, _)| *aid == action.id) {
                self.put_decision(&mut action, *index)?;
            }
            done.push(action);
        }
        Ok(Applied {
            index,
            actions: done,
        })
    }

    fn check_arrow(&self, action: &Action) -> Result<(), Error> {
        let from: Option<String> = self
            .conn
            .prepare_cached("SELECT state FROM action WHERE id = ?1")?
            .query_row([&action.id], |row| row.get(0))
            .optional()?;
        let from = from.and_then(|text| text.parse::<State>().ok());
        match from {
            None => Ok(()),
            Some(from) if from == action.state || from.may_become(action.state) => Ok(()),
            Some(from) => Err(Error::Arrow {
                from,
                to: action.state,
            }),
        }
    }

    fn pseudonym(&mut self, person: Option<&str>) -> Result<Option<String>, Error> {
        person
            .map(|person| people::pseudonym(self.conn, person, self.fill))
            .transpose()
    }

    fn put_decision(&mut self, action: &mut Action, index: u64) -> Result<(), Error> {
        let Some(decision) = action.decisions.last_mut() else {
            return Ok(());
        };
        decision.index = index;
        let pseudonym = people::pseudonym(self.conn, &decision.person, self.fill)?;
        self.conn
            .prepare_cached(
                "INSERT INTO decision (leaf, aid, person, verdict, assurance, via, nonce, at) \
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
            )?
            .execute(params![
                i64::try_from(index).unwrap_or(i64::MAX),
                action.id,
                pseudonym,
                decision.verdict.as_str(),
                decision.assurance.as_str(),
                decision.via,
                decision.nonce,
                decision.at.0,
            ])?;
        Ok(())
    }

    fn append(&mut self, leaf: Leaf) -> Result<u64, Error> {
        let seq = self.size();
        let event = self.event(leaf, seq)?;
        let place = Place {
            seq,
            epoch: self.log.epoch,
            inc: self.log.inc,
            boot: self.stamp.boot.clone(),
            t_wall: self.stamp.wall,
            t_hwm: self.stamp.now.max(self.log.high_water),
            prev: self.log.last(),
        };
        let text = audit::seal(&event, &place)?;
        let hash = audit::leaf_hash(text.as_bytes());
        self.conn
            .prepare_cached("INSERT INTO leaf (seq, hash, event) VALUES (?1, ?2, ?3)")?
            .execute(params![as_sql(seq), hash, text])?;
        self.log.pending.push(hash);
        self.log.frontier.push(hash);
        self.events.push(text);
        Ok(seq)
    }

    /// Swaps people for pseudonyms and free text for commitments.
    fn event(&mut self, leaf: Leaf, seq: u64) -> Result<NewEvent, Error> {
        let mut event = NewEvent::new(leaf.kind);
        match leaf.who {
            Who::Guard => event.actor.id = Some("guard".to_owned()),
            Who::Caller(id) => event.actor.id = Some(id),
            Who::Person { id, assurance } => {
                event.actor.id = self.pseudonym(Some(&id))?;
                event.actor.assurance = assurance.map(|a| a.as_str().to_owned());
                event.actor.evidence = assurance
                    .filter(|a| *a == policies::guard::Assurance::Local)
                    .map(|_| "totp".to_owned());
            }
        }
        let mut data = leaf.data;
        for (member, person) in leaf.people {
            let pseudonym = self.pseudonym(Some(&person))?;
            if let Value::Map(members) = &mut data {
                members.insert(member.to_owned(), Value::text_or_null(pseudonym));
            }
        }
        for (field, value) in leaf.pii {
            let hash = people::keep(self.conn, as_sql(seq), field, &value, self.fill)?;
            event.pii.insert(field.to_owned(), hash);
        }
        event.aid = leaf.aid;
        event.dig = leaf.dig.as_deref().and_then(hash_from_text);
        event.jti = leaf.jti;
        event.via = leaf.via;
        event.outcome = leaf.outcome;
        event.reason = leaf.reason;
        event.policy = self.stamp.policy.as_deref().and_then(hash_from_text);
        event.job = leaf.job;
        event.fence = leaf.fence;
        event.data = data;
        Ok(event)
    }

    /// Reads the leaves back, signs the head, commits, then writes the copy and, for a spend or
    /// where `anchor_due`, the anchor. Nothing signed leaves before all of that is done.
    ///
    /// # Errors
    /// Before COMMIT: nothing has changed. [`Error::File`]: the events stand, the copy or the
    /// anchor could not be written, and no reply may go out.
    pub fn commit(
        mut self,
        sign: impl FnOnce(&Checkpoint) -> String,
        anchor_due: bool,
    ) -> Result<Committed, Error> {
        let size = self.size();
        if self.events.is_empty() {
            self.end()?;
            let note = self.log.note.clone();
            return Ok(Committed {
                size,
                note,
                receipts: Vec::new(),
            });
        }
        self.reread()?;
        let head = Checkpoint {
            origin: self.log.origin.clone(),
            size,
            root: self.log.frontier.root(),
        };
        let note = sign(&head);
        let high_water = self.stamp.now.max(self.log.high_water);
        self.conn.execute(
            "INSERT INTO head (id, size, high_water, note) VALUES (1, ?1, ?2, ?3) ON CONFLICT (id) \
             DO UPDATE SET size = excluded.size, high_water = excluded.high_water, note = excluded.note",
            params![as_sql(size), high_water.0, note],
        )?;
        let before = self.log.tree.size();
        let receipts: Vec<(String, u64, String)> = self
            .receipts
            .iter()
            .filter_map(|(jti, index)| {
                let at = usize::try_from(index.checked_sub(before)?).ok()?;
                Some((jti.clone(), *index, self.events.get(at)?.clone()))
            })
            .collect();
        let events = std::mem::take(&mut self.events);
        self.end()?;
        let log = &mut *self.log;
        for leaf in log.pending.drain(..) {
            log.tree.push(leaf);
        }
        log.high_water = high_water;
        log.note.clone_from(&note);
        log.tail
            .as_mut()
            .ok_or(Error::NoCopy)?
            .append(events, &note)?;
        if anchor_due || !receipts.is_empty() {
            log.write_anchor()?;
        }
        Ok(Committed {
            size,
            note,
            receipts,
        })
    }

    /// What the database gives back must hash to what the head is about to say.
    fn reread(&self) -> Result<(), Error> {
        let from = self.log.tree.size();
        let mut statement = self
            .conn
            .prepare_cached("SELECT hash, event FROM leaf WHERE seq >= ?1 ORDER BY seq")?;
        let mut rows = statement.query([as_sql(from)])?;
        for (offset, known) in (from..).zip(&self.log.pending) {
            let bad = || Error::Leaf(offset);
            let row = rows.next()?.ok_or_else(bad)?;
            let (hash, event): (Vec<u8>, String) = (row.get(0)?, row.get(1)?);
            let stored: Hash = hash.try_into().map_err(|_| bad())?;
            let made = Event::parse(&event).map_err(|_| bad())?.leaf;
            if stored != *known || made != *known {
                return Err(bad());
            }
        }
        Ok(())
    }

    fn end(&mut self) -> Result<(), Error> {
        self.conn.execute_batch("COMMIT")?;
        self.committed = true;
        Ok(())
    }
}

/// A batch that was not committed has not happened.
impl Drop for Batch<'_> {
    fn drop(&mut self) {
        if !self.committed {
            // SQLite rolls back by itself where this fails, at the latest when the file is closed.
            let _ = self.conn.execute_batch("ROLLBACK");
            self.log.pending.clear();
            self.log.frontier = std::mem::take(&mut self.frontier_before);
        }
    }
}
