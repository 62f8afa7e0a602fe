//! Key figures at the top of the page, which most readers want first.

use std::fmt::Write as _;

use serde_json::Value;

use harness::draw::escape;
use harness::figure::figure;
use harness::row::Row;

use super::tables::doubts;

/// A key figure.
struct Key {
    name: &'static str,
    /// Experiment, metric, transport.
    what: [&'static str; 3],
    params: &'static [(&'static str, f64)],
    /// Whether to take the largest of the matching figures, not the first.
    largest: bool,
}

const KEYS: [Key; 8] = [
    key(
        "Round trip of 32 bytes, shared memory",
        ["latency", "rtt_p50", "shm"],
        SMALL,
    ),
    key(
        "Round trip of 32 bytes, UDP",
        ["latency", "rtt_p50", "udp"],
        SMALL,
    ),
    best(
        "Rate of one thread, shared memory",
        ["rate", "rpc_per_s", "shm"],
        &[],
    ),
    best("Rate of one thread, UDP", ["rate", "rpc_per_s", "udp"], &[]),
    key(
        "8 MB requests, shared memory",
        ["bandwidth", "gbps", "shm"],
        LARGE,
    ),
    key("8 MB requests, UDP", ["bandwidth", "gbps", "udp"], LARGE),
    key(
        "8 MB requests, one packet in 1000 lost",
        ["loss", "gbps", "sim"],
        &[("loss", 1e-3)],
    ),
    key(
        "An idle server, of a core",
        ["idle", "cpu_percent", "shm"],
        &[],
    ),
];

const SMALL: &[(&str, f64)] = &[("size", 32.0)];
const LARGE: &[(&str, f64)] = &[("size", 8_388_608.0), ("inflight", 1.0)];

/// Writes the key figures that were measured.
pub(super) fn tiles(out: &mut String, rows: &[Row]) {
    let found: Vec<(&Key, &Row)> = KEYS
        .iter()
        .filter_map(|key| Some((key, key.find(rows)?)))
        .collect();
    if found.is_empty() {
        return;
    }
    *out += "<section class=\"tiles\" aria-label=\"Key figures\">\n";
    for (key, row) in found {
        let beside = match (row.ratio, &row.baseline_name) {
            (Some(ratio), Some(name)) => format!("{ratio:.2} × {}", escape(name)),
            _ => "no baseline".to_owned(),
        };
        let doubt = match doubts(row).as_str() {
            "" => String::new(),
            doubts => format!(" · {doubts}"),
        };
        let _ = writeln!(
            out,
            "<div class=\"tile\"><span>{}</span><strong>{}</strong><em>{beside}{doubt}</em></div>",
            key.name,
            escape(&figure(row.median, &row.unit))
        );
    }
    *out += "</section>\n";
}

const fn key(
    name: &'static str,
    what: [&'static str; 3],
    params: &'static [(&'static str, f64)],
) -> Key {
    Key {
        name,
        what,
        params,
        largest: false,
    }
}

const fn best(
    name: &'static str,
    what: [&'static str; 3],
    params: &'static [(&'static str, f64)],
) -> Key {
    Key {
        largest: true,
        ..key(name, what, params)
    }
}

impl Key {
    fn find<'a>(&self, rows: &'a [Row]) -> Option<&'a Row> {
        let is = |row: &&Row| {
            let number = |name: &str| row.params.get(name).and_then(Value::as_f64);
            let is_param = |&(name, value): &(&str, f64)| number(name) == Some(value);
            row.what() == self.what && self.params.iter().all(is_param)
        };
        let mut rows = rows.iter().filter(is);
        match self.largest {
            true => rows.max_by(|a, b| a.median.total_cmp(&b.median)),
            false => rows.next(),
        }
    }
}
