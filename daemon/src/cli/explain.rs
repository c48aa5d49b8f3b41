//! `explain CODE`: the offline page of a code.

use policies::interlocks::INTERLOCKS;
use serde_json::json;

use super::{Globals, exit};

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
    "SN-0212", "SN-0213", "SN-0214", "SN-0215",
);

/// Prints the page of an error or of an interlock.
pub fn explain(globals: &Globals, code: &str) -> u8 {
    let wanted = code.to_ascii_uppercase();
    if let Some((code, page)) = PAGES.iter().find(|(c, _)| *c == wanted) {
        return globals.print("explain", &json!({ "code": code, "page": page }), page);
    }
    if let Some(interlock) = INTERLOCKS.iter().find(|i| i.code == wanted) {
        let page = format!(
            "# {} {}\n\nEscalates when {}\n",
            interlock.code, interlock.name, interlock.cause
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
