//! Histories as lines, for a second checker in another language: `tools/porcupine` reads them, and
//! documents each number.

use dunlin_core::Nanos;
use dunlin_testkit::histories::{self, Line};

use crate::history::record::{Action, Operation, Outcome};

/// Appends a history and the verdict of the search to the file of its kind.
pub(crate) fn write(kind: &str, name: &str, is_broken: bool, operations: &[Operation]) {
    histories::write(kind, name, is_broken, operations.iter().map(line_of));
}

/// Appends the line of an operation.
pub(crate) fn line(operation: &Operation, text: &mut String) {
    line_of(operation).put(text);
}

fn line_of(operation: &Operation) -> Line {
    let action = match operation.action {
        Action::Get => ("get", 0, 0),
        Action::Set(number, lifetime) => ("set", number, lifetime.into()),
        Action::Add(number) => ("add", number, 0),
        Action::Cas(number, version) => ("cas", number, version),
        Action::Count => ("count", 0, 0),
        Action::Delete => ("delete", 0, 0),
        Action::Lose => ("lose", 0, 0),
        Action::Evict(version) => ("evict", version, 0),
    };
    let outcome = match operation.outcome {
        Outcome::Found(number, version) => ("found", number, version),
        Outcome::Absent => ("absent", 0, 0),
        Outcome::Present => ("present", 0, 0),
        Outcome::Differs => ("differs", 0, 0),
        Outcome::Written(version) => ("written", version, 0),
        Outcome::Counted(number, version) => ("counted", number, version),
        Outcome::Done => ("done", 0, 0),
        Outcome::Unknown => ("unknown", 0, 0),
    };
    Line {
        object: (operation.server, operation.key),
        times: (operation.begin.0, operation.end.0),
        action,
        outcome,
    }
}

/// Reads the line of an operation that another process has written.
pub(crate) fn read(line: &str) -> Operation {
    let words: Vec<&str> = line.split_whitespace().collect();
    let number = |at: usize| words[at].parse::<u64>().unwrap();
    let index = |at: usize| words[at].parse::<usize>().unwrap();
    Operation {
        server: index(0),
        key: index(1),
        begin: Nanos(number(2)),
        end: Nanos(number(3)),
        action: match words[4] {
            "get" => Action::Get,
            "set" => Action::Set(number(5), words[6].parse().unwrap()),
            "add" => Action::Add(number(5)),
            "cas" => Action::Cas(number(5), number(6)),
            "count" => Action::Count,
            "delete" => Action::Delete,
            "lose" => Action::Lose,
            "evict" => Action::Evict(number(5)),
            other => panic!("{other} is not an action"),
        },
        outcome: match words[7] {
            "found" => Outcome::Found(number(8), number(9)),
            "absent" => Outcome::Absent,
            "present" => Outcome::Present,
            "differs" => Outcome::Differs,
            "written" => Outcome::Written(number(8)),
            "counted" => Outcome::Counted(number(8), number(9)),
            "done" => Outcome::Done,
            "unknown" => Outcome::Unknown,
            other => panic!("{other} is not an outcome"),
        },
    }
}
