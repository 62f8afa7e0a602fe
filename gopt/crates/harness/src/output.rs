//! Where rows go: JSON to a file or the standard output, the table to the standard output, or
//! beside the JSON to the standard error, and a picture to a file.

use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::str::FromStr;

use anyhow::Context;

use super::row::Row;
use super::{compare, gopt, machine, plot, table};

/// The argument of `--json`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Target {
    Stdout,
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

/// What a run has found.
#[derive(Debug)]
pub(super) struct Results {
    pub(super) rows: Vec<Row>,
    /// What should not have happened.
    pub(super) alarms: Vec<String>,
    /// Cases for which there was no time.
    pub(super) left_out: Vec<String>,
    /// Load of the machine at the beginning.
    load: String,
    /// People want to see every row.
    verbose: bool,
}

impl Results {
    /// Nothing yet.
    pub(super) fn begin(verbose: bool) -> Self {
        Self {
            rows: Vec::new(),
            alarms: Vec::new(),
            left_out: Vec::new(),
            load: machine::load(),
            verbose,
        }
    }

    /// Adds an alarm, unless it is there already.
    pub(super) fn note_once(&mut self, alarm: &str) {
        if self.alarms.iter().all(|it| it != alarm) {
            self.alarms.push(alarm.to_owned());
        }
    }

    fn text(&self) -> String {
        let is_shown = |row: &&Row| self.verbose || gopt::is_best(row, &self.rows);
        let shown: Vec<Row> = self.rows.iter().filter(is_shown).cloned().collect();
        let mut text = table::render(&shown);
        let ratios = gopt::ratios(&self.rows);
        for line in compare::lines(&self.rows).into_iter().chain(ratios) {
            text += &format!("\n{line}");
        }
        for alarm in &self.alarms {
            text += &format!("\nnote: {alarm}");
        }
        for case in &self.left_out {
            text += &format!("\nleft out, more --seconds are needed: {case}");
        }
        let (before, after) = (&self.load, machine::load());
        let machine = machine::describe();
        text + &format!("\nmachine: {machine}; load {before} before, {after} after\n")
    }
}

/// Opened before the first measurement, so that a wrong path costs no waiting.
pub(super) struct Output {
    json: Json,
    svg: Option<File>,
}

enum Json {
    Nowhere,
    Stdout,
    File(File),
}

impl Output {
    /// # Errors
    /// A file cannot be made.
    pub(super) fn open(json: Option<&Target>, svg: Option<&Path>) -> anyhow::Result<Self> {
        Ok(Self {
            json: match json {
                None => Json::Nowhere,
                Some(Target::Stdout) => Json::Stdout,
                Some(Target::File(path)) => Json::File(make(path)?),
            },
            svg: svg.map(make).transpose()?,
        })
    }

    /// Writes everything, in every form that was asked for.
    ///
    /// # Errors
    /// Somebody closed the other end, or the disk is full.
    pub(super) fn write(&mut self, results: &Results) -> anyhow::Result<()> {
        let text = results.text();
        match &mut self.json {
            Json::Nowhere => io::stdout().write_all(text.as_bytes())?,
            Json::Stdout => {
                io::stderr().write_all(text.as_bytes())?;
                json(&results.rows, &mut io::stdout().lock())?;
            }
            Json::File(file) => {
                io::stdout().write_all(text.as_bytes())?;
                json(&results.rows, file)?;
            }
        }
        if let Some(file) = &mut self.svg {
            file.write_all(plot::draw(&results.rows).as_bytes())?;
        }
        Ok(())
    }
}

fn make(path: &Path) -> anyhow::Result<File> {
    File::create(path).with_context(|| format!("cannot make {}", path.display()))
}

/// One object a line.
fn json(rows: &[Row], out: &mut dyn Write) -> anyhow::Result<()> {
    let mut text = String::new();
    for row in rows {
        text += &serde_json::to_string(row)?;
        text.push('\n');
    }
    out.write_all(text.as_bytes())?;
    Ok(out.flush()?)
}
