//! Planted values in every encoding and framing: what of them is left (guardrails 13.2).

use std::collections::BTreeMap;

use policies::redaction::generate::{FRAMES, Frame, KINDS, Planted, Rng, VIEWS, View, plant};
use policies::redaction::{Redactor, redact};
use serde::Serialize;

use super::{Gate, key};

/// Characters of a secret part that nothing may show in a row (guardrails 13.2).
const WINDOW: usize = 6;
/// Characters of an encoded run that nothing may show in a row: more than a label and less than
/// what encodes six characters of a value.
const RUN: usize = 16;

/// What was left.
#[derive(Debug, Default, Serialize)]
pub struct Leaks {
    /// Values planted.
    pub planted: usize,
    /// Values of which something was left.
    pub leaked: usize,
    /// Values in one encoding and one framing, drawn at random.
    pub compositions: usize,
    /// Those of which something was left.
    pub compositions_leaked: usize,
    /// Splits of a stream that were compared with the whole.
    pub splits: usize,
    /// Those that differed.
    pub split_differences: usize,
    /// Leaked and planted by kind and way.
    pub table: BTreeMap<String, BTreeMap<String, (usize, usize)>>,
    /// The first leaks, as the seed that draws them again.
    pub first: Vec<String>,
}

impl Leaks {
    pub(super) fn gates(&self) -> Vec<Gate> {
        vec![
            Gate {
                goal: "leaks, each view and framing alone",
                bound: "0 of at least 10,000",
                measured: format!("{} of {}", self.leaked, self.planted),
                met: self.leaked == 0 && self.planted >= 10_000,
            },
            Gate {
                goal: "leaks, views and framings composed",
                bound: "0 of at least 50,000",
                measured: format!("{} of {}", self.compositions_leaked, self.compositions),
                met: self.compositions_leaked == 0 && self.compositions >= 50_000,
            },
            Gate {
                goal: "chunk invariance",
                bound: "0 differences in 1,000,000 splits",
                measured: format!("{} of {}", self.split_differences, self.splits),
                met: self.split_differences == 0 && self.splits >= 1_000_000,
            },
        ]
    }

    fn count(&mut self, kind: &str, way: &str, leak: bool, seed: u64) {
        let cell = self.table.entry(kind.to_owned()).or_default();
        let (leaked, all) = cell.entry(way.to_owned()).or_default();
        *all += 1;
        *leaked += usize::from(leak);
        if leak && self.first.len() < 40 {
            self.first.push(format!("{kind} {way} seed {seed}"));
        }
    }
}

pub(super) fn measure(scale: usize) -> Leaks {
    let mut leaks = Leaks::default();
    for kind in KINDS {
        for view in VIEWS {
            for n in 0..scale.div_ceil(10) {
                let seed = seed(&[kind, view.name], n);
                let leak = one(kind, Some(view), None, seed);
                leaks.planted += 1;
                leaks.leaked += usize::from(leak);
                leaks.count(kind, view.class, leak, seed);
            }
        }
        for frame in FRAMES {
            for n in 0..scale.div_ceil(5) {
                let seed = seed(&[kind, frame.name], n);
                let leak = one(kind, None, Some(frame), seed);
                leaks.planted += 1;
                leaks.leaked += usize::from(leak);
                leaks.count(kind, frame.name, leak, seed);
            }
        }
    }
    for n in 0..scale * 500 {
        let mut rng = Rng::new(seed(&["compose"], n));
        let kind = rng.pick(KINDS);
        let (view, frame) = (rng.below(VIEWS.len()), rng.below(FRAMES.len()));
        let seed = rng.bits();
        let leak = one(kind, VIEWS.get(view), FRAMES.get(frame), seed);
        leaks.compositions += 1;
        leaks.compositions_leaked += usize::from(leak);
        leaks.count(kind, "composed", leak, seed);
    }
    splits(scale, &mut leaks);
    leaks
}

/// A seed that names what it draws, so that adding a kind moves no other draw.
fn seed(names: &[&str], n: usize) -> u64 {
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    let text = names.join("/");
    for byte in text.bytes().chain(n.to_le_bytes()) {
        hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    }
    hash
}

/// True when something of the value is left.
fn one(kind: &str, view: Option<&View>, frame: Option<&Frame>, seed: u64) -> bool {
    let mut rng = Rng::new(seed);
    let planted = plant(kind, &mut rng);
    let (text, encoded) = match view {
        None => (planted.line(), String::new()),
        Some(view) if needs_its_key(kind) => {
            let encoded = view.encode(&planted.line(), &mut rng);
            (format!("got {encoded} end"), encoded)
        }
        Some(view) => {
            let encoded = view.encode(&planted.value, &mut rng);
            let text = format!("{}{encoded}{}", planted.before, planted.after);
            (text, encoded)
        }
    };
    let text = match frame {
        Some(frame) => frame.wrap(&text, &mut rng),
        None => text + "\n",
    };
    let (out, _) = redact(&text, &key());
    left(&planted, view, &encoded, &text, &out)
}

/// Kinds that are what they are by the key or scheme before them.
fn needs_its_key(kind: &str) -> bool {
    matches!(kind, "auth" | "cookie" | "urlcred" | "secret")
}

fn left(planted: &Planted, view: Option<&View>, encoded: &str, text: &str, out: &str) -> bool {
    let plain = normal(out);
    // Digits of a time stamp may look like a piece of a number: only what the value brought counts.
    let around = normal(&text.replace(encoded, "").replace(&planted.value, ""));
    let secret = windows(&planted.secret, WINDOW);
    let values = windows(&planted.value, WINDOW);
    let of_value = |w: &&String| {
        secret
            .iter()
            .any(|s| digits_and_letters(w).contains(s.as_str()))
    };
    let shown = secret
        .iter()
        .chain(values.iter().filter(of_value))
        .any(|w| plain.contains(w.as_str()) && !around.contains(w.as_str()));
    if shown {
        return true;
    }
    let Some(view) = view else { return false };
    let run = match view.class {
        "V1" | "V2" | "V3" => {
            let mut rng = Rng::new(0);
            return secret
                .iter()
                .map(|w| view.encode(w, &mut rng))
                .any(|w| out.contains(&w));
        }
        "V4" | "V5" => RUN,
        _ => return false,
    };
    windows(encoded, run)
        .iter()
        .any(|w| out.contains(w.as_str()))
}

fn digits_and_letters(text: &str) -> String {
    text.chars().filter(char::is_ascii_alphanumeric).collect()
}

/// Without what cannot be seen, and with ASCII for what looks like it.
fn normal(text: &str) -> String {
    text.chars()
        .filter_map(|c| {
            let n = u32::from(c);
            let at = |zero: u32, first: u8| char::from_u32(n - zero + u32::from(first));
            match n {
                0xad | 0x200b..=0x200f | 0x2060..=0x206f | 0xfe00..=0xfe0f | 0xfeff => None,
                0xe0020..=0xe007e => at(0xe0020, b' '),
                0xff01..=0xff5e => at(0xff01, b'!'),
                0x1d400..=0x1d419 => at(0x1d400, b'A'),
                0x1d41a..=0x1d433 => at(0x1d41a, b'a'),
                0x1d7ce..=0x1d7d7 => at(0x1d7ce, b'0'),
                _ => Some(latin(c)),
            }
        })
        .collect()
}

const fn latin(c: char) -> char {
    match c {
        'а' => 'a',
        'с' => 'c',
        'е' => 'e',
        'о' => 'o',
        'р' => 'p',
        'х' => 'x',
        'у' => 'y',
        'А' => 'A',
        'В' => 'B',
        'Е' => 'E',
        'Н' => 'H',
        'К' => 'K',
        'М' => 'M',
        'О' => 'O',
        'Р' => 'P',
        'Т' => 'T',
        'Х' => 'X',
        other => other,
    }
}

/// Every run of `size` characters; the whole text when it is shorter.
fn windows(text: &str, size: usize) -> Vec<String> {
    let letters: Vec<char> = text.chars().filter(|c| *c != '\n').collect();
    if letters.len() <= size {
        return vec![letters.into_iter().collect()];
    }
    letters.windows(size).map(|w| w.iter().collect()).collect()
}

/// Streams cut at every byte, and at five random bytes.
fn splits(scale: usize, leaks: &mut Leaks) {
    let mut n = 0;
    while leaks.splits < scale * scale * 100 {
        let mut rng = Rng::new(seed(&["split"], n));
        n += 1;
        let mut text = String::new();
        for _ in 0..4 {
            let planted = plant(rng.pick(KINDS), &mut rng);
            let line = match VIEWS.get(rng.below(VIEWS.len() * 2)) {
                Some(view) => view.encode(&planted.line(), &mut rng),
                None => planted.line(),
            };
            if let Some(frame) = FRAMES.get(rng.below(FRAMES.len())) {
                text.push_str(&frame.wrap(&line, &mut rng));
            }
        }
        let (whole, _) = redact(&text, &key());
        for at in 0..text.len() {
            compare(&text, &[at], &whole, leaks);
        }
        for _ in 0..text.len() / 4 {
            let mut cuts: Vec<usize> = (0..5).map(|_| rng.below(text.len())).collect();
            cuts.sort_unstable();
            compare(&text, &cuts, &whole, leaks);
        }
    }
}

fn compare(text: &str, cuts: &[usize], whole: &str, leaks: &mut Leaks) {
    let mut redactor = Redactor::new(&key());
    let (mut out, mut from) = (Vec::new(), 0);
    for to in cuts.iter().copied().chain([text.len()]) {
        out.extend(redactor.push(text.as_bytes().get(from..to).unwrap_or_default()));
        from = to;
    }
    out.extend(redactor.finish().0);
    leaks.splits += 1;
    leaks.split_differences += usize::from(out != whole.as_bytes());
}

#[cfg(test)]
mod tests {
    use policies::redaction::generate::{Rng, VIEWS, plant};

    use super::left;

    #[test]
    fn what_is_left_of_a_value_is_seen_plain_encoded_and_disguised() {
        let mut rng = Rng::new(5);
        let planted = plant("key.github", &mut rng);
        let line = planted.line();
        assert!(left(&planted, None, "", &line, &line));
        assert!(!left(&planted, None, "", &line, "using (gone) done"));
        let cut = format!("using {} done", &planted.value[10..]);
        assert!(left(&planted, None, "", &line, &cut));
        for view in VIEWS {
            let encoded = view.encode(&planted.value, &mut rng);
            let text = format!("using {encoded} done");
            assert!(
                left(&planted, Some(view), &encoded, &text, &text),
                "{}",
                view.name
            );
            assert!(!left(
                &planted,
                Some(view),
                &encoded,
                &text,
                "using (gone) done"
            ));
        }
    }
}
