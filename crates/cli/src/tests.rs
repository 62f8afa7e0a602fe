//! `dunlin` knows every command on the pages and in the help texts.

use std::path::Path;

use clap::error::ErrorKind;
use clap::{CommandFactory, Parser};

use super::Args;

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

/// The beginnings of commands on a page, and the name of the program.
const BEGINNINGS: [&str; 4] = [
    "dunlin ",
    "cargo run --release -- ",
    "cargo run --release --no-default-features -- ",
    "cargo run --profile lto -- ",
];

/// All pages, with their names.
fn pages() -> Vec<(String, String)> {
    let folders = ["", "docs", "docs/decisions"];
    let mut pages = Vec::new();
    for folder in folders.map(|folder| Path::new(ROOT).join(folder)) {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.extension().is_some_and(|it| it == "md") {
                let text = std::fs::read_to_string(&path).unwrap();
                pages.push((path.display().to_string(), text));
            }
        }
    }
    pages
}

/// Commands in blocks, and code in the text.
fn shown(page: &str) -> Vec<&str> {
    let mut shown = Vec::new();
    let mut block = None;
    for line in page.lines() {
        match line.trim_start().strip_prefix("```") {
            Some(language) => block = block.is_none().then_some(language),
            None => match block {
                Some("sh" | "console" | "text") => shown.push(line),
                Some(_) => {}
                None => shown.extend(line.split('`').skip(1).step_by(2)),
            },
        }
    }
    shown
}

/// The arguments of a command; `None` if the text is not a command, or stands for several.
fn arguments(line: &str) -> Option<Vec<String>> {
    let line = line.trim();
    let line = line.strip_prefix("$ ").unwrap_or(line);
    let rest = BEGINNINGS.iter().find_map(|it| line.strip_prefix(it))?;
    // Text far to the right of a command explains it.
    let rest = rest.split("  ").next().unwrap_or_default();
    let rest = rest.split(" #").next().unwrap_or_default();
    let rest = rest.split([';', '|', '<', '>']).next().unwrap_or_default();
    let stands_for_several = rest.contains(['[', '…']) || rest.contains("...");
    let words = rest.split_whitespace().map(|word| match word {
        "COMMAND" => "bench".to_owned(),
        "NAME" => "raw".to_owned(),
        "HOST:PORT" => "127.0.0.1:31850".to_owned(),
        "PID" => "1".to_owned(),
        word => word.trim_matches(['"', '\'']).to_owned(),
    });
    let program = std::iter::once("dunlin".to_owned());
    (!stands_for_several).then(|| program.chain(words).collect())
}

/// The error in a command.
fn refusal(line: &str) -> Option<String> {
    let words = arguments(line)?;
    // `dunlin sim` in a sentence is a name; its arguments are given elsewhere.
    let is_name = words.len() == 2;
    let error = Args::try_parse_from(words).err()?;
    let is_fine = match error.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => true,
        ErrorKind::MissingRequiredArgument => is_name,
        ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => is_name,
        _ => false,
    };
    (!is_fine).then(|| error.to_string())
}

#[test]
fn commands_on_pages_exist() {
    let mut count = 0;
    for (name, page) in pages() {
        for line in shown(&page) {
            count += usize::from(arguments(line).is_some());
            let refusal = refusal(line).unwrap_or_default();
            assert!(refusal.is_empty(), "{name}: {line}\n{refusal}");
        }
    }
    assert!(count > 20, "{count} commands");
}

#[test]
fn examples_in_help_exist() {
    let command = Args::command();
    let mut texts = vec![&command];
    let mut count = 0;
    while let Some(command) = texts.pop() {
        texts.extend(command.get_subcommands());
        let help = command.get_after_help().map(ToString::to_string);
        for line in help.iter().flat_map(|text| text.lines()) {
            count += usize::from(arguments(line).is_some());
            let refusal = refusal(line).unwrap_or_default();
            assert!(refusal.is_empty(), "{line}\n{refusal}");
        }
    }
    assert!(count > 20, "{count} commands");
}

#[test]
fn commands_that_do_not_exist_are_seen() {
    let page = "See `dunlin bench nothing`.\n```sh\ndunlin bench --loud   # all\n```\n\
                ```rust\ndunlin x\n```\n`dunlin sim [FILE]` and `dunlin bench NAME --json FILE`\n";
    let wrong = shown(page)
        .into_iter()
        .filter(|line| refusal(line).is_some());
    assert_eq!(
        wrong.collect::<Vec<_>>(),
        ["dunlin bench nothing", "dunlin bench --loud   # all"]
    );
}

/// True if there is an example of this name: as a file or a folder in the examples of a crate, or
/// as a file in the folder of the packages that are examples.
fn is_example(name: &str) -> bool {
    let packages = Path::new(ROOT).join("examples");
    if packages.join(format!("{name}.rs")).exists() {
        return true;
    }
    let mut crates = std::fs::read_dir(Path::new(ROOT).join("crates")).unwrap();
    crates.any(|it| {
        let examples = it.unwrap().path().join("examples");
        examples.join(format!("{name}.rs")).exists() || examples.join(name).exists()
    })
}

#[test]
fn examples_on_pages_are_files() {
    for (name, page) in pages() {
        for line in shown(&page) {
            let words: Vec<&str> = line.split_whitespace().collect();
            let example = words.iter().skip_while(|word| **word != "--example").nth(1);
            let short = line
                .strip_prefix("examples/")
                .and_then(|it| it.strip_suffix(".rs"));
            if let Some(example) = example.copied().or(short) {
                assert!(is_example(example), "{name}: {line}");
            }
        }
    }
}
