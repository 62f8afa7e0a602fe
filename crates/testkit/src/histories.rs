//! Histories as files, for a checker in another language: `tools/porcupine` reads them, and
//! documents the numbers of a line. They are written if `DUNLIN_HISTORIES` names a folder.

use std::fmt::Write as _;
use std::fs::OpenOptions;
use std::io::Write as _;
use std::path::PathBuf;

/// An operation, as its line shows it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Line {
    /// The object of the operation: a server, and a key there.
    pub object: (usize, usize),
    /// When it began and ended, in ns; the end of an operation without an outcome is [`u64::MAX`].
    pub times: (u64, u64),
    /// The action, with two numbers.
    pub action: (&'static str, u64, u64),
    /// The outcome, with two numbers.
    pub outcome: (&'static str, u64, u64),
}

impl Line {
    /// Appends the line.
    pub fn put(&self, text: &mut String) {
        let ((server, key), (begin, end)) = (self.object, self.times);
        let ((action, a, b), (outcome, c, d)) = (self.action, self.outcome);
        let line = format!("{server} {key} {begin} {end} {action} {a} {b} {outcome} {c} {d}");
        let _ = writeln!(text, "{line}");
    }
}

/// Appends a history, and the verdict of the check in Rust, to the file of its kind.
///
/// # Panics
/// If the file cannot be written.
pub fn write(kind: &str, name: &str, is_broken: bool, lines: impl IntoIterator<Item = Line>) {
    let Some(folder) = std::env::var_os("DUNLIN_HISTORIES").map(PathBuf::from) else {
        return;
    };
    std::fs::create_dir_all(&folder).expect("the folder can be made");
    let verdict = if is_broken { "broken" } else { "sound" };
    let mut text = format!("history {name} {verdict}\n");
    for line in lines {
        line.put(&mut text);
    }
    let path = folder.join(format!("{kind}.history"));
    let file = OpenOptions::new().create(true).append(true).open(path);
    let written = file.and_then(|mut file| file.write_all(text.as_bytes()));
    written.expect("the file can be written");
}
