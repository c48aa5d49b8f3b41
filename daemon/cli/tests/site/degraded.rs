//! Without its model, or with one that dies, an incident ends by the rules and says why.

use crate::support::{Site, Wishes, model, wait_for};

/// Leads an incident to its end; says why the postmortem has no word of a model.
fn ends_by_rules(model: String, flags: &[&str]) -> String {
    let wishes = Wishes {
        model,
        ..Wishes::default()
    };
    let mut site = Site::new(&wishes);
    site.start(flags);
    site.hire();
    let body = site.alert().to_string();
    assert_eq!(site.post(body.as_bytes()).unwrap().status, 202);
    let action = wait_for("the proposal", || site.pending());
    assert!(site.approve(&action, "ann").status.success());
    wait_for("the end", || {
        (site.incident()["phase"] == "closed").then_some(())
    });
    let incident = site.incident();
    assert_eq!(incident["outcome"], "recovered", "{incident:#}");
    assert_eq!(incident["cause_class"], "resource_exhaustion");
    let id = incident["id"].as_str().unwrap();
    let postmortem = site.postmortem(id);
    let markdown = postmortem["markdown"].as_str().unwrap();
    assert!(markdown.contains("Diagnosed by rules; the model was not available: "));
    let why = &postmortem["json"]["model"]["unavailable"];
    why.as_str().unwrap().to_owned()
}

#[test]
fn a_model_file_that_is_not_there_costs_the_explanation_alone() {
    let section = model::of("/nowhere/model.gguf", &"0".repeat(64));
    assert_eq!(ends_by_rules(section, &[]), "model_missing");
}

#[test]
fn a_model_file_with_another_digest_is_never_loaded() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("model.gguf");
    std::fs::write(&file, b"GGUF, but not the one that was meant").unwrap();
    let section = model::of(&file.display().to_string(), &"0".repeat(64));
    assert_eq!(ends_by_rules(section, &[]), "model_corrupt");
}

#[test]
fn an_engine_that_crashes_in_the_middle_of_an_answer_costs_one_step() {
    let Some(section) = model::section() else {
        return;
    };
    let flags = ["--engine-fault", "crash-mid-decode"];
    assert_eq!(ends_by_rules(section, &flags), "engine_crashed");
}
