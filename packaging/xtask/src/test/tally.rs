//! Counting what passed and what failed, read from what test runners print.

/// Sum of checks.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Tally {
    /// Passed.
    pub(crate) passed: u64,
    /// Failed.
    pub(crate) failed: u64,
}

impl Tally {
    /// One check.
    pub(crate) fn of(passed: bool) -> Self {
        Self {
            passed: u64::from(passed),
            failed: u64::from(!passed),
        }
    }

    /// Adds another sum.
    pub(crate) fn add(&mut self, other: &Self) {
        self.passed = self.passed.saturating_add(other.passed);
        self.failed = self.failed.saturating_add(other.failed);
    }

    /// Reads the summaries of nextest (`Summary [1.2s] 5 tests run: 4 passed, 1 failed, 2 skipped`)
    /// and of libtest (`test result: ok. 5 passed; 0 failed; ...`). A run that failed without a
    /// failed test, such as one that did not compile, counts as one failure.
    pub(crate) fn read(success: bool, output: &str) -> Self {
        let mut sum = Self::default();
        // nextest shows what a failed test printed, the line of libtest for that one test too.
        let is_nextest = |line: &str| line.trim_start().starts_with("Summary [");
        let nextest = output.lines().any(is_nextest);
        for line in output.lines().filter(|line| !nextest || is_nextest(line)) {
            let line = line.trim_start();
            let counts = if line.starts_with("Summary [") {
                line.split_once("run: ").map(|(_, rest)| rest)
            } else {
                line.strip_prefix("test result: ")
                    .and_then(|rest| rest.split_once(". "))
                    .map(|(_, rest)| rest)
            };
            for part in counts.unwrap_or_default().split([',', ';']) {
                let mut words = part.split_whitespace();
                let Some(n) = words.next().and_then(|w| w.parse::<u64>().ok()) else {
                    continue;
                };
                match words.next() {
                    Some("passed") => sum.passed = sum.passed.saturating_add(n),
                    Some("failed" | "timed" | "exec") => sum.failed = sum.failed.saturating_add(n),
                    _ => {}
                }
            }
        }
        if !success && sum.failed == 0 {
            sum.failed = 1;
        }
        sum
    }
}

#[cfg(test)]
mod tests {
    use super::Tally;

    #[test]
    fn both_runners_are_read() {
        let nextest = "     Summary [  12.1s] 10 tests run: 7 passed (1 slow), 2 failed, 1 timed out, 3 skipped";
        assert_eq!(
            Tally::read(false, nextest),
            Tally {
                passed: 7,
                failed: 3
            }
        );
        let libtest = "test result: ok. 5 passed; 0 failed; 1 ignored; 0 measured; 2 filtered out";
        let twice = format!("{libtest}\n{libtest}\n");
        assert_eq!(
            Tally::read(true, &twice),
            Tally {
                passed: 10,
                failed: 0
            }
        );
    }

    #[test]
    fn a_failed_test_that_nextest_shows_counts_once() {
        let shown = "    test result: FAILED. 0 passed; 1 failed; 0 ignored";
        let output =
            format!("{shown}\n     Summary [  1.0s] 3 tests run: 2 passed, 1 failed\n{shown}\n");
        assert_eq!(
            Tally::read(false, &output),
            Tally {
                passed: 2,
                failed: 1
            }
        );
    }

    #[test]
    fn a_run_that_did_not_compile_is_a_failure() {
        let output = "error: could not compile `sentinel-store`";
        assert_eq!(
            Tally::read(false, output),
            Tally {
                passed: 0,
                failed: 1
            }
        );
    }
}
