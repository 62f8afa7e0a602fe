//! Figures of the paper, shown next to those measured here. The paper used another machine, so its
//! figures show the gain there, and are not a baseline.
//!
//! G-Opt: Kalia, Zhou, Kaminsky, Andersen, "Raising the Bar for Using GPUs in Software Packet
//! Processing", NSDI 2015.

use harness::row::Row;
use serde_json::Value;

use super::rows::RATE;

/// The form that corresponds to the paper's tool.
const FORM: &str = "c-gopt";

/// The published speed-up of a look-up over the plain loop.
struct Published {
    lookup: &'static str,
    shape: &'static str,
    ratio: f64,
    /// The machine, or the quantity that was measured.
    what: &'static str,
    source: &'static str,
}

const fn tight(lookup: &'static str, ratio: f64) -> Published {
    Published {
        lookup,
        shape: "tight",
        ratio,
        what: "Xeon E5-2680",
        source: "figure 8",
    }
}

const fn handler(
    lookup: &'static str,
    ratio: f64,
    what: &'static str,
    source: &'static str,
) -> Published {
    Published {
        lookup,
        shape: "handler",
        ratio,
        what,
        source,
    }
}

const ALL: [Published; 6] = [
    tight("pointer-chasing", 6.6),
    tight("cuckoo", 2.6),
    tight("ipv6", 2.0),
    handler("ipv4", 1.59, "IPv4 forwarding, one core", "figure 10b"),
    handler("ipv6", 3.8, "IPv6 forwarding, one core", "figure 10c"),
    handler("cuckoo", 1.86, "L2 switch, one core", "figure 10d"),
];

/// Returns a line for each published figure whose look-up was measured here too. Its two figures
/// are the speed-ups at the best width, measured here and published.
pub(super) fn lines(rows: &[Row]) -> Vec<String> {
    let line = |it: &Published| {
        let has = |row: &Row, name: &str, value: &str| {
            row.params.get(name).and_then(Value::as_str) == Some(value)
        };
        let is_same = |row: &&Row| {
            row.metric == RATE
                && has(row, "lookup", it.lookup)
                && has(row, "shape", it.shape)
                && has(row, "form", FORM)
        };
        let ratios = rows.iter().filter(is_same).filter_map(|row| row.ratio);
        let best = ratios.max_by(f64::total_cmp)?;
        let Published {
            lookup,
            shape,
            ratio,
            what,
            source,
        } = it;
        Some(format!(
            "{FORM} / c-plain: {best:.2} here, {ratio:.2} published  {lookup}, {shape} \
             (G-Opt, {source}: {what})"
        ))
    };
    ALL.iter().filter_map(line).collect()
}

#[cfg(test)]
mod tests;
