//! `gopt` accepts every command that the pages and the help texts show.

use std::path::Path;

use clap::CommandFactory;
use clap::error::ErrorKind;

use super::*;

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

/// The beginnings of commands on a page. Both run the program.
const BEGINNINGS: [&str; 2] = ["gopt ", "cargo run --release -- "];

/// The lines of a page's blocks of commands.
fn commands(page: &str) -> Vec<&str> {
    let mut is_shown = false;
    let mut shown = Vec::new();
    for line in page.lines() {
        match line.strip_prefix("```") {
            Some(language) => is_shown = !is_shown && matches!(language, "sh" | "text"),
            None if is_shown => shown.push(line),
            None => {}
        }
    }
    shown
}

/// The error that `gopt` finds in a command; `None` if it accepts the command.
fn refusal(line: &str) -> Option<clap::Error> {
    let line = line.trim();
    let rest = BEGINNINGS.iter().find_map(|it| line.strip_prefix(it))?;
    // Text far to the right of a command is an explanation.
    let rest = rest.split("  ").next()?.split(['#', '|', '>']).next()?;
    let words = std::iter::once("gopt").chain(rest.split_whitespace());
    let error = Args::try_parse_from(words).err()?;
    (error.kind() != ErrorKind::DisplayHelp).then_some(error)
}

fn is_command(line: &str) -> bool {
    BEGINNINGS.iter().any(|it| line.trim().starts_with(it))
}

#[test]
fn commands_on_pages_exist() {
    let mut count = 0;
    for name in ["README.md", "docs/gopt.md", "docs/gopt-c.md"] {
        let page = std::fs::read_to_string(Path::new(ROOT).join(name)).unwrap();
        for line in commands(&page) {
            count += usize::from(is_command(line));
            assert!(
                refusal(line).is_none(),
                "{name}: {line}\n{:?}",
                refusal(line)
            );
        }
    }
    assert!(count >= 9, "{count} commands");
}

#[test]
fn examples_in_help_exist() {
    let command = Args::command();
    let texts = std::iter::once(&command).chain(command.get_subcommands());
    let mut count = 0;
    for help in texts.filter_map(clap::Command::get_after_help) {
        for line in help.to_string().lines() {
            count += usize::from(is_command(line));
            assert!(refusal(line).is_none(), "{line}\n{:?}", refusal(line));
        }
    }
    assert!(count >= 10, "{count} commands");
}

#[test]
fn commands_that_do_not_exist_are_seen() {
    let page = "```sh\ngopt bench --loud   all\ngopt in.c -o out.c\n```\n```c\ngopt x y\n```\n";
    let wrong = commands(page).into_iter();
    let wrong: Vec<&str> = wrong.filter(|line| refusal(line).is_some()).collect();
    assert_eq!(wrong, ["gopt bench --loud   all"]);
}
