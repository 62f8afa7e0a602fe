//! `dunlin kv shell`: the commands of `dunlin kv`, one per line, over one connection. A line that
//! fails does not end the shell. Called by `client`, which runs the commands.

use std::io::{IsTerminal, stdin};

use anyhow::{anyhow, bail};
use clap::error::ErrorKind;
use clap::parser::ValueSource;
use clap::{ArgMatches, Subcommand};

use crate::say::{print, with_causes};

pub(super) const EXAMPLES: &str = "\
Examples:
  dunlin kv shell --server 10.0.0.2:31850
  dunlin kv shell < commands.txt             continues after a failed line; exits with 1 at the end

A line is a command of `dunlin kv`, without these two words: set \"a key\" 'a value' --ttl 60.
Quotation marks and backslashes work as in a shell. `help` lists the commands, `help get` explains
one, and `quit` ends the shell.

Exit codes: 0, it has ended at a terminal, or no line has failed; 1, a line has failed; 2, an option
or the usage is wrong.";

/// Options of the connection. They belong to the shell, which has only one connection.
const OF_SHELL: [&str; 7] = [
    "server",
    "when_down",
    "timeout",
    "transport",
    "idle",
    "file",
    "set",
];

/// Reads lines until there are no more, or until one is `quit` or `exit`, and has `operate` run
/// each command. Prints the error of each line that fails.
///
/// # Errors
/// The standard input cannot be read; or it is not a terminal, and a line has failed.
pub(super) fn run<C: Subcommand>(
    mut operate: impl FnMut(&C) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    let is_terminal = stdin().is_terminal();
    let (mut number, mut failed) = (0, 0);
    loop {
        if is_terminal {
            print("> ")?;
        }
        let mut line = String::new();
        if stdin().read_line(&mut line)? == 0 || matches!(line.trim(), "quit" | "exit") {
            break;
        }
        number += 1;
        if let Err(error) = run_line(&line, &mut operate) {
            failed += 1;
            eprintln!("line {number}: {}", with_causes(&error));
        }
    }
    match failed == 0 || is_terminal {
        true => Ok(()),
        false => Err(anyhow!("{failed} of {number} lines have failed")),
    }
}

fn run_line<C: Subcommand>(
    line: &str,
    operate: &mut impl FnMut(&C) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    let words = words(line)?;
    if words.is_empty() {
        return Ok(());
    }
    let commands = clap::Command::new("")
        .no_binary_name(true)
        .subcommand_required(true);
    match C::augment_subcommands(commands).try_get_matches_from(words) {
        Ok(matches) => {
            check(&matches)?;
            operate(&C::from_arg_matches(&matches)?)
        }
        Err(help) if help.kind() == ErrorKind::DisplayHelp => print(&help.to_string()),
        Err(error) => bail!("{}", error.to_string().trim_end()),
    }
}

/// Refuses options that a line cannot have.
fn check(matches: &ArgMatches) -> anyhow::Result<()> {
    let Some((_, matches)) = matches.subcommand() else {
        return Ok(());
    };
    for option in OF_SHELL {
        let source = matches.try_contains_id(option).ok();
        let source = source.and_then(|_| matches.value_source(option));
        if source == Some(ValueSource::CommandLine) {
            bail!("--{option} belongs to `dunlin kv shell` itself");
        }
    }
    Ok(())
}

/// The words of a line. White space separates them, unless it follows a backslash or stands within
/// quotation marks of either kind.
///
/// # Errors
/// A quotation mark is missing, or nothing follows a backslash.
fn words(line: &str) -> anyhow::Result<Vec<String>> {
    let mut words: Vec<String> = Vec::new();
    let (mut word, mut mark) = (None, None);
    let mut letters = line.chars();
    while let Some(letter) = letters.next() {
        match (mark, letter) {
            (Some(open), letter) if letter == open => mark = None,
            (None, '"' | '\'') => {
                mark = Some(letter);
                word.get_or_insert_with(String::new);
            }
            (None | Some('"'), '\\') => {
                let next = letters.next().filter(|next| *next != '\n');
                let next = next.ok_or_else(|| anyhow!("nothing follows the backslash"))?;
                word.get_or_insert_with(String::new).push(next);
            }
            (None, letter) if letter.is_whitespace() => words.extend(word.take()),
            (_, letter) => word.get_or_insert_with(String::new).push(letter),
        }
    }
    match mark {
        Some(mark) => Err(anyhow!("a quotation mark {mark} is missing")),
        None => {
            words.extend(word);
            Ok(words)
        }
    }
}

#[cfg(test)]
mod tests;
