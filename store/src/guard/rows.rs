//! Actions as rows. A row that is read is compared with the leaf that it claims: state, people and
//! bytes come from nowhere else (guard 6.7, 1.5).

use std::str::FromStr;

use policies::audit::{Event, EventType};
use policies::guard::{
    Action, ActionDoc, Assurance, Claims, Decision, Ending, Issue, Spend, State, Verdict,
};
use policies::model::Millis;
use rusqlite::{Connection, OptionalExtension, Row, params};
use serde::{Deserialize, Serialize};

use super::people;
use super::{Error, Log};

#[derive(Serialize, Deserialize)]
struct IssueText {
    claims: String,
    executor: String,
    job: String,
    fence: i64,
}

#[derive(Serialize, Deserialize)]
struct SpendText {
    at: i64,
    effect_deadline: i64,
    started: Option<i64>,
    index: u64,
}

#[derive(Serialize, Deserialize)]
struct EndingText {
    outcome: String,
    code: String,
    evidence_sha256: Option<String>,
}

const COLUMNS: &str = "id, revision, state, requester, initiator, digest, doc, nonce, need, \
     created_at, expires_at, approval_expires_at, issue, spend, ending, proposed, leaf";

/// The same action on the same target: what an unknown outcome blocks.
pub(super) fn place(doc: &ActionDoc) -> String {
    let target = doc.target();
    format!("{}/{}/{}", doc.action(), target.namespace, target.name)
}

/// What the row of an action holds beside its decisions.
struct Raw {
    id: String,
    revision: i64,
    state: String,
    requester: String,
    initiator: Option<String>,
    digest: String,
    doc: String,
    nonce: String,
    need: i64,
    created_at: i64,
    expires_at: i64,
    approval_expires_at: Option<i64>,
    issue: Option<String>,
    spend: Option<String>,
    ending: Option<String>,
    proposed: i64,
    leaf: i64,
}

fn raw(row: &Row<'_>) -> rusqlite::Result<Raw> {
    Ok(Raw {
        id: row.get(0)?,
        revision: row.get(1)?,
        state: row.get(2)?,
        requester: row.get(3)?,
        initiator: row.get(4)?,
        digest: row.get(5)?,
        doc: row.get(6)?,
        nonce: row.get(7)?,
        need: row.get(8)?,
        created_at: row.get(9)?,
        expires_at: row.get(10)?,
        approval_expires_at: row.get(11)?,
        issue: row.get(12)?,
        spend: row.get(13)?,
        ending: row.get(14)?,
        proposed: row.get(15)?,
        leaf: row.get(16)?,
    })
}

/// Actions of a condition (SQL after `FROM action`), with their decisions.
pub(super) fn select(
    conn: &Connection,
    log: &Log,
    condition: &str,
    values: impl rusqlite::Params,
) -> Result<Vec<Action>, Error> {
    let mut statement =
        conn.prepare_cached(&format!("SELECT {COLUMNS} FROM action {condition}"))?;
    let raws: Vec<Raw> = statement
        .query_map(values, raw)?
        .collect::<Result<_, _>>()?;
    raws.into_iter().map(|raw| read(conn, log, raw)).collect()
}

/// One action by a condition.
pub(super) fn find(
    conn: &Connection,
    log: &Log,
    condition: &str,
    values: impl rusqlite::Params,
) -> Result<Option<Action>, Error> {
    Ok(select(conn, log, condition, values)?.into_iter().next())
}

fn read(conn: &Connection, log: &Log, raw: Raw) -> Result<Action, Error> {
    let bad = || Error::Row {
        row: format!("action {}", raw.id),
    };
    let index = u64::try_from(raw.leaf).map_err(|_| bad())?;
    let event = leaf(conn, log, index)?;
    let state = State::from_str(&raw.state).map_err(|_| bad())?;
    if event.aid.as_deref() != Some(raw.id.as_str()) || !tells(&event, state) {
        return Err(bad());
    }
    let action = Action {
        doc: ActionDoc::reread(&raw.doc, &raw.digest).ok_or_else(bad)?,
        intent: people::pii(conn, raw.proposed, "intent")?.unwrap_or_default(),
        initiator: raw
            .initiator
            .as_deref()
            .map(|pseudonym| people::name(conn, pseudonym))
            .transpose()?,
        state,
        decisions: decisions(conn, log, &raw)?,
        created_at: Millis(raw.created_at),
        expires_at: Millis(raw.expires_at),
        approval_expires_at: raw.approval_expires_at.map(Millis),
        issue: parse(raw.issue.as_deref())
            .map_err(|_| bad())?
            .map(|text: IssueText| issue(text).ok_or_else(bad))
            .transpose()?,
        spend: parse(raw.spend.as_deref())
            .map_err(|_| bad())?
            .map(|text: SpendText| Spend {
                at: Millis(text.at),
                effect_deadline: Millis(text.effect_deadline),
                started: text.started.map(Millis),
                index: text.index,
            }),
        ending: parse(raw.ending.as_deref())
            .map_err(|_| bad())?
            .map(|text: EndingText| Ending {
                outcome: text.outcome,
                code: text.code,
                evidence_sha256: text.evidence_sha256,
            }),
        index,
        id: raw.id,
        digest: raw.digest,
        requester: raw.requester,
        nonce: raw.nonce,
        need: raw.need,
        revision: raw.revision,
    };
    Ok(action)
}

fn parse<T: for<'a> Deserialize<'a>>(text: Option<&str>) -> Result<Option<T>, serde_json::Error> {
    text.map(serde_json::from_str).transpose()
}

fn issue(text: IssueText) -> Option<Issue> {
    Some(Issue {
        claims: Claims::parse(text.claims.as_bytes())?,
        executor: text.executor,
        job: text.job,
        fence: text.fence,
    })
}

/// Whether the last leaf of an action can have brought it into this state.
fn tells(event: &Event, state: State) -> bool {
    use EventType as E;
    let outcome = event.outcome.as_deref();
    match state {
        State::Pending => matches!(event.kind, E::ActionProposed | E::DecisionApproved),
        State::Approved => event.kind == E::DecisionApproved,
        State::Issued => event.kind == E::CapIssued,
        State::Spent => matches!(event.kind, E::SpendOk | E::ExecStarted),
        State::Succeeded => event.kind == E::ExecOutcome && outcome == Some("succeeded"),
        State::Failed => event.kind == E::ExecOutcome && outcome == Some("failed"),
        State::InDoubt => {
            event.kind == E::ExecInDoubt
                || (event.kind == E::ExecOutcome && outcome == Some("unknown"))
        }
        State::ReconciledSucceeded => {
            event.kind == E::ExecReconciled && outcome == Some("succeeded")
        }
        State::ReconciledFailed => event.kind == E::ExecReconciled && outcome == Some("failed"),
        State::Denied => event.kind == E::DecisionDenied,
        State::Expired => event.kind == E::ActionExpired,
        State::Cancelled => event.kind == E::ActionCancelled,
        State::Superseded => event.kind == E::ActionSuperseded,
        State::Lapsed => event.kind == E::CapLapsed,
        State::Revoked => event.kind == E::DecisionRevoked,
        State::EpochVoid => event.kind == E::ActionVoided,
    }
}

/// A leaf whose bytes have the hash that the tree was built on.
pub(super) fn leaf(conn: &Connection, log: &Log, index: u64) -> Result<Event, Error> {
    let bad = || Error::Leaf(index);
    let known = log.hash(index).ok_or_else(bad)?;
    let seq = i64::try_from(index).map_err(|_| bad())?;
    let text: String = conn
        .prepare_cached("SELECT event FROM leaf WHERE seq = ?1")?
        .query_row([seq], |row| row.get(0))
        .optional()?
        .ok_or_else(bad)?;
    let event = Event::parse(&text).map_err(|_| bad())?;
    if event.leaf == *known {
        Ok(event)
    } else {
        Err(bad())
    }
}

/// The decisions that count, each with the leaf that says so: this action, these bytes, this
/// person, this verdict.
fn decisions(conn: &Connection, log: &Log, raw: &Raw) -> Result<Vec<Decision>, Error> {
    let mut statement = conn.prepare_cached(
        "SELECT leaf, person, verdict, assurance, via, nonce, at FROM decision \
         WHERE aid = ?1 AND nonce = ?2 ORDER BY leaf",
    )?;
    let mut rows = statement.query(params![raw.id, raw.nonce])?;
    let mut decisions = Vec::new();
    while let Some(row) = rows.next()? {
        let seq: i64 = row.get(0)?;
        let bad = || Error::Row {
            row: format!("decision {seq}"),
        };
        let index = u64::try_from(seq).map_err(|_| bad())?;
        let pseudonym: String = row.get(1)?;
        let verdict = Verdict::parse(&row.get::<_, String>(2)?).ok_or_else(bad)?;
        let event = leaf(conn, log, index)?;
        let kind = match verdict {
            Verdict::Approve => EventType::DecisionApproved,
            Verdict::Deny => EventType::DecisionDenied,
        };
        let digest = event.dig.map(|dig| policies::audit::hash_text(&dig));
        let same = event.kind == kind
            && event.aid.as_deref() == Some(raw.id.as_str())
            && event.actor.as_deref() == Some(pseudonym.as_str())
            && digest.as_deref() == Some(raw.digest.as_str());
        if !same {
            return Err(bad());
        }
        decisions.push(Decision {
            person: people::name(conn, &pseudonym)?,
            verdict,
            assurance: Assurance::from_str(&row.get::<_, String>(3)?).map_err(|_| bad())?,
            via: row.get(4)?,
            nonce: row.get(5)?,
            at: Millis(row.get(6)?),
            reason: people::pii(conn, seq, "reason")?.unwrap_or_default(),
            index,
        });
    }
    Ok(decisions)
}

/// Writes the next version of an action: exactly one row changes, or the batch fails.
pub(super) fn put(
    conn: &Connection,
    action: &Action,
    initiator: Option<&str>,
) -> Result<(), Error> {
    let due = match action.state {
        State::Pending => Some(action.expires_at),
        State::Approved | State::Issued => action.approval_expires_at,
        State::Spent => action.spend.as_ref().map(|s| s.effect_deadline),
        _ => None,
    };
    let denied_at = (action.state == State::Denied)
        .then(|| action.decisions.last().map(|d| d.at.0))
        .flatten();
    let changes = if action.revision == 0 {
        conn.prepare_cached(
            "INSERT INTO action (revision, state, nonce, approval_expires_at, due_at, jti, issue, \
             spend, ending, denied_at, leaf, id, requester, initiator, digest, place, doc, need, \
             created_at, expires_at, proposed) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, \
             ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20, ?11)",
        )?
        .execute(params![
            0,
            action.state.as_str(),
            action.nonce,
            Option::<i64>::None,
            due.map(|at| at.0),
            Option::<String>::None,
            Option::<String>::None,
            Option::<String>::None,
            Option::<String>::None,
            Option::<i64>::None,
            as_sql(action.index),
            action.id,
            action.requester,
            initiator,
            action.digest,
            place(&action.doc),
            action.doc.jcs(),
            action.need,
            action.created_at.0,
            action.expires_at.0,
        ])?
    } else {
        conn.prepare_cached(
            "UPDATE action SET revision = ?1, state = ?2, nonce = ?3, approval_expires_at = ?4, \
             due_at = ?5, jti = ?6, issue = ?7, spend = ?8, ending = ?9, denied_at = ?10, leaf = ?11 \
             WHERE id = ?12 AND revision = ?1 - 1",
        )?
        .execute(params![
            action.revision,
            action.state.as_str(),
            action.nonce,
            action.approval_expires_at.map(|at| at.0),
            due.map(|at| at.0),
            action.issue.as_ref().map(|i| i.claims.jti.as_str()),
            action.issue.as_ref().map(issue_text),
            action.spend.as_ref().map(spend_text),
            action.ending.as_ref().map(ending_text),
            denied_at,
            as_sql(action.index),
            action.id,
        ])?
    };
    if changes == 1 {
        Ok(())
    } else {
        Err(Error::Race(action.id.clone()))
    }
}

pub(super) fn as_sql(index: u64) -> i64 {
    i64::try_from(index).unwrap_or(i64::MAX)
}

fn issue_text(issue: &Issue) -> String {
    serde_json::json!({
        "claims": issue.claims.to_jcs(), "executor": issue.executor,
        "job": issue.job, "fence": issue.fence,
    })
    .to_string()
}

fn spend_text(spend: &Spend) -> String {
    serde_json::json!({
        "at": spend.at.0, "effect_deadline": spend.effect_deadline.0,
        "started": spend.started.map(|at| at.0), "index": spend.index,
    })
    .to_string()
}

fn ending_text(ending: &Ending) -> String {
    serde_json::json!({
        "outcome": ending.outcome, "code": ending.code, "evidence_sha256": ending.evidence_sha256,
    })
    .to_string()
}
