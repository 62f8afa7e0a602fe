//! The outputs of rows: JSON, a table and a picture. JSON goes to a file or the standard output.
//! The table goes to the standard output, or to the standard error if JSON takes the standard
//! output. The picture goes to a file.

use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::str::FromStr;

use anyhow::Context;
use serde::Serialize;

use crate::machine;
use crate::row::Row;

/// The argument of `--json`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Target {
    /// `-`: the standard output.
    Stdout,
    /// A file of this path.
    File(PathBuf),
}

impl FromStr for Target {
    type Err = std::convert::Infallible;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Ok(if text == "-" {
            Self::Stdout
        } else {
            Self::File(text.into())
        })
    }
}

/// The result of a run.
#[derive(Debug)]
pub struct Results {
    /// Rows, in the order in which they are shown.
    pub rows: Vec<Row>,
    /// Unexpected events, in words.
    pub alarms: Vec<String>,
    /// Cases for which there was no time.
    pub left_out: Vec<String>,
    /// Rounds of all cases, and the number of them that count.
    rounds: [usize; 2],
    /// Load of the machine at the beginning.
    load: String,
}

impl Results {
    /// Results without rows so far.
    #[must_use]
    pub fn begin() -> Self {
        Self {
            rows: Vec::new(),
            alarms: Vec::new(),
            left_out: Vec::new(),
            rounds: [0; 2],
            load: machine::load(),
        }
    }

    /// Adds the rounds of a case, and the number of them that count.
    pub fn count(&mut self, rounds: [usize; 2]) {
        for (sum, count) in self.rounds.iter_mut().zip(rounds) {
            *sum += count;
        }
    }

    /// Adds an alarm, unless it is there already.
    pub fn note_once(&mut self, alarm: &str) {
        if self.alarms.iter().all(|it| it != alarm) {
            self.alarms.push(alarm.to_owned());
        }
    }

    /// The text below the table of rows, for people: these lines, and facts that a reader must
    /// know.
    pub fn text(&self, lines: impl IntoIterator<Item = String>) -> String {
        let mut text = String::new();
        for line in lines {
            text += &format!("\n{line}");
        }
        for alarm in &self.alarms {
            text += &format!("\nnote: {alarm}");
        }
        let [rounds, counted] = self.rounds;
        if counted < rounds {
            text += &format!(
                "\n{} of {rounds} rounds do not count: the machine changed its state during \
                 them, or was in another state than in most rounds",
                rounds - counted
            );
        }
        for case in &self.left_out {
            text += &format!("\nleft out, more --seconds are needed: {case}");
        }
        let (before, after) = (&self.load, machine::load());
        let machine = machine::describe();
        text + &format!("\nmachine: {machine}; load {before} before, {after} after\n")
    }
}

/// The outputs, opened before the first measurement, so that a wrong path is found at once.
pub struct Output {
    json: Json,
    svg: Option<File>,
}

enum Json {
    Nowhere,
    Stdout,
    File(File),
}

impl Output {
    /// Opens the outputs.
    ///
    /// # Errors
    /// A file cannot be made.
    pub fn open(json: Option<&Target>, svg: Option<&Path>) -> anyhow::Result<Self> {
        Ok(Self {
            json: match json {
                None => Json::Nowhere,
                Some(Target::Stdout) => Json::Stdout,
                Some(Target::File(path)) => Json::File(make(path)?),
            },
            svg: svg.map(make).transpose()?,
        })
    }

    /// Shows a text immediately, on the standard error if the standard output is for JSON.
    ///
    /// # Errors
    /// The reader has closed the other end, or the disk is full.
    pub fn show(&self, text: &str) -> anyhow::Result<()> {
        match self.json {
            Json::Stdout => io::stderr().write_all(text.as_bytes())?,
            Json::Nowhere | Json::File(_) => io::stdout().write_all(text.as_bytes())?,
        }
        Ok(())
    }

    /// Writes everything in every form that was asked for: the rows, the `text` about them, and a
    /// picture that `draw` makes.
    ///
    /// # Errors
    /// The reader has closed the other end, or the disk is full.
    pub fn write(
        &mut self,
        rows: &[impl Serialize],
        text: &str,
        draw: impl FnOnce() -> String,
    ) -> anyhow::Result<()> {
        self.show(text)?;
        match &mut self.json {
            Json::Nowhere => {}
            Json::Stdout => json(rows, &mut io::stdout().lock())?,
            Json::File(file) => json(rows, file)?,
        }
        if let Some(file) = &mut self.svg {
            file.write_all(draw().as_bytes())?;
        }
        Ok(())
    }
}

fn make(path: &Path) -> anyhow::Result<File> {
    File::create(path).with_context(|| format!("cannot make {}", path.display()))
}

/// Writes one object on each line.
fn json(rows: &[impl Serialize], out: &mut dyn Write) -> anyhow::Result<()> {
    let mut text = String::new();
    for row in rows {
        text += &serde_json::to_string(row)?;
        text.push('\n');
    }
    out.write_all(text.as_bytes())?;
    Ok(out.flush()?)
}
