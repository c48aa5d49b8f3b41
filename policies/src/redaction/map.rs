//! Decoded texts and where each part of them came from.
//!
//! A view is a row of segments. A copied segment maps byte for byte; a decoded segment maps as a
//! whole, so a find that touches it covers everything it was decoded from.

/// A part of a view.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Segment {
    /// Where it begins in the view.
    at: usize,
    /// What it came from.
    from: usize,
    to: usize,
    /// Byte for byte.
    copy: bool,
}

/// A decoded text with its way back. Offsets grow together on both sides.
#[derive(Debug, Default)]
pub(super) struct View {
    pub(super) text: String,
    segments: Vec<Segment>,
}

impl View {
    pub(super) fn with_capacity(bytes: usize) -> Self {
        Self {
            text: String::with_capacity(bytes),
            segments: Vec::new(),
        }
    }

    /// A view whose whole text came from one range.
    pub(super) fn whole(text: String, from: usize, to: usize) -> Self {
        let segments = vec![Segment {
            at: 0,
            from,
            to,
            copy: false,
        }];
        Self { text, segments }
    }

    /// Appends `source[from..to]` unchanged.
    pub(super) fn copy(&mut self, source: &str, from: usize, to: usize) {
        let Some(part) = source.get(from..to).filter(|part| !part.is_empty()) else {
            return;
        };
        match self.segments.last_mut() {
            Some(last) if last.copy && last.to == from => last.to = to,
            _ => self.segments.push(Segment {
                at: self.text.len(),
                from,
                to,
                copy: true,
            }),
        }
        self.text.push_str(part);
    }

    /// Appends what `source[from..to]` stands for.
    pub(super) fn put(&mut self, decoded: &str, from: usize, to: usize) {
        if !decoded.is_empty() {
            self.segments.push(Segment {
                at: self.text.len(),
                from,
                to,
                copy: false,
            });
            self.text.push_str(decoded);
        }
    }

    /// The same for one character.
    pub(super) fn put_char(&mut self, decoded: char, from: usize, to: usize) {
        self.put(decoded.encode_utf8(&mut [0; 4]), from, to);
    }

    /// Index of the segment that holds the byte at `at`.
    fn segment_at(&self, at: usize) -> Option<usize> {
        self.segments.partition_point(|s| s.at <= at).checked_sub(1)
    }

    /// The source range of a range of the view that is not empty.
    pub(super) fn source(&self, start: usize, end: usize) -> (usize, usize) {
        let segment = |at: usize| {
            let index = self.segment_at(at)?;
            self.segments.get(index)
        };
        let first = segment(start).map_or(0, |s| {
            if s.copy {
                s.from + (start - s.at)
            } else {
                s.from
            }
        });
        let last = segment(end.saturating_sub(1)).map_or(0, |s| {
            if s.copy {
                s.from + (end - s.at).min(s.to - s.from)
            } else {
                s.to
            }
        });
        (first, last.max(first))
    }

    /// True when a range of the view holds something decoded, or the place of something left out.
    pub(super) fn is_new(&self, start: usize, end: usize) -> bool {
        let first = self.segment_at(start).unwrap_or(0);
        let last = self.segment_at(end.saturating_sub(1)).unwrap_or(0);
        first != last || self.segments.get(first).is_some_and(|s| !s.copy)
    }

    /// Parts that were decoded, with their source ranges.
    pub(super) fn decoded(&self) -> impl Iterator<Item = &str> {
        self.segments.iter().enumerate().filter_map(|(i, s)| {
            let end = self
                .segments
                .get(i + 1)
                .map_or(self.text.len(), |next| next.at);
            (!s.copy).then(|| self.text.get(s.at..end).unwrap_or(""))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::View;

    #[test]
    fn a_range_maps_to_what_it_came_from_and_to_nothing_beside_it() {
        // `a%41b\u{200b}c`
        let source = "a%41b\u{200b}c";
        let mut view = View::default();
        view.copy(source, 0, 1);
        view.put_char('A', 1, 4);
        view.copy(source, 4, 5);
        view.copy(source, 8, 9);
        assert_eq!(view.text, "aAbc");
        assert_eq!(view.source(0, 1), (0, 1));
        assert_eq!(view.source(1, 2), (1, 4));
        assert_eq!(view.source(2, 3), (4, 5));
        assert_eq!(view.source(2, 4), (4, 9));
        assert_eq!(view.source(0, 4), (0, 9));
        assert!(view.is_new(0, 2) && view.is_new(2, 4));
        assert!(!view.is_new(0, 1));
    }
}
