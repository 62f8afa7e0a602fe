//! Arguments that the command line accepts, and arguments that it refuses before anything is built.

mod aims;

use clap::error::ErrorKind;

use super::*;
use crate::args::{EXAMPLES, Name};

fn parse(line: &str) -> Result<Args, clap::Error> {
    Args::try_parse_from(std::iter::once("peers").chain(line.split_whitespace()))
}

#[test]
fn peers_are_measured_in_the_order_of_the_table_and_once() {
    let all = parse("").unwrap();
    assert_eq!(all.peers().len(), 13);
    assert_eq!((all.sizes(8), all.rounds()), (vec![32, 1024, 65536], 5));
    let some = parse("--only quinn,tcp --only tcp --size 8").unwrap();
    assert_eq!(some.peers(), [Name::Tcp, Name::Quinn]);
    assert_eq!(some.sizes(32), [8]);
    let aims = parse("--aims").unwrap();
    assert_eq!((aims.sizes(32), aims.rounds()), (vec![32], 11));
    assert_eq!(parse("--aims --rounds 9").unwrap().rounds(), 9);
}

#[test]
fn the_examples_of_the_help_are_command_lines() {
    let begin = "cargo run --release -p peers";
    let lines = EXAMPLES.lines().map(str::trim);
    let lines: Vec<&str> = lines.filter_map(|line| line.strip_prefix(begin)).collect();
    assert_eq!(lines.len(), 5);
    for ours in lines {
        parse(ours.strip_prefix(" -- ").unwrap_or(ours)).unwrap();
    }
}

#[test]
fn wrong_arguments_are_refused_before_anything_is_built() {
    for (line, kind) in [
        ("--help", ErrorKind::DisplayHelp),
        ("--only grpc", ErrorKind::InvalidValue),
        ("--size 12", ErrorKind::ValueValidation),
        ("--size 0", ErrorKind::ValueValidation),
        ("--size 65544", ErrorKind::ValueValidation),
        ("--rounds 0", ErrorKind::ValueValidation),
        ("--span 60001", ErrorKind::ValueValidation),
        ("--aims --size 8", ErrorKind::ArgumentConflict),
        ("--aims --only tcp", ErrorKind::ArgumentConflict),
        ("--loud", ErrorKind::UnknownArgument),
        ("tcp", ErrorKind::UnknownArgument),
    ] {
        assert_eq!(parse(line).unwrap_err().kind(), kind, "{line}");
    }
    let said = parse("--size 12").unwrap_err().to_string();
    assert!(said.contains("a multiple of 8, up to 65536"), "{said}");
}
