//! Reads rows of earlier runs from files of JSON lines. An error names file and line.

use std::path::{Path, PathBuf};

use anyhow::{Context, bail, ensure};
use harness::machine::FORMAT;
use harness::row::Row;

use super::rows::EXPERIMENT;

/// All rows of all files.
///
/// # Errors
/// A file cannot be read or has no rows, or a line is not a row of this experiment; the first of
/// these.
pub(super) fn all(paths: &[PathBuf]) -> anyhow::Result<Vec<Row>> {
    let mut rows = Vec::new();
    for path in paths {
        let before = rows.len();
        let text = std::fs::read_to_string(path);
        let text = text.with_context(|| format!("cannot read {}", path.display()))?;
        for (line, number) in text.lines().zip(1..) {
            if !line.trim().is_empty() {
                rows.push(row(line).with_context(|| place(path, number))?);
            }
        }
        ensure!(
            rows.len() > before,
            "{} has no rows; `gopt bench --json FILE` writes some",
            path.display()
        );
    }
    Ok(rows)
}

fn place(path: &Path, number: u32) -> String {
    format!("{}:{number}", path.display())
}

fn row(line: &str) -> anyhow::Result<Row> {
    let row: Row = serde_json::from_str(line).context("not a row of `gopt bench`")?;
    let format = row.run.format;
    ensure!(
        format == FORMAT,
        "a row of format {format}; this gopt reads format {FORMAT}"
    );
    if row.experiment != EXPERIMENT {
        bail!(
            "a row of `{}`; this command draws rows of `gopt bench`",
            row.experiment
        );
    }
    Ok(row)
}

#[cfg(test)]
mod tests;
