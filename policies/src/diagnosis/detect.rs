//! Change points (D4): a robust band from the beginning of a series, and the first lasting departure.

use crate::model::Millis;

/// Fewest points that a band is made from.
const BASELINE_MIN: usize = 5;
/// Most points that a band is made from.
const BASELINE_MAX: usize = 60;
/// How many spreads outside the middle a point must lie.
const DEPARTURE: f64 = 6.0;
/// How many points decide together.
const VOTE: usize = 5;
/// How many points inside, at the end of the record, end a departure.
const QUIET: usize = 3;
/// A gap of so many points and so long is a recovery: what follows it is another fault.
const RECOVERY: usize = 10;
const RECOVERY_MS: i64 = 60_000;
/// Turns a median absolute deviation into a standard deviation.
const MAD_SCALE: f64 = 1.4826;

/// One departure from the band.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Change {
    /// First point outside.
    pub(super) at: Millis,
    /// First point inside again; `None` while it lasts.
    pub(super) over: Option<Millis>,
    /// Middle of the band.
    pub(super) before: f64,
    /// Middle of the points outside.
    pub(super) after: f64,
    /// Distance in spreads.
    pub(super) z: f64,
    /// How many of the newest points lie inside again.
    pub(super) quiet: usize,
}

impl Change {
    /// True while the series has not come back.
    pub(super) const fn lasts(&self) -> bool {
        self.over.is_none()
    }

    /// True when the value rose.
    pub(super) fn rose(&self) -> bool {
        self.after > self.before
    }
}

/// What is known about a series.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Shape {
    /// Too few points to say anything.
    NoBaseline,
    /// Inside its band but for this many single points.
    Steady(usize),
    /// Left its band; the last departure counts.
    Changed(Change),
}

impl Shape {
    /// The departure, if there is one.
    pub(super) const fn change(&self) -> Option<&Change> {
        match self {
            Self::Changed(change) => Some(change),
            Self::NoBaseline | Self::Steady(_) => None,
        }
    }
}

/// The middle value; zero for none.
pub(super) fn median(values: &[f64]) -> f64 {
    quantile(values, 1, 2)
}

/// The value below which `num/den` of all lie; zero for none.
pub(super) fn quantile(values: &[f64], num: usize, den: usize) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let at = sorted
        .len()
        .saturating_mul(num)
        .checked_div(den)
        .unwrap_or(0);
    let at = at.min(sorted.len().saturating_sub(1));
    sorted.get(at).copied().unwrap_or(0.0)
}

/// Looks for departures of a value that is better the lower it is. `floor` is the smallest spread that
/// means anything for this kind of value. A record that begins in an earlier fault is read again from
/// its recovery on: measured by that fault, a later one would look like the ordinary.
pub(super) fn detect(points: &[(Millis, f64)], floor: f64) -> Shape {
    let shape = departure(points, floor);
    let Some(change) = shape.change() else {
        return shape;
    };
    let rest = points.partition_point(|p| p.0 < change.at);
    let rest = points.get(rest..).unwrap_or_default();
    let fell = rest.first().is_some_and(|p| p.1 < change.before);
    match departure(rest, floor) {
        Shape::Changed(later)
            if fell && later.rose() && later.at.since(change.at) >= RECOVERY_MS =>
        {
            Shape::Changed(later)
        }
        Shape::Changed(_) | Shape::Steady(_) | Shape::NoBaseline => shape,
    }
}

fn departure(points: &[(Millis, f64)], floor: f64) -> Shape {
    let wanted = (points.len() / 6).clamp(BASELINE_MIN, BASELINE_MAX);
    if points.len() < BASELINE_MIN + 3 {
        return Shape::NoBaseline;
    }
    let base: Vec<f64> = points.iter().take(wanted).map(|p| p.1).collect();
    let middle = median(&base);
    let off: Vec<f64> = base.iter().map(|v| (v - middle).abs()).collect();
    let spread = (median(&off) * MAD_SCALE)
        .max(floor)
        .max(middle.abs() * 0.05);
    let outside: Vec<bool> = points
        .iter()
        .map(|p| (p.1 - middle).abs() > DEPARTURE * spread)
        .collect();
    let spans = spans(&outside, wanted);
    let strays = outside.iter().filter(|o| **o).count();
    let Some(&(first, end)) = merge(points, &spans).last() else {
        return Shape::Steady(strays);
    };
    let out: Vec<f64> = points
        .iter()
        .zip(&outside)
        .take(end.unwrap_or(points.len()))
        .skip(first)
        .filter(|(_, outside)| **outside)
        .map(|(p, _)| p.1)
        .collect();
    let after = median(&out);
    let at = |i: usize| points.get(i).map(|p| p.0);
    let Some(begin) = at(first) else {
        return Shape::Steady(strays);
    };
    Shape::Changed(Change {
        at: begin,
        over: end.and_then(at),
        before: middle,
        after,
        z: (after - middle).abs() / spread,
        quiet: outside.iter().rev().take_while(|o| !**o).count(),
    })
}

/// Stretches of points outside: first point, and first point of the quiet that ended it.
fn spans(outside: &[bool], from: usize) -> Vec<(usize, Option<usize>)> {
    let votes = |i: usize| outside.iter().skip(i).take(VOTE).filter(|o| **o).count();
    let is_out = |i: usize| outside.get(i).copied().unwrap_or(false);
    let mut found = Vec::new();
    let mut begun: Option<usize> = None;
    for i in from..outside.len() {
        match begun {
            None if is_out(i) && votes(i) >= 3 => begun = Some(i),
            Some(first) => {
                // At the end of the record three points inside without any other are enough.
                let left = outside.len().saturating_sub(i);
                let quiet = (left >= VOTE - 1 && votes(i) <= 1) || (left >= QUIET && votes(i) == 0);
                if !is_out(i) && quiet {
                    found.push((first, Some(i)));
                    begun = None;
                }
            }
            None => {}
        }
    }
    found.extend(begun.map(|first| (first, None)));
    found
}

/// Joins stretches whose gap is no longer than the longer of them: a signal that flaps is one change.
/// A signal that recovered in between is two.
fn merge(
    points: &[(Millis, f64)],
    spans: &[(usize, Option<usize>)],
) -> Vec<(usize, Option<usize>)> {
    let mut merged: Vec<(usize, Option<usize>)> = Vec::new();
    for &(first, end) in spans {
        if let Some((begin, Some(quiet))) = merged.last().copied() {
            let long = quiet
                .saturating_sub(begin)
                .max(end.map_or(0, |e| e.saturating_sub(first)));
            if first.saturating_sub(quiet) <= long && !recovered(points, quiet, first) {
                merged.pop();
                merged.push((begin, end));
                continue;
            }
        }
        merged.push((first, end));
    }
    merged
}

/// True when the points from `begin` to before `end` are enough for a recovery.
fn recovered(points: &[(Millis, f64)], begin: usize, end: usize) -> bool {
    let lasted = match (points.get(begin), points.get(end)) {
        (Some(begin), Some(end)) => end.0.since(begin.0),
        (None, _) | (_, None) => 0,
    };
    end.saturating_sub(begin) >= RECOVERY && lasted >= RECOVERY_MS
}

#[cfg(test)]
mod tests {
    use super::{Shape, detect};
    use crate::model::Millis;

    fn at(values: &[f64]) -> Vec<(Millis, f64)> {
        let times = (0..).map(|i| Millis(i * 1_000));
        times.zip(values.iter().copied()).collect()
    }

    fn shape(values: &[f64]) -> Shape {
        detect(&at(values), 0.01)
    }

    #[test]
    fn a_level_shift_is_dated_at_its_first_point() {
        let values: Vec<f64> = (0..60).map(|i| if i < 40 { 0.0 } else { 0.4 }).collect();
        let found = shape(&values);
        let change = found.change().unwrap();
        assert_eq!((change.at, change.over), (Millis(40_000), None));
        assert!(change.rose());
    }

    #[test]
    fn a_noisy_shift_is_one_change() {
        let noisy = |i: i64| if i % 3 == 0 { 0.0 } else { 0.3 };
        let values: Vec<f64> = (0..60)
            .map(|i| if i < 31 { 0.0 } else { noisy(i) })
            .collect();
        let found = shape(&values);
        let change = found.change().unwrap();
        assert_eq!(change.at, Millis(31_000));
        assert!(change.lasts());
    }

    #[test]
    fn a_burst_that_is_over_does_not_last() {
        let values: Vec<f64> = (0..60)
            .map(|i| if (30..38).contains(&i) { 0.5 } else { 0.0 })
            .collect();
        let found = shape(&values);
        let change = found.change().unwrap();
        assert_eq!(
            (change.at, change.over),
            (Millis(30_000), Some(Millis(38_000)))
        );
    }

    #[test]
    fn a_fault_after_a_recovery_is_a_change_of_its_own() {
        let twice = |gap: i64| -> Vec<f64> {
            let bad = |i: i64| (60..160).contains(&i) || i >= 160 + gap;
            (0..300).map(|i| if bad(i) { 0.4 } else { 0.0 }).collect()
        };
        let flaps = shape(&twice(40));
        assert_eq!(flaps.change().unwrap().at, Millis(60_000));
        let recovers = shape(&twice(60));
        assert_eq!(recovers.change().unwrap().at, Millis(220_000));
        assert!(recovers.change().unwrap().lasts());
    }

    #[test]
    fn a_record_that_begins_in_an_earlier_fault_shows_the_later_one() {
        for (level, again) in [(0.4, 200), (0.8, 200), (0.8, 160)] {
            let values: Vec<f64> = (0..300)
                .map(|i| match i {
                    0..60 => 0.4,
                    _ if i < again => 0.0,
                    _ => level,
                })
                .collect();
            let found = shape(&values);
            let change = found.change().unwrap();
            assert_eq!(change.at, Millis(again * 1_000), "{level}");
            assert!(change.lasts() && change.rose(), "{level}");
        }
        let over: Vec<f64> = (0..300).map(|i| if i < 60 { 0.4 } else { 0.0 }).collect();
        assert!(!shape(&over).change().unwrap().rose());
    }

    #[test]
    fn one_odd_point_is_no_change() {
        let values: Vec<f64> = (0..60).map(|i| if i == 30 { 0.5 } else { 0.0 }).collect();
        assert_eq!(shape(&values), Shape::Steady(1));
    }

    #[test]
    fn a_slow_ramp_is_a_lasting_change() {
        let values: Vec<f64> = (0..90).map(|i| f64::from((i - 30).max(0)) * 0.01).collect();
        assert!(shape(&values).change().unwrap().lasts());
    }

    #[test]
    fn few_points_are_no_baseline() {
        assert_eq!(shape(&[0.0, 0.0, 1.0]), Shape::NoBaseline);
        assert_eq!(shape(&[]), Shape::NoBaseline);
    }
}
