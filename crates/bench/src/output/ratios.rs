//! Ratios between rows of one run, which readers would otherwise have to compute: `auto` against
//! `shm`, and packing against no packing.

use serde_json::Value;

use harness::row::Row;

/// Metrics that are compared.
const METRICS: [&str; 2] = ["rtt_p50", "rpc_per_s"];

/// One line for each pair of rows.
pub(crate) fn lines(rows: &[Row]) -> Vec<String> {
    let compared = || rows.iter().filter(|row| METRICS.contains(&&*row.metric));
    let autos = compared().filter(|row| row.transport == "auto");
    let autos = autos.filter_map(|row| {
        let other = find(rows, row, "shm", None)?;
        Some(line(row, other, "auto / shm"))
    });
    let packed = compared().filter(|row| packs(row) == Some(true));
    let packed = packed.filter_map(|row| {
        let other = find(rows, row, &row.transport, Some(false))?;
        Some(line(row, other, "with packing / without"))
    });
    autos.chain(packed).collect()
}

/// Finds the row that differs from `row` only in transport and packing.
fn find<'a>(rows: &'a [Row], row: &Row, transport: &str, packing: Option<bool>) -> Option<&'a Row> {
    rows.iter().find(|other| {
        other.what() == [&row.experiment, &row.metric, transport]
            && packs(other) == packing
            && others(other).eq(others(row))
    })
}

fn packs(row: &Row) -> Option<bool> {
    row.params.get("packing").and_then(Value::as_bool)
}

/// The parameters other than packing.
fn others(row: &Row) -> impl Iterator<Item = (&String, &Value)> {
    row.params.iter().filter(|(name, _)| *name != "packing")
}

fn line(row: &Row, other: &Row, what: &str) -> String {
    let params = others(row).map(|(name, value)| match value {
        Value::String(text) => format!(" {name} {text}"),
        value => format!(" {name} {value}"),
    });
    format!(
        "{what}: {:.2}  {}{}, {}",
        row.median / other.median,
        row.experiment,
        params.collect::<String>(),
        row.metric
    )
}

#[cfg(test)]
mod tests;
