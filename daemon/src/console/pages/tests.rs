//! Every page in its states: empty, one, many, hostile (console 12.3). What must hold for all of
//! them is asserted here; how they read is kept as snapshots.

use askama::Template;

use super::{action, approval, approvals, inbox, incident, login, message};
use crate::console::backend::{Problem, Verb};
use crate::console::chrome::{Chrome, Theme, Visitor};
use crate::console::document::Document;
use crate::console::fixtures::{self, HOSTILE, NOW};
use crate::console::notice;
use crate::console::outcomes::{Kept, Outcome};
use crate::console::view::{Action, ActionContext, BarFacts, DryRun, GuardState, Inbox};
use crate::identity::Role;

fn chrome(text: &str) -> Chrome {
    Chrome {
        site: format!("plant-7{text}"),
        visitor: Some(Visitor {
            name: "alice".to_owned(),
            roles: vec![Role::Approver],
            logout_form: "form-token".to_owned(),
            prefs_form: "form-token".to_owned(),
        }),
        theme: Theme::Auto,
        now: NOW,
        head: "1780000000000-7".to_owned(),
        bar: BarFacts {
            waiting: 1,
            last_incident: Some(NOW.plus(-42_000)),
            model: "ready".to_owned(),
            guard: if text.is_empty() {
                vec![]
            } else {
                vec![GuardState {
                    state: "on_hold".to_owned(),
                    cause: text.to_owned(),
                }]
            },
        },
        section: "incidents",
        path: "/incidents".to_owned(),
        live: Some("inbox".to_owned()),
        twin: "sentinel incident list".to_owned(),
    }
}

fn approval_page(state: &str, text: &str, outcome: Option<&Outcome>) -> String {
    let action = fixtures::action("act_1", state, text);
    approval_of(&action, text, outcome, Some(fixtures::dry_run(text)))
}

fn approval_of(
    action: &Action,
    text: &str,
    outcome: Option<&Outcome>,
    dry_run: Option<DryRun>,
) -> String {
    let chrome = chrome(text);
    let document = Document::read(&action.document, &action.digest).unwrap();
    let decide = match approval::closed(action, &chrome, Some("alice")) {
        Some(why) => approval::Decide::Closed { why },
        None => approval::Decide::Offer {
            approve_form: "form-token".to_owned(),
            deny_form: "form-token".to_owned(),
        },
    };
    approval::Page {
        chrome: &chrome,
        standing: approval::standing(action),
        notice: outcome.map(|o| notice::after_decision(o, action, Some("alice"))),
        kept: Kept {
            target: text.to_owned(),
            reason: text.to_owned(),
        },
        decide,
        dry_run,
        action,
        document: &document,
    }
    .render()
    .unwrap()
}

/// An approval whose dry run failed.
fn approval_unseen(text: &str) -> String {
    let action = fixtures::action("act_1", "pending", text);
    let failed = DryRun::Failed {
        code: format!("changed_since{text}"),
        detail: format!("`1.8.0` was to be replaced, but `1.9.0` is there {text}"),
    };
    approval_of(&action, text, None, Some(failed))
}

fn action_page(state: &str, text: &str) -> String {
    let chrome = chrome(text);
    let action = fixtures::action("act_1", state, text);
    let document = Document::read(&action.document, &action.digest).unwrap();
    action::Page::new(&chrome, &action, &document)
        .render()
        .unwrap()
}

fn incident_page(text: &str) -> String {
    let incident = fixtures::incident(1, text);
    incident::Page {
        chrome: &chrome(text),
        incident: &incident,
    }
    .render()
    .unwrap()
}

fn inbox_page(count: u32, text: &str) -> String {
    let inbox = Inbox {
        rows: (0..count)
            .map(|number| fixtures::incident(number, text).row)
            .collect(),
        next: (count > 1).then(|| "cursor".to_owned()),
    };
    inbox::Page {
        chrome: &chrome(text),
        inbox: &inbox,
    }
    .render()
    .unwrap()
}

fn approvals_page(states: &[&str], text: &str) -> String {
    let actions: Vec<_> = states
        .iter()
        .map(|state| fixtures::action(&format!("act_{state}"), state, text))
        .collect();
    approvals::Page::new(&chrome(text), &actions)
        .render()
        .unwrap()
}

fn login_page(text: &str) -> String {
    let mut chrome = chrome(text);
    chrome.visitor = None;
    chrome.live = None;
    login::Page {
        chrome: &chrome,
        form: "form-token",
        next: "/incidents",
        name: text,
        problem: Some(text.to_owned()),
    }
    .render()
    .unwrap()
}

fn message_page(text: &str) -> String {
    let failure = message::Failure::Problem(Problem::new(text, text));
    message::Page {
        chrome: &chrome(text),
        message: &(&failure).into(),
    }
    .render()
    .unwrap()
}

/// Every page, in every state that shows outside text.
fn all(text: &str) -> Vec<(&'static str, String)> {
    let refused = Outcome {
        verb: Verb::Approve,
        problem: Some(Problem::new("evidence_invalid", text)),
        kept: Kept::default(),
    };
    vec![
        ("inbox", inbox_page(2, text)),
        ("incident", incident_page(text)),
        ("approvals", approvals_page(&["pending", "denied"], text)),
        ("approval", approval_page("pending", text, Some(&refused))),
        ("approval unseen", approval_unseen(text)),
        ("approval closed", approval_page("in_doubt", text, None)),
        ("action", action_page("succeeded", text)),
        ("login", login_page(text)),
        ("message", message_page(text)),
    ]
}

/// Tags and attribute names, without any text: what a browser would build.
fn skeleton(html: &str) -> Vec<String> {
    html.split('<')
        .skip(1)
        .filter_map(|part| part.split_once('>').map(|(tag, _)| tag))
        .map(|tag| {
            let mut outside = String::new();
            let mut quoted = false;
            for c in tag.chars() {
                match c {
                    '"' => quoted = !quoted,
                    _ if quoted => {}
                    _ => outside.push(c),
                }
            }
            outside
        })
        .collect()
}

#[test]
fn no_page_has_an_inline_script_a_style_or_an_address_outside() {
    for (name, html) in all("") {
        assert!(!html.contains("http:"), "{name}");
        assert!(!html.contains("https:"), "{name}");
        for tag in skeleton(&html) {
            let words: Vec<_> = tag.split_whitespace().collect();
            assert_ne!(words.first(), Some(&"style"), "{name}");
            for word in words.iter().skip(1) {
                let attribute = word.trim_end_matches('=');
                assert_ne!(attribute, "style", "{name}");
                assert!(!attribute.starts_with("on"), "{name}: {attribute}");
            }
        }
        for script in html.split("<script").skip(1) {
            assert!(script.contains("></script>"), "{name}");
            assert!(
                script
                    .trim_start()
                    .starts_with("type=\"module\" src=\"/static/"),
                "{name}"
            );
        }
    }
}

/// console 7.5: hostile text changes the text of a page and nothing of its structure.
#[test]
fn hostile_text_changes_no_tag_and_no_attribute_of_any_page() {
    let calm: Vec<_> = all("harmless")
        .iter()
        .map(|(_, html)| skeleton(html))
        .collect();
    for text in HOSTILE {
        for ((name, html), calm) in all(text).iter().zip(&calm) {
            assert_eq!(&skeleton(html), calm, "{name} with {text:?}");
        }
    }
}

/// console 7.1
#[test]
fn no_hidden_code_point_reaches_any_page() {
    for text in HOSTILE {
        for (name, html) in all(text) {
            let shown = crate::console::text::show_block(&html);
            assert_eq!(shown, html, "{name} with {text:?}");
        }
    }
}

#[test]
fn every_page_has_one_heading_of_the_first_rank_and_ids_that_are_unique() {
    for (name, html) in all("") {
        assert_eq!(html.matches("<h1").count(), 1, "{name}");
        let mut ids: Vec<_> = html
            .split(" id=\"")
            .skip(1)
            .filter_map(|rest| rest.split('"').next())
            .collect();
        let count = ids.len();
        ids.sort_unstable();
        ids.dedup();
        assert_eq!(ids.len(), count, "{name}");
        assert!(html.contains("lang=\"en\""), "{name}");
    }
}

#[test]
fn an_inbox_is_complete_empty_with_one_and_with_many() {
    assert!(inbox_page(0, "").contains("No open incidents."));
    let one = inbox_page(1, "");
    assert_eq!(one.matches("class=\"row\"").count(), 1);
    let many = inbox_page(50, "");
    assert_eq!(many.matches("class=\"row\"").count(), 50);
    assert!(many.contains("/incidents?before=cursor"));
}

#[test]
fn a_citation_leads_to_the_line_that_it_names() {
    let html = incident_page("");
    assert!(html.contains("href=\"#E1-L2\""));
    assert!(html.contains("id=\"E1-L2\""));
}

/// console 6.5: none folded or cut.
#[test]
fn the_approval_page_shows_every_parameter_whole() {
    let long = "x".repeat(600);
    let html = approval_page("pending", &long, None);
    assert!(html.contains(&format!("1.7.2{long}")));
    assert!(html.contains(&format!("d-118{long}")));
    for field in ["digest", "decision_nonce", "target", "totp", "reason"] {
        assert!(html.contains(&format!("name=\"{field}\"")), "{field}");
    }
}

/// What a row of a list of facts says, without its tags.
fn row<'a>(html: &'a str, name: &str) -> &'a str {
    let rest = html.split(&format!("<dt>{name}</dt>")).nth(1);
    let row = rest.unwrap_or_else(|| panic!("there is no row {name}"));
    row.split("</dd>").next().unwrap()
}

/// console 6.5
#[test]
fn the_approval_page_says_who_performs_it_for_how_long_and_who_may_notice() {
    let html = approval_page("pending", "", None);
    assert!(row(&html, "Done by").contains("rollback-checkout"));
    assert!(row(&html, "Time limit").contains("120 s from its start"));
    assert!(row(&html, "Blast radius").contains("Runs as checkout-1, checkout-2."));
    assert!(row(&html, "Blast radius").contains("by web."));
    let mut bare = fixtures::action("act_1", "pending", "");
    bare.context = ActionContext::default();
    let html = approval_of(&bare, "", None, None);
    assert!(row(&html, "Done by").contains("no executor of this site"));
    assert!(row(&html, "Time limit").contains("the policy does not know"));
    assert!(row(&html, "Blast radius").contains("not known"));
}

#[test]
fn the_approval_page_leads_to_the_evidence_for_and_against_it() {
    let mut action = fixtures::action("act_1", "pending", "");
    if let Some(ground) = &mut action.context.ground {
        ground.refuting = vec![crate::console::view::Cite {
            evidence: 7,
            line: Some(3),
        }];
    }
    let html = approval_of(&action, "", None, None);
    let why = row(&html, "Why");
    assert!(why.contains("The failing frame is in a line that the deploy changed."));
    assert!(why.contains("href=\"/incidents/inc_aaaaaaaaaaaaaaaa#E1-L2\""));
    assert!(
        why.contains("Against: <a class=\"cite\" href=\"/incidents/inc_aaaaaaaaaaaaaaaa#E7-L3\"")
    );
    assert!(why.contains(
        "The proposal cites: <a class=\"cite\" href=\"/incidents/inc_aaaaaaaaaaaaaaaa#E2-L1\""
    ));
}

#[test]
fn the_approval_page_shows_the_dry_run_with_what_restarts_and_the_way_back() {
    let html = approval_page("pending", "", None);
    let dry_run = row(&html, "Dry run");
    for words in [
        "<bdi>1.8.0</bdi>",
        "<bdi>1.7.2</bdi>",
        "the supervisor restarts it",
        "The way back: <bdi>Roll back checkout from 1.7.2 to 1.8.0</bdi>",
    ] {
        assert!(dry_run.contains(words), "{words} in {dry_run}");
    }
}

#[test]
fn a_dry_run_that_failed_is_shown_as_such_and_hides_nothing() {
    let html = approval_unseen("");
    let dry_run = row(&html, "Dry run");
    assert!(dry_run.contains("state bad") && dry_run.contains("failed"));
    assert!(dry_run.contains("but `1.9.0` is there"));
    assert!(dry_run.contains("changed_since"));
    let whole = approval_page("pending", "", None);
    for name in [
        "Target",
        "Blast radius",
        "Preconditions",
        "Why",
        "To undo it",
        "Done by",
        "Digest",
    ] {
        assert_eq!(row(&html, name), row(&whole, name), "{name}");
    }
    assert!(html.contains("name=\"totp\"") && html.contains("Approve exactly this"));
}

#[test]
fn a_refusal_says_where_the_action_stands_in_a_sentence() {
    let refused = Outcome {
        verb: Verb::Approve,
        problem: Some(Problem::new("evidence_invalid", "the code is wrong")),
        kept: Kept::default(),
    };
    let html = approval_page("pending", "", Some(&refused));
    assert!(html.contains("<p>No decision of yours was recorded by this.</p>"));
    assert!(html.contains("Nothing has been done yet. It waits for a decision until 2026-"));
    assert!(!html.contains("The action is "));
}

/// The notice stays as it was while the state on the page goes on.
#[test]
fn the_notice_after_a_decision_does_not_say_where_the_action_stands() {
    let approved = Outcome {
        verb: Verb::Approve,
        problem: None,
        kept: Kept::default(),
    };
    let html = approval_page("approved", "", Some(&approved));
    let notice = html.split("notice-title").nth(2).unwrap();
    let notice = notice.split("</section>").next().unwrap();
    assert!(!notice.contains("not started"), "{notice}");
    assert!(html.contains("See what became of it"));
    assert!(!html.contains("Before you decide"));
}

#[test]
fn a_probe_that_measured_no_recovery_is_no_success() {
    let steps = |recovered| {
        let mut action = fixtures::action("act_1", "succeeded", "");
        action.context.recovery = Some("38.0 % before, 37.0 % now.".to_owned());
        action.context.recovered = recovered;
        action::steps(&action).pop().unwrap()
    };
    assert_eq!(steps(Some(true)).tone, "ok");
    assert_eq!(steps(Some(false)).tone, "bad");
    assert_eq!(steps(None).tone, "warn");
}

#[test]
fn an_action_that_is_not_pending_offers_no_form() {
    for state in [
        "approved",
        "spent",
        "succeeded",
        "failed",
        "in_doubt",
        "denied",
        "expired",
    ] {
        let html = approval_page(state, "", None);
        assert!(!html.contains("/approve\""), "{state}");
        assert!(!html.contains("name=\"totp\""), "{state}");
    }
}

/// console 1.5, guard 3.2
#[test]
fn the_notice_says_what_is_recorded_and_never_what_was_asked() {
    let asked = Outcome {
        verb: Verb::Approve,
        problem: None,
        kept: Kept::default(),
    };
    for state in ["expired", "denied", "revoked", "superseded"] {
        let html = approval_page(state, "", Some(&asked));
        assert!(!html.contains("Approval recorded"), "{state}");
        assert!(html.contains("The record says something else"), "{state}");
    }
    let refused = Outcome {
        problem: Some(Problem::new("evidence_invalid", "the code is wrong")),
        ..asked
    };
    let html = approval_page("pending", "", Some(&refused));
    assert!(html.contains("No decision of yours was recorded by this."));
    assert!(html.contains("the code is wrong"));
}

#[test]
fn the_pages_read_as_kept() {
    for (name, html) in [
        ("inbox", inbox_page(1, "")),
        ("inbox_empty", inbox_page(0, "")),
        ("incident", incident_page("")),
        ("approval", approval_page("pending", "", None)),
        ("action_in_doubt", action_page("in_doubt", "")),
        ("login", login_page("")),
    ] {
        // The folder of embedded files is named after their content, which is no page's matter.
        let folder = crate::console::assets::address("");
        insta::assert_snapshot!(name, html.replace(&folder, "/static/VERSION/"));
    }
}
