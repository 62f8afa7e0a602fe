//! `store-memory`: how the tables of the key-value service use their memory. The figures are
//! counts, which do not depend on the machine's speed: the share of requests that find their item,
//! against Debian's memcached with as much resident memory; the resident memory of both servers
//! under the same `-m`; and the bytes of the region that an item takes.

mod items;
mod servers;
mod tables;
mod trace;

use std::time::Duration;

use serde_json::Value;

use super::memcached::server::{self, Kind};
use crate::harness::case::Case;
use crate::harness::experiment::{Experiment, Section, Sweep};
use crate::harness::transport::Transport;
use crate::output::aims::{Aim, Bound, Of};
use crate::output::chart::{bar, bars, word};
use harness::draw::{Picture, zero_based};
use harness::row::Row;

use servers::{Filled, Hits, Server};
use tables::{Growth, Laps};
use trace::Trace;

pub(super) const EXPERIMENT: Experiment = Experiment {
    name: "store-memory",
    alias: Some("store_memory"),
    about: "Memory of the key-value tables: hit ratio and resident bytes against Debian's \
            memcached, bytes of an item; counts, no times; not part of `all`",
    cases: |sweep| Ok(cases(sweep)),
    roles: &[trace::ROLE, tables::GROW, tables::LAP],
    transports: &[],
    allowed: &[],
    items_mib: Some(512),
    usual_time: Duration::from_secs(600),
    usual_runs: 1,
    is_in_all: false,
    is_compared: false,
    section: Some(Section {
        title: "Memory of the key-value tables",
        text: "hit_ratio: a client asks for keys, and writes those that are missing; it has four \
               times as many bytes as the memory, in values of 16 B to 16 KiB. Keys are drawn by a \
               Zipf distribution with skew 0.99; in rows with scans, a fifth of the requests is \
               for keys that never come again. The baseline is Debian's memcached with the same \
               trace; dunlin memcached gets the -m with which it has no more resident memory. A \
               row is invalid if it has more than 1 % more. fill: both servers with the same -m, \
               after more items of 16 + 32 bytes than fit; over_memory_percent is wanted to be at \
               most 5, and judged from 64 MiB on. growth: a store of such items grows, is \
               written over and deleted from with other lengths, and is written again; \
               region_bytes are those in use for each live item, at worst 96. laps: a cache is \
               written over three times; lost_percent is the share of the items that are gone when \
               the log begins its second lap, at most 0.1.",
    }),
    charts,
    aims: AIMS,
    ..Experiment::BASE
};

/// Aims of the tables. Of the full servers, those with 64 MiB or more are judged.
const AIMS: &[Aim] = &[
    Aim {
        metric: "hit_ratio",
        transport: "none",
        params: &[],
        of: Of::Ratio,
        bound: Bound::AtLeast(1.0),
    },
    Aim {
        metric: "over_memory_percent",
        transport: "none",
        params: &[("what", "fill"), ("memory_mib", "64")],
        of: Of::Value,
        bound: Bound::AtMost(5.0),
    },
    Aim {
        metric: "over_memory_percent",
        transport: "none",
        params: &[("what", "fill"), ("memory_mib", "256")],
        of: Of::Value,
        bound: Bound::AtMost(5.0),
    },
    Aim {
        metric: "over_memory_percent",
        transport: "none",
        params: &[("what", "fill"), ("memory_mib", "1024")],
        of: Of::Value,
        bound: Bound::AtMost(5.0),
    },
    Aim {
        metric: "over_memory_percent",
        transport: "none",
        params: &[("what", "laps")],
        of: Of::Value,
        bound: Bound::AtMost(5.0),
    },
    Aim {
        metric: "lost_percent",
        transport: "none",
        params: &[],
        of: Of::Value,
        bound: Bound::AtMost(0.1),
    },
    Aim {
        metric: "region_bytes_worst",
        transport: "none",
        params: &[],
        of: Of::Value,
        bound: Bound::AtMost(96.0),
    },
    Aim {
        metric: "region_bytes_grown",
        transport: "none",
        params: &[],
        of: Of::Value,
        bound: Bound::AtMost(96.0),
    },
    Aim {
        metric: "region_bytes_rewritten",
        transport: "none",
        params: &[],
        of: Of::Value,
        bound: Bound::AtMost(96.0),
    },
];

/// MiB of `-m` in rows that fill a server.
const FILLED_MIB: [u32; 5] = [8, 16, 64, 256, 1024];

/// The least `-m` of the rows with traces.
const LEAST_MIB: u32 = 8;

/// Percentages of the requests that scan.
const SCANS: [u8; 2] = [0, 20];

/// These rows have no native clients, so the transport is not used.
const OURS: Kind = Kind::Dunlin(Transport::Auto);

fn cases(sweep: &Sweep<'_>) -> Vec<Case> {
    let (items_mib, is_installed) = (sweep.items_mib, server::is_installed());
    let mut cases = Vec::new();
    // All keys of a trace take four times the memory.
    let memory_mib = (items_mib / 4).max(LEAST_MIB);
    for scans in SCANS {
        let trace = Trace::new(memory_mib, scans);
        let params: [(&str, Value); 3] = [
            ("what", "hits".into()),
            ("memory_mib", memory_mib.into()),
            ("scans", scans.into()),
        ];
        let theirs = Server::new(Kind::Memcached, memory_mib);
        let ours = Server::new(OURS, memory_mib);
        let subject = Hits::new(ours, trace, Some(theirs.resident()));
        let case = Case::new("store_memory", "none", &params, subject);
        cases.push(match is_installed {
            true => case.against(Hits::new(theirs, trace, None)),
            false => case,
        });
    }
    for memory_mib in FILLED_MIB.into_iter().filter(|mib| *mib <= 2 * items_mib) {
        let params: [(&str, Value); 2] =
            [("what", "fill".into()), ("memory_mib", memory_mib.into())];
        let filled = |kind| Filled(Server::new(kind, memory_mib));
        let case = Case::new("store_memory", "none", &params, filled(OURS));
        cases.push(match is_installed {
            true => case.against(filled(Kind::Memcached)),
            false => case,
        });
    }
    if !is_installed {
        for case in &mut cases {
            case.note(
                "memcached is not installed here, so this row has no baseline; Debian's package \
                 memcached has it"
                    .to_owned(),
            );
        }
    }
    let params = |what: &str| -> [(&str, Value); 2] {
        [("what", what.into()), ("items_mib", items_mib.into())]
    };
    let growth = Growth { items_mib };
    cases.push(Case::new("store_memory", "none", &params("growth"), growth));
    let laps = Laps { items_mib };
    cases.push(Case::new("store_memory", "none", &params("laps"), laps));
    cases
}

fn charts(rows: &[&Row]) -> Vec<Picture> {
    // The names of bars are short, because they stand beside their figures.
    let of = |metric: &str, (param, short): (&str, &str), title: &str, axis| {
        let wanted = rows.iter().filter(|row| row.metric == metric);
        let all = wanted.map(|row| {
            let name = format!("{short} {}", word(row, param).unwrap_or_default());
            bar(row, name, None)
        });
        bars(title, axis, "memcached in the same round", all.collect())
    };
    vec![
        of(
            "hit_ratio",
            ("scans", "scans"),
            "Requests that find their item, with equal resident memory",
            zero_based("share of requests", ""),
        ),
        of(
            "resident_mib",
            ("memory_mib", "-m"),
            "Resident memory of a full server",
            zero_based("resident memory", "MiB"),
        ),
    ]
}
