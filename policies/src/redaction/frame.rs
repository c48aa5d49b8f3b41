//! Lines become logical messages: what belongs together is scanned together.
//!
//! A line is compared with the message before it. It continues the message when that ends in
//! something open (a part that the runtime cut, a key block, a quoted or promised value, a folded
//! run of digits, an escaped line end), when the line looks like the rest of a line cut at a
//! column, or when both are frames of one stack trace. The content view of a message is its lines
//! without prefixes and envelopes, joined the way they were cut.

use super::content::{content, docker_partial};
use super::map::View;
use super::open::{Held, Open, block_or_value, column, decoded, is_trace};
use super::prefix;
use super::scan::{is_base64, run_start, slice};

/// How a line is joined to the one before it in the content view.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Join {
    /// With nothing between.
    Direct,
    /// The same, but the next line may as well be a record of its own.
    Guess,
    /// With a line end.
    Line,
    /// With a blank.
    Blank,
}

/// One line of a message; offsets are into the text of the message.
#[derive(Clone, Copy, Debug)]
pub(super) struct Part {
    /// Where the line begins.
    pub(super) start: usize,
    /// Its content, without prefix, envelope and line end.
    pub(super) from: usize,
    pub(super) to: usize,
    /// How it continues the line before.
    pub(super) join: Join,
}

/// The lines of the message that is being put together.
#[derive(Debug, Default)]
pub(super) struct Frame {
    pub(super) parts: Vec<Part>,
    open: Option<Open>,
}

impl Frame {
    /// True when every line of the message is a message of its own after all: a value that was
    /// opened was never closed.
    pub(super) fn is_broken(&self) -> bool {
        self.parts.len() > 1 && matches!(self.open, Some(Open::Quote(_)))
    }

    /// The same lines of a text in which their contents were changed.
    pub(super) fn moved(&self, text: &str) -> Self {
        let mut at = 0;
        let parts = text.split_inclusive('\n').zip(&self.parts);
        let parts = parts.map(|(line, part)| {
            let start = at;
            at += line.len();
            let content = content(line);
            Part {
                start,
                from: start + content.from,
                to: start + content.to,
                join: part.join,
            }
        });
        Self {
            parts: parts.collect(),
            open: self.open,
        }
    }

    /// True when the lines of the message cannot be judged one by one.
    pub(super) const fn is_bound(&self) -> bool {
        !matches!(self.open, Some(Open::Trace | Open::Column(_) | Open::No))
    }

    /// Forgets all lines but the last.
    pub(super) fn keep_last(&mut self) {
        if let Some(last) = self.parts.pop() {
            self.parts.clear();
            self.parts.push(Part {
                start: 0,
                from: last.from - last.start,
                to: last.to - last.start,
                join: last.join,
            });
        }
    }

    /// Begins a message with a line, which is not looked at before it has to be.
    pub(super) fn begin(&mut self) {
        self.parts.clear();
        self.open = None;
    }

    /// Looks at the first line of a message.
    pub(super) fn ensure(&mut self, text: &str) {
        if self.parts.is_empty() {
            let content = content(text);
            self.parts.push(Part {
                start: 0,
                from: content.from,
                to: content.to,
                join: Join::Direct,
            });
        }
    }

    /// True when the lines of the message were joined with line ends only, so that nothing stands
    /// in them together that does not stand in one of them.
    pub(super) fn is_apart(&self) -> bool {
        self.parts
            .iter()
            .skip(1)
            .all(|part| part.join == Join::Line)
    }

    /// True when `line` continues the message `text`. `flagged` says that an anchor was seen in the
    /// message: without one it opens neither a block nor a value.
    pub(super) fn takes(&mut self, text: &str, line: &str, flagged: bool) -> bool {
        self.ensure(text);
        let open = match self.open {
            Some(open) => open,
            None => self.opening(text, flagged),
        };
        self.open = Some(open);
        if open == Open::No {
            return false;
        }
        let last = self.parts.last().map_or(0, |part| part.start);
        let held = Held {
            last: slice(text, last, text.len()),
            lines: self.parts.len(),
        };
        let Some((part, next)) = open.continues(&held, line) else {
            return false;
        };
        self.parts.push(Part {
            start: text.len(),
            from: text.len() + part.from,
            to: text.len() + part.to,
            join: part.join,
        });
        self.open = next;
        true
    }

    /// What the message ends in, judged by its last line.
    fn opening(&mut self, text: &str, flagged: bool) -> Open {
        let Some(last) = self.parts.last() else {
            return Open::No;
        };
        let line = slice(text, last.start, text.len());
        let whole = content(line);
        if whole.prefix.partial || docker_partial(line) {
            return Open::Partial;
        }
        if flagged {
            let logical = self.logical_line(text);
            if let Some(open) = block_or_value(&decoded(&logical)) {
                return open;
            }
        }
        let Some(last) = self.parts.last_mut() else {
            return Open::No;
        };
        let body = slice(text, last.from, last.to);
        if body.ends_with('\\') && !body.ends_with("\\\\") {
            last.to -= 1;
            return Open::Escaped;
        }
        if is_trace(body) {
            return Open::Trace;
        }
        let run = body.len() - run_start(body, body.len(), body.len(), is_base64);
        let column = column(line, body, whole.prefix.stamped);
        if run >= 16 {
            return Open::Run(run, column);
        }
        column.map_or(Open::No, Open::Column)
    }

    /// The last line of the content: the parts that were joined with nothing between.
    fn logical_line(&self, text: &str) -> String {
        let direct = self
            .parts
            .iter()
            .rev()
            .take_while(|p| matches!(p.join, Join::Direct | Join::Guess))
            .count();
        // The part before a row of direct ones is what they continue.
        let first = self.parts.len().saturating_sub(direct + 1);
        let first = if self
            .parts
            .get(first)
            .is_some_and(|p| p.join == Join::Direct)
        {
            0
        } else {
            first
        };
        let parts = self.parts.iter().skip(first);
        parts.map(|p| slice(text, p.from, p.to)).collect()
    }

    /// True when a line was joined that may as well be a record of its own.
    pub(super) fn is_guessed(&self) -> bool {
        self.parts.iter().any(|part| part.join == Join::Guess)
    }

    /// The lines without prefixes and envelopes, joined the way they were cut. `None` when that is
    /// the text itself, or a line of its own behind a prefix that no collector wrote.
    pub(super) fn content_view(&self, text: &str) -> Option<View> {
        if self.parts.len() == 1 {
            let part = self.parts.first()?;
            let collected = prefix::of(text).collector;
            if !collected || part.from == 0 {
                return None;
            }
        }
        let mut view = View::with_capacity(text.len());
        let mut before: Option<&Part> = None;
        for part in &self.parts {
            if let Some(before) = before {
                match part.join {
                    Join::Direct | Join::Guess => {}
                    Join::Line => view.put("\n", before.to, part.from),
                    Join::Blank => view.put(" ", before.to, part.from),
                }
            }
            view.copy(text, part.from, part.to);
            before = Some(part);
        }
        Some(view)
    }
}

#[cfg(test)]
mod tests {
    use super::Frame;

    /// The content views of the messages of a text.
    fn messages(text: &str) -> Vec<String> {
        let mut found = Vec::new();
        let mut frame = Frame::default();
        let mut held = String::new();
        let mut close = |frame: &mut Frame, held: &mut String| {
            if !held.is_empty() {
                let view = frame
                    .content_view(held)
                    .map_or_else(|| held.clone(), |v| v.text);
                found.push(view);
            }
            held.clear();
        };
        for line in text.split_inclusive('\n') {
            if held.is_empty() || !frame.takes(&held, line, true) {
                close(&mut frame, &mut held);
                frame.begin();
                frame.ensure(line);
            }
            held.push_str(line);
        }
        close(&mut frame, &mut held);
        found
    }

    #[test]
    fn parts_that_the_runtime_cut_are_one_message() {
        let at = "2026-01-31T08:00:00.1Z stdout";
        assert_eq!(
            messages(&format!(
                "{at} P pass\n{at} P word\n{at} F =x\n{at} F other\n"
            )),
            ["password=x".to_owned(), "other".to_owned()]
        );
        let record =
            |log: &str| format!("{{\"log\":\"{log}\",\"stream\":\"stdout\",\"time\":\"t\"}}\n");
        assert_eq!(
            messages(&format!("{}{}", record("pass"), record("word=x\\n"))),
            ["password=x"]
        );
    }

    #[test]
    fn values_that_are_open_or_promised_take_the_next_lines() {
        assert_eq!(
            messages("password: \"ab\ncd\"\nnext"),
            ["password: \"ab cd\"", "next"]
        );
        assert_eq!(
            messages("password:\n  abc\nnext"),
            ["password:   abc", "next"]
        );
        assert_eq!(messages("password: |\n  abc\n  def\nnext").len(), 2);
        assert_eq!(
            messages("secret:\n  name: x\n"),
            ["secret:\n", "  name: x\n"]
        );
        assert_eq!(
            messages("curl -u user:\\\npass x\n"),
            ["curl -u user:pass x"]
        );
    }

    #[test]
    fn lines_cut_at_a_column_are_one_message() {
        let long = format!(
            "2026-01-31T08:00:00Z INFO checkout mail of {}@exa",
            "a".repeat(33)
        );
        assert!(messages(&format!("{long}\nmple.com sent\n"))[0].ends_with("@example.com sent"));
        assert_eq!(
            messages(&format!("{long}\n2026-01-31T08:00:00Z INFO x\n")).len(),
            2
        );
        let plain = "x".repeat(80);
        assert_eq!(messages(&format!("{plain}\ny z\n")).len(), 1);
        assert_eq!(messages(&format!("{plain}xx.\ny z\n")).len(), 2);
    }

    #[test]
    fn frames_of_a_trace_are_one_message() {
        let text = "java.lang.IllegalStateException: x\n\tat a.B.c(B.java:1)\n\tat a.B.d(B.java:2)\nnext\n";
        assert_eq!(messages(text).len(), 3);
    }
}
