//! Planted values in every encoding and every framing (guardrails 13.3): none is left.

use super::generate::{FRAMES, Frame, KINDS, Planted, Rng, VIEWS, View, plant};
use super::testing::key;
use super::{Redactor, redact};

/// Six letters in a row of the secret part are a leak, except what the surroundings say themselves.
fn leaks(planted: &Planted, out: &str) -> bool {
    let around = format!("{}{}", planted.before, planted.after);
    let secret: Vec<char> = planted.secret.chars().collect();
    secret.windows(6).any(|six| {
        let six: String = six.iter().collect();
        !six.contains('\n') && out.contains(&six) && !around.contains(&six)
    })
}

/// The same in what the output decodes to: the view of the whole value is gone.
fn shows(planted: &Planted, encoded: &str, out: &str) -> bool {
    leaks(planted, out)
        || encoded
            .lines()
            .any(|line| line.len() > 12 && out.contains(line))
}

fn report_misses(misses: &[String], all: usize) {
    assert!(
        misses.is_empty(),
        "{} of {all}:\n{}",
        misses.len(),
        misses
            .iter()
            .take(40)
            .cloned()
            .collect::<Vec<_>>()
            .join("\n")
    );
}

/// Values with a meaning of their own, which an encoding can hold alone; the others need their key.
fn encode(planted: &Planted, view: &View, rng: &mut Rng) -> String {
    match planted.kind {
        "auth" | "cookie" | "urlcred" | "secret" => view.encode(&planted.line(), rng),
        _ if planted.before.len() > 12 => view.encode(&planted.line(), rng),
        _ => view.encode(&planted.value, rng),
    }
}

#[test]
fn r2_2_no_planted_value_is_left_in_any_view() {
    let mut rng = Rng::new(21);
    let (mut misses, mut all) = (Vec::new(), 0);
    for view in VIEWS {
        for kind in KINDS {
            let planted = plant(kind, &mut rng);
            let encoded = encode(&planted, view, &mut rng);
            let text = format!("see {encoded} now");
            let (out, _) = redact(&text, &key());
            all += 1;
            if shows(&planted, &encoded, &out) {
                misses.push(format!("{kind} {}: {text} -> {out}", view.name));
            }
        }
    }
    report_misses(&misses, all);
}

fn framed(frame: &Frame, rounds: usize, seed: u64) {
    let mut rng = Rng::new(seed);
    let (mut misses, mut all) = (Vec::new(), 0);
    for kind in KINDS {
        for _ in 0..rounds {
            let planted = plant(kind, &mut rng);
            let text = frame.wrap(&format!("got {} ok", planted.line()), &mut rng);
            let (out, _) = redact(&text, &key());
            all += 1;
            let left = leaks(&planted, &out);
            if left || out.lines().count() != text.lines().count() {
                misses.push(format!("{kind} {}:\n{text}->\n{out}", frame.name));
            }
        }
    }
    report_misses(&misses, all);
}

#[test]
fn r2_1_2_no_planted_value_is_left_in_any_framing() {
    for frame in FRAMES.iter().filter(|f| !f.cuts) {
        framed(frame, 3, 22);
    }
}

#[test]
fn r2_1_3_no_planted_value_is_left_where_the_collector_cut_it() {
    for frame in FRAMES.iter().filter(|f| f.cuts) {
        framed(frame, 3, 23);
    }
}

#[test]
fn r2_2_1_no_planted_value_is_left_in_views_inside_framings() {
    let mut rng = Rng::new(24);
    let (mut misses, mut all) = (Vec::new(), 0);
    for view in VIEWS {
        for frame in FRAMES {
            for _ in 0..2 {
                let planted = plant(KINDS[rng.below(KINDS.len())], &mut rng);
                let encoded = encode(&planted, view, &mut rng);
                let text = frame.wrap(&format!("see {encoded} now"), &mut rng);
                let (out, _) = redact(&text, &key());
                all += 1;
                if shows(&planted, &encoded, &out) {
                    misses.push(format!(
                        "{} {} {}:\n{text}->\n{out}",
                        planted.kind, view.name, frame.name
                    ));
                }
            }
        }
    }
    report_misses(&misses, all);
}

#[test]
fn r2_1_5_the_output_is_the_same_for_every_split() {
    let mut rng = Rng::new(25);
    for frame in FRAMES {
        let planted = plant(KINDS[rng.below(KINDS.len())], &mut rng);
        let mut text = String::from("first line\n");
        text.push_str(&frame.wrap(&planted.line(), &mut rng));
        text.push_str("caf\u{e9} \u{1f600} last");
        let bytes = text.as_bytes();
        let (whole, _) = redact(&text, &key());
        let step = (bytes.len() / 200).max(1);
        for cut in (0..bytes.len()).step_by(step) {
            let mut stream = Redactor::new(&key());
            let mut out = stream.push(&bytes[..cut]);
            out.extend(stream.push(&bytes[cut..]));
            out.extend(stream.finish().0);
            assert_eq!(
                String::from_utf8(out).unwrap(),
                whole,
                "{} at {cut}",
                frame.name
            );
        }
    }
}
