//! IL-04: the target or a parameter value occurs only in text that anybody can write (guard rails 8.5).

use super::Facts;
use crate::claim::Proposal;
use crate::diagnosis::ParamValue;
use crate::model::Millis;

pub(super) fn check(proposal: &Proposal, facts: &Facts, _now: Millis) -> Option<String> {
    let texts = proposal.change().values().filter_map(|value| match value {
        ParamValue::Text(text) => Some(text.as_str()),
        ParamValue::Int(_) | ParamValue::Bool(_) => None,
    });
    std::iter::once(proposal.target().name.as_str())
        .chain(texts)
        .find(|value| facts.tainted.contains(*value))
        .map(|value| format!("`{value}` was seen only in text that anybody can write"))
}

#[cfg(test)]
mod tests {
    use super::check;
    use crate::interlocks::fixture::{NOW, rollback};

    #[test]
    fn values_of_records_pass() {
        let (proposal, facts) = rollback();
        assert_eq!(check(&proposal, &facts, NOW), None);
    }

    #[test]
    fn a_value_that_only_a_log_message_brought_is_refused() {
        let (proposal, mut facts) = rollback();
        facts.tainted.insert("1.4.0".to_owned());
        assert!(check(&proposal, &facts, NOW).unwrap().contains("1.4.0"));
    }
}
