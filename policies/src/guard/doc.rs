//! The action document: the canonical bytes that are approved (guard 5.1).

use std::collections::BTreeMap;

use sha2::{Digest, Sha256};

use super::policy::{ActionRule, Policy};
use super::{Code, Problem};
use crate::canon::{self, Value, b64url};
use crate::model::Target;

/// What is asked for: an action on a target with exact parameters.
///
/// It is built only by [`ActionDoc::check`] (from typed values, never from a caller's text) and
/// by [`ActionDoc::reread`] (from stored bytes that still have their digest).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ActionDoc {
    action: String,
    target: Target,
    change: BTreeMap<String, Value>,
}

impl ActionDoc {
    /// Checks an action against its rule. An action or a tenant that the policy does not know,
    /// or forbids, is `not_permitted` and is judged before the parameters (guard 3.7).
    ///
    /// # Errors
    /// `not_permitted`, or `params_invalid` naming the first parameter that does not fit.
    pub fn check(
        policy: &Policy,
        action: &str,
        target: &Value,
        change: &Value,
    ) -> Result<Self, Problem> {
        let rule = policy
            .action(action)
            .ok_or_else(|| Problem::new(Code::NotPermitted, "the policy has no such action"))?;
        let invalid = |text: String| Problem::new(Code::ParamsInvalid, text);
        let members = target
            .exactly(&["namespace", "name"])
            .ok_or_else(|| invalid("`target` has exactly `namespace` and `name`".to_owned()))?;
        let part = |key: &str, kind: &super::policy::Kind| {
            let value = members.get(key).filter(|v| kind.admits(v));
            value
                .and_then(Value::as_text)
                .map(str::to_owned)
                .ok_or_else(|| invalid(format!("`target.{key}` is not of its type")))
        };
        let target = Target {
            namespace: part("namespace", &rule.target.namespace)?,
            name: part("name", &rule.target.name)?,
        };
        if policy.forbids(action, &target.namespace) {
            return Err(Problem::new(Code::NotPermitted, "the policy forbids this"));
        }
        let change = checked_change(rule, change)?;
        Ok(Self {
            action: action.to_owned(),
            target,
            change,
        })
    }

    /// Reads stored canonical bytes back, if they still have their digest.
    #[must_use]
    pub fn reread(jcs: &str, digest: &str) -> Option<Self> {
        if b64url(&Sha256::digest(jcs.as_bytes())) != digest {
            return None;
        }
        let limits = canon::Limits {
            max_bytes: 1 << 14,
            max_depth: 4,
        };
        let value = canon::parse(jcs.as_bytes(), limits).ok()?;
        let members = value.exactly(&["action", "change", "target", "v"])?;
        let target = members.get("target")?.exactly(&["namespace", "name"])?;
        let doc = Self {
            action: members.get("action")?.as_text()?.to_owned(),
            target: Target {
                namespace: target.get("namespace")?.as_text()?.to_owned(),
                name: target.get("name")?.as_text()?.to_owned(),
            },
            change: members.get("change")?.as_map()?.clone(),
        };
        (doc.jcs() == jcs).then_some(doc)
    }

    /// Name of the action.
    #[must_use]
    pub fn action(&self) -> &str {
        &self.action
    }

    /// What it works on.
    #[must_use]
    pub fn target(&self) -> &Target {
        &self.target
    }

    /// The parameters.
    #[must_use]
    pub fn change(&self) -> &BTreeMap<String, Value> {
        &self.change
    }

    /// The incident that the parameters name, if any.
    #[must_use]
    pub fn incident(&self) -> Option<&str> {
        self.change.get("incident").and_then(Value::as_text)
    }

    /// The target as JSON.
    #[must_use]
    pub fn target_value(&self) -> Value {
        Value::map([
            ("name", Value::from(self.target.name.as_str())),
            ("namespace", Value::from(self.target.namespace.as_str())),
        ])
    }

    /// The document as JSON.
    #[must_use]
    pub fn value(&self) -> Value {
        Value::map([
            ("action", Value::from(self.action.as_str())),
            ("change", Value::Map(self.change.clone())),
            ("target", self.target_value()),
            ("v", Value::Int(1)),
        ])
    }

    /// The canonical bytes.
    #[must_use]
    pub fn jcs(&self) -> String {
        self.value().to_jcs()
    }

    /// SHA-256 of the canonical bytes, base64url.
    #[must_use]
    pub fn digest(&self) -> String {
        b64url(&Sha256::digest(self.jcs().as_bytes()))
    }
}

/// The digest of what somebody is about to do, from their own arguments. It permits nothing: it is
/// compared with what a signed capability says (guard 5.3 rule 6).
#[must_use]
pub fn digest_of(action: &str, target: &Target, change: &BTreeMap<String, Value>) -> String {
    ActionDoc {
        action: action.to_owned(),
        target: target.clone(),
        change: change.clone(),
    }
    .digest()
}

/// The keys equal the schema's as sets, and each value is of its type (guard 5.1.3).
fn checked_change(rule: &ActionRule, change: &Value) -> Result<BTreeMap<String, Value>, Problem> {
    let invalid = |text: String| Problem::new(Code::ParamsInvalid, text);
    let given = change
        .as_map()
        .ok_or_else(|| invalid("`change` is no object".to_owned()))?;
    if given.keys().any(|key| !rule.change.contains_key(key)) {
        return Err(invalid(
            "`change` has a parameter that the policy does not know".to_owned(),
        ));
    }
    for (key, kind) in &rule.change {
        match given.get(key) {
            None => return Err(invalid(format!("`change.{key}` is missing"))),
            Some(value) if !kind.admits(value) => {
                return Err(invalid(format!("`change.{key}` is not of its type")));
            }
            Some(_) => {}
        }
    }
    Ok(given.clone())
}

/// What a person's evidence is bound to: one action, one set of bytes, one answer (guard 2.2.6).
#[must_use]
pub fn challenge(aid: &str, digest: &str, approve: bool, nonce: &str) -> String {
    let verb = if approve { "approve" } else { "deny" };
    let text = ["sentinel-approve/1", aid, digest, verb, nonce].join("\0");
    b64url(&Sha256::digest(text.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::{ActionDoc, challenge};
    use crate::canon::{self, Value};
    use crate::guard::testing::policy;
    use crate::guard::{Code, policy::Policy};

    fn parse(text: &str) -> Value {
        let limits = canon::Limits {
            max_bytes: 4096,
            max_depth: 4,
        };
        canon::parse(text.as_bytes(), limits).unwrap()
    }

    fn check(policy: &Policy, target: &str, change: &str) -> Result<ActionDoc, Code> {
        ActionDoc::check(policy, "scale", &parse(target), &parse(change)).map_err(|p| p.code)
    }

    const TARGET: &str = r#"{"namespace":"acme","name":"checkout"}"#;

    /// guard 5.1.2, 10 P7
    #[test]
    fn key_order_white_space_and_escapes_do_not_change_the_digest() {
        let policy = policy();
        let one = check(&policy, TARGET, r#"{"incident":"inc-42","replicas":6}"#).unwrap();
        let two = check(
            &policy,
            "{ \"name\" : \"ch\\u0065ckout\", \"namespace\":\"acme\"}",
            "{\n\"replicas\": 6, \"incident\": \"inc-42\"}",
        )
        .unwrap();
        assert_eq!(one.digest(), two.digest());
        assert_eq!(
            one.jcs(),
            r#"{"action":"scale","change":{"incident":"inc-42","replicas":6},"target":{"name":"checkout","namespace":"acme"},"v":1}"#
        );
        assert_eq!(ActionDoc::reread(&one.jcs(), &one.digest()), Some(one));
    }

    /// guard 5.1.3, 10 P4, P5, P7, C6
    #[test]
    fn a_parameter_more_or_less_or_of_another_type_is_refused() {
        let policy = policy();
        for change in [
            r#"{"incident":"inc-42","replicas":6,"force":true}"#,
            r#"{"incident":"inc-42"}"#,
            r#"{"incident":"inc-42","replicas":"6"}"#,
            r#"{"incident":"inc-42","replicas":51}"#,
            r#"{"incident":"inc-42","replicas":null}"#,
            r#"{"incident":"x; rm -rf /","replicas":6}"#,
            r#"{"incident":"../etc","replicas":6}"#,
            r#"{"incident":"' OR 1=1","replicas":6}"#,
            "[]",
        ] {
            assert_eq!(
                check(&policy, TARGET, change),
                Err(Code::ParamsInvalid),
                "{change}"
            );
        }
        let change = r#"{"incident":"inc-42","replicas":6}"#;
        for target in [
            r#"{"namespace":"acme","name":"check\u043eut"}"#,
            r#"{"namespace":"acme"}"#,
            r#"{"namespace":"acme","name":"checkout","x":1}"#,
        ] {
            assert_eq!(
                check(&policy, target, change),
                Err(Code::ParamsInvalid),
                "{target}"
            );
        }
    }

    /// guard 2.4.1: default deny, and `forbid` wins.
    #[test]
    fn an_action_that_the_policy_does_not_know_or_forbids_is_not_permitted() {
        let policy = policy();
        let change = r#"{"incident":"inc-42","replicas":6}"#;
        let forbidden = r#"{"namespace":"payments-core","name":"checkout"}"#;
        assert_eq!(check(&policy, forbidden, change), Err(Code::NotPermitted));
        let unknown = ActionDoc::check(&policy, "rm", &parse(TARGET), &parse(change));
        assert_eq!(unknown.unwrap_err().code, Code::NotPermitted);
    }

    /// guard 5.1.2: stored bytes are re-hashed.
    #[test]
    fn stored_bytes_with_another_digest_are_not_read_back() {
        let policy = policy();
        let doc = check(&policy, TARGET, r#"{"incident":"inc-42","replicas":6}"#).unwrap();
        let edited = doc.jcs().replace(":6", ":7");
        assert_eq!(ActionDoc::reread(&edited, &doc.digest()), None);
    }

    /// guard 2.2.6
    #[test]
    fn a_challenge_is_bound_to_action_bytes_answer_and_nonce() {
        let base = challenge("act_1", "d", true, "n");
        assert_eq!(base.len(), 43);
        for other in [
            challenge("act_2", "d", true, "n"),
            challenge("act_1", "e", true, "n"),
            challenge("act_1", "d", false, "n"),
            challenge("act_1", "d", true, "m"),
        ] {
            assert_ne!(base, other);
        }
    }
}
