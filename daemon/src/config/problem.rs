//! What is wrong with a configuration, said so that it can be mended without a second try.

use std::fmt;

/// How bad a problem is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Level {
    /// The configuration is refused.
    Error,
    /// It is taken, but probably not what was meant.
    Warning,
}

/// One problem with its place.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Problem {
    /// Error or warning.
    pub level: Level,
    /// Code of an offline page, for example `SN-0102`.
    pub code: &'static str,
    /// File it is in.
    pub file: String,
    /// Line, counted from 1; 0 when the whole file is meant.
    pub line: usize,
    /// Column in characters, counted from 1; 0 when the whole file is meant.
    pub column: usize,
    /// One sentence, lower case.
    pub message: String,
    /// The source line; empty when there is none.
    pub source_line: String,
    /// Number of characters to underline.
    pub width: usize,
    /// What to do, empty when the message says it.
    pub help: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let level = match self.level {
            Level::Error => "error",
            Level::Warning => "warning",
        };
        if self.line == 0 {
            write!(f, "{}: {level}[{}]: {}", self.file, self.code, self.message)?;
        } else {
            write!(
                f,
                "{}:{}:{}: {level}[{}]: {}",
                self.file, self.line, self.column, self.code, self.message
            )?;
        }
        if !self.source_line.is_empty() {
            let gutter = format!("{:>5} | ", self.line);
            let pad: String = " ".repeat(self.column.saturating_sub(1));
            write!(
                f,
                "\n{gutter}{}\n      | {pad}{}",
                self.source_line,
                "^".repeat(self.width.max(1))
            )?;
            if !self.help.is_empty() {
                write!(f, " {}", self.help)?;
            }
        } else if !self.help.is_empty() {
            write!(f, "\n      = {}", self.help)?;
        }
        Ok(())
    }
}
