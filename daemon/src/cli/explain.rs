//! `explain CODE`: the offline page of a code.

use policies::interlocks::INTERLOCKS;
use serde_json::json;

use super::{Globals, exit};

/// The page with the table of the interlocks.
const INTERLOCK_TABLE: &str = include_str!("../../../docs/interlocks.md");

macro_rules! pages {
    ($($code:literal),+ $(,)?) => {
        /// Every operator-facing code with its page.
        pub(super) const PAGES: &[(&str, &str)] =
            &[$(($code, include_str!(concat!("../../../docs/errors/", $code, ".md")))),+];
    };
}

pages!(
    "SN-0101", "SN-0102", "SN-0103", "SN-0104", "SN-0105", "SN-0106", "SN-0107", "SN-0108",
    "SN-0109", "SN-0110", "SN-0111", "SN-0112", "SN-0113", "SN-0201", "SN-0202", "SN-0203",
    "SN-0204", "SN-0205", "SN-0206", "SN-0207", "SN-0208", "SN-0209", "SN-0210", "SN-0211",
    "SN-0212", "SN-0213", "SN-0214", "SN-0215", "SN-0216",
);

/// Prints the page of an error or of an interlock.
pub fn explain(globals: &Globals, code: &str) -> u8 {
    let wanted = code.to_ascii_uppercase();
    if let Some((code, page)) = PAGES.iter().find(|(c, _)| *c == wanted) {
        return globals.print("explain", &json!({ "code": code, "page": page }), page);
    }
    if let Some(interlock) = INTERLOCKS.iter().find(|i| i.code == wanted) {
        let page = format!(
            "# {} {}\n\n**Cause.** {} The proposal is kept as it is, shown as blocked, and handed over to the people.\n\n\
             **Fix.** {}.\n",
            interlock.code,
            interlock.name,
            interlock.cause,
            advice(interlock.code)
        );
        return globals.print(
            "explain",
            &json!({ "code": interlock.code, "page": page }),
            &page,
        );
    }
    let known: Vec<&str> = PAGES
        .iter()
        .map(|(c, _)| *c)
        .chain(INTERLOCKS.iter().map(|i| i.code))
        .collect();
    globals.fail(
        "explain",
        "SN-0207",
        &format!("no page for that code; known are {}", known.join(", ")),
        exit::NOT_FOUND,
    )
}

/// What to do, from the last column of the documentation's table.
fn advice(code: &str) -> String {
    let start = format!("| `{code}` |");
    let row = INTERLOCK_TABLE
        .lines()
        .find(|line| line.starts_with(&start));
    let cell = row.and_then(|line| line.trim_end_matches(['|', ' ']).rsplit('|').next());
    let mut text = cell.unwrap_or("").trim().to_owned();
    if let Some(first) = text.get_mut(..1) {
        first.make_ascii_uppercase();
    }
    text
}

#[cfg(test)]
mod tests {
    use policies::interlocks::INTERLOCKS;

    use super::advice;

    #[test]
    fn every_interlock_has_an_advice() {
        for interlock in INTERLOCKS {
            assert!(advice(interlock.code).len() > 8, "{}", interlock.code);
        }
        assert_eq!(advice("IL-01"), "Check that a source covers the service");
    }
}
