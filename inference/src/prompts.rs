//! The prompts, as text files beside this module, so that a change of one is a change of one file.
//!
//! A prompt holds no tenant, no time and nothing random: the system text is the part of the context that every
//! incident shares (inference 7.3).

/// System text of the step that explains and chooses among the hypotheses of an incident.
pub const RCA_SYSTEM: &str = include_str!("prompts/rca_system.txt");

/// Closing instruction of the same step; it comes last, after the evidence.
pub const RCA_QUESTION: &str = include_str!("prompts/rca_question.txt");

#[cfg(test)]
mod tests {
    use super::{RCA_QUESTION, RCA_SYSTEM};

    #[test]
    fn prompts_are_short_and_end_with_one_line_feed() {
        for text in [RCA_SYSTEM, RCA_QUESTION] {
            assert!(text.len() < 1_000, "{} bytes", text.len());
            assert!(text.ends_with('\n') && !text.ends_with("\n\n"));
            assert!(text.is_ascii());
        }
    }
}
