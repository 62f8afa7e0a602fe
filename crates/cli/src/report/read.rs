//! Rows from files of JSON lines. An error in a line names file and line; empty lines are ignored.

use std::path::{Path, PathBuf};

use anyhow::{Context, bail, ensure};
use serde_json::Value;

use dunlin_bench::experiments;
use harness::machine::FORMAT;
use harness::row::Row;

/// The most bytes of a file of rows; all experiments together make less than one megabyte.
const LARGEST: u64 = 256 << 20;

/// All rows of all files.
///
/// # Errors
/// The first file that cannot be read, or the first line that is not a row.
pub(super) fn all(paths: &[PathBuf]) -> anyhow::Result<Vec<Row>> {
    let mut rows = Vec::new();
    for path in paths {
        let before = rows.len();
        for (index, line) in read(path)?.lines().enumerate() {
            if line.trim().is_empty() {
                continue;
            }
            let place = || format!("{}:{}", path.display(), index + 1);
            rows.push(row(line).with_context(place)?);
        }
        ensure!(
            rows.len() > before,
            "{}: has no rows; `dunlin bench NAME --json FILE` writes some",
            path.display()
        );
    }
    Ok(rows)
}

fn read(path: &Path) -> anyhow::Result<String> {
    let cannot = || format!("cannot read {}", path.display());
    let meta = std::fs::metadata(path).with_context(cannot)?;
    ensure!(
        meta.len() <= LARGEST,
        "{}: has {} MiB, but rows of all experiments take less than one",
        path.display(),
        meta.len() >> 20
    );
    let bytes = std::fs::read(path).with_context(cannot)?;
    let up_to = |end: usize| bytes[..end].iter().filter(|byte| **byte == b'\n').count() + 1;
    String::from_utf8(bytes.clone()).map_err(|error| {
        let line = up_to(error.utf8_error().valid_up_to());
        anyhow::anyhow!("{}:{line}: not text, so not JSON lines", path.display())
    })
}

fn row(line: &str) -> anyhow::Result<Row> {
    let value: Value = serde_json::from_str(line)
        .map_err(|error| anyhow::anyhow!("not a JSON object on one line: {}", of(&error)))?;
    ensure!(value.is_object(), "JSON, but not an object");
    if value.get("scenario").is_some() {
        bail!("a run of `dunlin sim`; the report takes rows of `dunlin bench`");
    }
    if value.get("experiment").is_none() {
        bail!("an object without `experiment`, so not a row of `dunlin bench`");
    }
    match value["run"]["format"].as_u64() {
        Some(format) if format == u64::from(FORMAT) => {}
        Some(format) => bail!(
            "a row of format {format}, written by dunlin {}; this one reads format {FORMAT}",
            value["run"]["dunlin"]
                .as_str()
                .unwrap_or("of another version")
        ),
        None => bail!(
            "a row that does not say its format, as an early dunlin wrote them; measure it again"
        ),
    }
    let row: Row = serde_json::from_value(value)
        .map_err(|error| anyhow::anyhow!("not a row of `dunlin bench`: {error}"))?;
    let experiment = &*row.experiment;
    if experiment == "gopt" {
        bail!("a row of `gopt bench`; `gopt bench --from FILE --svg PICTURE` draws them");
    }
    if !experiments::with_section().any(|it| it.owns(&row)) {
        let known: Vec<&str> = experiments::with_section()
            .map(|it| it.row_name())
            .collect();
        bail!(
            "unknown experiment `{experiment}`; known are {}",
            known.join(", ")
        );
    }
    let numbers = [row.median, row.min, row.max];
    ensure!(
        numbers.iter().all(|it| it.is_finite()) && row.min <= row.max,
        "the median is {} and the spread {} to {}",
        row.median,
        row.min,
        row.max
    );
    Ok(row)
}

/// An error without its line number, which is always 1.
fn of(error: &serde_json::Error) -> String {
    let text = error.to_string();
    let end = text.rfind(" at line ").unwrap_or(text.len());
    format!("{} (column {})", &text[..end], error.column())
}
