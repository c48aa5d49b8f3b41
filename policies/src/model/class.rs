//! Cause and remediation classes (benchmark.md 4). No wildcard match arm on either, anywhere.

use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// A word that names no class.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no class of this kind")]
pub struct UnknownClass(pub String);

macro_rules! classes {
    ($(#[$meta:meta])* $name:ident { $($(#[$vmeta:meta])* $variant:ident = $text:literal,)+ }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(rename_all = "snake_case")]
        pub enum $name { $($(#[$vmeta])* $variant,)+ }

        impl $name {
            /// Every class, in the order of the table in the specification.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)+];

            /// The word used on every wire, in the policy file and in the audit log.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $text,)+ }
            }
        }

        impl FromStr for $name {
            type Err = UnknownClass;

            fn from_str(text: &str) -> Result<Self, UnknownClass> {
                match text { $($text => Ok(Self::$variant),)+ _ => Err(UnknownClass(text.to_owned())) }
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.as_str())
            }
        }
    };
}

classes! {
    /// The trigger of an incident, not its symptom.
    CauseClass {
        /// A change in code or dependency versions.
        BadDeploy = "bad_deploy",
        /// A change in configuration or flags.
        ConfigError = "config_error",
        /// Image, command, secret, mount, probe or permission wrong: a unit never becomes ready.
        StartupConfig = "startup_config",
        /// Memory, cpu, disk, connections, descriptors or quota used up without a change that explains it.
        ResourceExhaustion = "resource_exhaustion",
        /// Cannot be placed: quota, selector, taint, affinity, no node large enough.
        SchedulingCapacity = "scheduling_capacity",
        /// Node, zone, hypervisor, runtime, disk hardware, a neighbour on the node.
        InfrastructureNode = "infrastructure_node",
        /// Delay, loss, partition, policy, in-house name resolution.
        Network = "network",
        /// Something the service calls that the site does not deploy, or whose own cause cannot be seen.
        ExternalDependency = "external_dependency",
        /// Certificate, token, key or licence past its date.
        ExpiredCredential = "expired_credential",
        /// Input that cannot be processed.
        BadData = "bad_data",
        /// More demand at the edge.
        Load = "load",
        /// Nothing is wrong now.
        None = "none",
        /// The evidence does not decide.
        Inconclusive = "inconclusive",
    }
}

classes! {
    /// What is proposed against a cause.
    RemediationClass {
        /// Put an earlier release back.
        Rollback = "rollback",
        /// Put an earlier configuration value back.
        ConfigRevert = "config_revert",
        /// Switch a feature flag off.
        FeatureFlagDisable = "feature_flag_disable",
        /// Restart a service.
        Restart = "restart",
        /// Change a number of replicas.
        Scale = "scale",
        /// Change a limit or the size of a pool.
        Resize = "resize",
        /// Move a unit to another node.
        Reschedule = "reschedule",
        /// Switch to a standby.
        Failover = "failover",
        /// Exchange a certificate.
        RotateCert = "rotate_cert",
        /// Remove a record that cannot be processed.
        PurgeBadData = "purge_bad_data",
        /// Advice: repair by a new release.
        RollForward = "roll_forward",
        /// Hand over to a person.
        Escalate = "escalate",
        /// Leave everything as it is.
        NoAction = "no_action",
    }
}

impl RemediationClass {
    /// True for the classes that change something; they all count as disruptive.
    #[must_use]
    pub const fn is_mutating(self) -> bool {
        match self {
            Self::Rollback
            | Self::ConfigRevert
            | Self::FeatureFlagDisable
            | Self::Restart
            | Self::Scale
            | Self::Resize
            | Self::Reschedule
            | Self::Failover
            | Self::RotateCert
            | Self::PurgeBadData => true,
            Self::RollForward | Self::Escalate | Self::NoAction => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{CauseClass, RemediationClass};

    #[test]
    fn every_class_is_read_back_from_its_word_and_from_json() {
        for &class in CauseClass::ALL {
            assert_eq!(class.as_str().parse(), Ok(class));
            assert_eq!(
                serde_json::to_string(&class).unwrap(),
                format!("\"{class}\"")
            );
        }
        for &class in RemediationClass::ALL {
            assert_eq!(class.as_str().parse(), Ok(class));
            assert_eq!(
                serde_json::to_string(&class).unwrap(),
                format!("\"{class}\"")
            );
        }
    }

    #[test]
    fn ten_classes_change_something_and_three_do_not() {
        let mutating = RemediationClass::ALL
            .iter()
            .filter(|c| c.is_mutating())
            .count();
        assert_eq!((mutating, RemediationClass::ALL.len()), (10, 13));
    }
}
