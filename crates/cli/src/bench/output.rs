//! Where rows go: JSON to a file or the standard output, the table to the standard output, or
//! beside the JSON to the standard error.

use std::fs::File;
use std::io::{self, Write};
use std::path::PathBuf;
use std::str::FromStr;

use anyhow::Context;

use super::row::Row;
use super::table;

/// The argument of `--json`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Target {
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

/// Opened before the first measurement, so that a wrong path costs no waiting.
pub(super) enum Output {
    Table,
    JsonToStdout,
    JsonToFile(File),
}

impl Output {
    /// # Errors
    /// The file cannot be made.
    pub(super) fn open(target: Option<&Target>) -> anyhow::Result<Self> {
        Ok(match target {
            None => Self::Table,
            Some(Target::Stdout) => Self::JsonToStdout,
            Some(Target::File(path)) => {
                let file = File::create(path);
                Self::JsonToFile(file.with_context(|| format!("cannot make {}", path.display()))?)
            }
        })
    }

    /// Writes all rows, in every form that was asked for.
    ///
    /// # Errors
    /// Somebody closed the other end, or the disk is full.
    pub(super) fn write(&mut self, rows: &[Row], machine: &str) -> anyhow::Result<()> {
        let text = format!("{}\nmachine: {machine}\n", table::render(rows));
        match self {
            Self::Table => io::stdout().write_all(text.as_bytes())?,
            Self::JsonToStdout => {
                io::stderr().write_all(text.as_bytes())?;
                json(rows, &mut io::stdout().lock())?;
            }
            Self::JsonToFile(file) => {
                io::stdout().write_all(text.as_bytes())?;
                json(rows, file)?;
            }
        }
        Ok(())
    }
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
