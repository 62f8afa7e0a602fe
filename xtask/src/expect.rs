//! Compares the output of an example with the file next to it: `nested.out` belongs to `nested.rs`.
//! Called by the steps of continuous integration. By hand: `cargo run --example nested | cargo
//! xtask expect nested.out`.
//!
//! In the file, `…` stands for any non-empty text within a line, such as a time. If the first line
//! is [`ANY_ORDER`], lines may come in any order.

use std::io::Read;
use std::path::{Path, PathBuf};

use anyhow::Context;

/// The first line of a file if racing threads or tasks print the lines.
const ANY_ORDER: &str = "(in any order)";

/// Stands for any text.
const ANYTHING: char = '…';

/// Compares the standard input with the expected output of an example, and prints it.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// The expected output; `…` stands for any text within a line.
    file: PathBuf,
}

/// True if the standard input is as expected.
pub(crate) fn run(args: &Args) -> anyhow::Result<bool> {
    let mut output = String::new();
    std::io::stdin()
        .read_to_string(&mut output)
        .context("the example printed no text")?;
    print!("{output}");
    let found = difference(&read(&args.file)?, &output);
    if let Some(found) = &found {
        println!("{}: {found}", args.file.display());
    }
    Ok(found.is_none())
}

fn read(file: &Path) -> anyhow::Result<String> {
    std::fs::read_to_string(file).with_context(|| {
        format!(
            "cannot read {}, the expected output of an example",
            file.display()
        )
    })
}

/// The first line that differs from the expected one.
fn difference(expected: &str, output: &str) -> Option<String> {
    let mut expected: Vec<&str> = expected.lines().collect();
    let mut lines: Vec<&str> = output.lines().collect();
    if expected.first() == Some(&ANY_ORDER) {
        expected.remove(0);
        expected.sort_unstable();
        lines.sort_unstable();
    }
    let most = expected.len().max(lines.len());
    (0..most).find_map(|at| match (expected.get(at), lines.get(at)) {
        (Some(expected), Some(line)) if matches(expected, line) => None,
        (Some(expected), Some(line)) => Some(format!("expected \"{expected}\", found \"{line}\"")),
        (Some(expected), None) => Some(format!("expected \"{expected}\", found the end")),
        (None, Some(line)) => Some(format!("expected the end, found \"{line}\"")),
        (None, None) => None,
    })
}

/// Whether the line has all texts between the marks, in order, with some text at each mark.
fn matches(expected: &str, line: &str) -> bool {
    let Some((first, rest)) = expected.split_once(ANYTHING) else {
        return expected == line;
    };
    let Some(after) = line.strip_prefix(first) else {
        return false;
    };
    // The text at the mark has at least one character, and may end after any character.
    let ends = after.char_indices().map(|(at, c)| at + c.len_utf8());
    ends.into_iter().any(|end| matches(rest, &after[end..]))
}

#[cfg(test)]
mod tests;
