//! Running other programs: shown as it happens, and read at the same time.

use std::io::{BufRead, BufReader, IsTerminal, Read, Write};
use std::process::{Command, ExitStatus, Stdio};

use anyhow::{Context, Result, bail};

/// A command as a person would type it.
fn spelled(command: &Command) -> String {
    let mut text = command.get_program().to_string_lossy().into_owned();
    for arg in command.get_args() {
        text.push(' ');
        text.push_str(&arg.to_string_lossy());
    }
    text
}

/// True when the program is found and says so itself.
pub(crate) fn answers(program: &str, args: &[&str]) -> bool {
    Command::new(program)
        .args(args)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|s| s.success())
}

/// Runs a command to its end with its output on the terminal.
pub(crate) fn shown(command: &mut Command) -> Result<()> {
    let text = spelled(command);
    println!("$ {text}");
    let status = command
        .stdin(Stdio::null())
        .status()
        .with_context(|| format!("`{text}` cannot be started"))?;
    if !status.success() {
        bail!("`{text}` ended with {status}");
    }
    Ok(())
}

/// Runs a command and gives back what it wrote to its output.
pub(crate) fn read(command: &mut Command) -> Result<String> {
    let text = spelled(command);
    let output = command
        .stdin(Stdio::null())
        .stderr(Stdio::inherit())
        .output()
        .with_context(|| format!("`{text}` cannot be started"))?;
    if !output.status.success() {
        bail!("`{text}` ended with {}", output.status);
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Runs a command with its output on the terminal and gives back the same output without colours.
pub(crate) fn watched(command: &mut Command) -> Result<(ExitStatus, String)> {
    let text = spelled(command);
    println!("$ {text}");
    if std::io::stdout().is_terminal() {
        command.env("CARGO_TERM_COLOR", "always");
    }
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .with_context(|| format!("`{text}` cannot be started"))?;
    let out = child.stdout.take();
    let err = child.stderr.take();
    let copied = std::thread::scope(|scope| {
        let a = scope.spawn(|| copy(out, std::io::stdout()));
        let b = scope.spawn(|| copy(err, std::io::stderr()));
        [a.join(), b.join()]
    });
    let status = child.wait().with_context(|| format!("`{text}` was lost"))?;
    let mut all = String::new();
    for part in copied.into_iter().flatten() {
        all.push_str(&part);
    }
    Ok((status, plain(&all)))
}

fn copy(from: Option<impl Read>, mut to: impl Write) -> String {
    let mut all = String::new();
    let Some(from) = from else { return all };
    let mut from = BufReader::new(from);
    let mut line = Vec::new();
    while from.read_until(b'\n', &mut line).is_ok_and(|n| n > 0) {
        // A closed terminal must not lose the result.
        let _ = to.write_all(&line).and_then(|()| to.flush());
        all.push_str(&String::from_utf8_lossy(&line));
        line.clear();
    }
    all
}

/// The text without the escape sequences of colours.
fn plain(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        if c != '\u{1b}' {
            out.push(c);
            continue;
        }
        // `ESC [ parameters letter`: everything up to the letter belongs to the sequence.
        for c in chars.by_ref().skip(1) {
            if c.is_ascii_alphabetic() {
                break;
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::plain;

    #[test]
    fn colours_are_removed_and_text_stays() {
        assert_eq!(plain("\u{1b}[32;1m 3 passed\u{1b}[0m, ok"), " 3 passed, ok");
    }
}
