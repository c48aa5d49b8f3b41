//! Every metric of the daemon (protocols.md 3.2): a name that is not here does not exist.

/// Kind of a metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Only rises.
    Counter,
    /// Goes up and down.
    Gauge,
    /// Distribution.
    Histogram,
}

/// One row of the table.
#[derive(Debug)]
pub struct Metric {
    /// Name with prefix, base unit and, for a counter, `_total`.
    pub name: &'static str,
    /// Kind.
    pub kind: Kind,
    /// One sentence.
    pub help: &'static str,
    /// Labels. Their values come from closed sets or from the configuration, never from outside.
    pub labels: &'static [&'static str],
}

macro_rules! metrics {
    ($($(#[$doc:meta])* $id:ident = $name:literal, $kind:ident, [$($label:literal),*], $help:literal;)+) => {
        $(
            $(#[$doc])*
            pub const $id: &Metric = &Metric { name: $name, kind: Kind::$kind, help: $help, labels: &[$($label),*] };
        )+
        /// Every metric, in the order of the documentation.
        pub const METRICS: &[&Metric] = &[$($id),+];
    };
}

metrics! {
    /// Version of the program.
    BUILD_INFO = "sentinel_build_info", Gauge, ["version"], "Version of the running program; always 1.";
    /// Start of the process.
    START_TIME = "sentinel_start_time_seconds", Gauge, [], "Start of the process, in seconds since the epoch.";
    /// State of the parts.
    PART_STATE = "sentinel_part_state", Gauge, ["part", "state"], "1 for the state that a part is in.";
    /// Webhook requests.
    INTAKE_REQUESTS = "sentinel_intake_requests_total", Counter, ["source", "code"], "Webhook requests by intake and status code.";
    /// Alerts of webhooks.
    INTAKE_ALERTS = "sentinel_intake_alerts_total", Counter, ["source", "result"], "Alerts by intake and what became of them.";
    /// Time of a webhook request.
    INTAKE_SECONDS = "sentinel_intake_request_seconds", Histogram, ["source"], "Time from a webhook's body to its durable answer.";
    /// Last alert.
    INTAKE_LAST = "sentinel_intake_last_alert_timestamp_seconds", Gauge, ["source"], "When the last alert of an intake came in.";
    /// Ended incidents.
    INCIDENTS = "sentinel_incidents_total", Counter, ["tenant", "outcome"], "Ended incidents by tenant and outcome.";
    /// Open incidents.
    INCIDENTS_OPEN = "sentinel_incidents", Gauge, ["state"], "Incidents that are open.";
    /// Time of the phases.
    INCIDENT_SECONDS = "sentinel_incident_duration_seconds", Histogram, ["phase"], "Time an incident spent in each phase.";
    /// Notifications.
    NOTIFICATIONS = "sentinel_notifications_total", Counter, ["name", "result"], "Attempts to notify, by sink and what became of them.";
    /// Guardrail interventions.
    GUARDRAILS = "sentinel_guardrail_events_total", Counter, ["layer", "code"], "Interventions of guardrails and interlocks.";
    /// Drafts of the model.
    DRAFTS = "sentinel_drafts_total", Counter, ["result"], "Drafts of the model, taken or refused.";
    /// Jobs.
    JOBS = "sentinel_jobs_total", Counter, ["tool", "result"], "Jobs by tool and result.";
    /// Time of jobs.
    JOB_SECONDS = "sentinel_job_duration_seconds", Histogram, ["tool"], "Time of jobs by tool.";
    /// Engine state.
    ENGINE_STATE = "sentinel_engine_state", Gauge, ["state"], "1 for the state that the engine is in.";
    /// Engine restarts.
    ENGINE_RESTARTS = "sentinel_engine_restarts_total", Counter, ["cause"], "Restarts of the engine child by cause.";
    /// Tokens read.
    TOKENS_IN = "gen_ai_client_inference_usage_input_tokens_total", Counter, ["gen_ai_token_modality"], "Prompt tokens.";
    /// Tokens written.
    TOKENS_OUT = "gen_ai_client_inference_usage_output_tokens_total", Counter, ["gen_ai_token_modality"], "Answer tokens.";
    /// Audit log size.
    AUDIT_ENTRIES = "sentinel_audit_log_entries", Gauge, [], "Leaves of the audit log.";
    /// CSP reports.
    CSP_VIOLATIONS = "sentinel_csp_violations_total", Counter, [], "Reports of the browser about the content security policy.";
}

#[cfg(test)]
mod tests {
    use super::{Kind, METRICS};

    #[test]
    fn names_follow_the_rules_of_the_exposition_format() {
        for metric in METRICS {
            assert!(
                metric
                    .name
                    .bytes()
                    .all(|b| matches!(b, b'a'..=b'z' | b'0'..=b'9' | b'_')),
                "{}",
                metric.name
            );
            assert_eq!(
                metric.kind == Kind::Counter,
                metric.name.ends_with("_total"),
                "{}",
                metric.name
            );
            assert!(metric.help.ends_with('.'), "{}", metric.name);
        }
        let mut names: Vec<_> = METRICS.iter().map(|m| m.name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), METRICS.len());
    }
}
