//! `store`: the table of the key-value service by itself, in one thread, against the machine's rate
//! of random cache lines. A get of MICA's table reads one line of the index and one of the log
//! (HERD §4.1.1), so the rate of two random lines per get is the bound.

mod roles;

use std::time::Duration;

use serde_json::Value;

use crate::harness::case::Case;
use crate::harness::experiment::{Experiment, Section};
use crate::harness::items::{Items, Mix, VALUE};
use crate::harness::probe::{Against, Measurement, Metric, Probe, patience};
use crate::harness::resident::Resident;
use crate::output::aims::{Aim, Bound, Of};
use crate::output::chart::{Wanted, baseline_line, chart, measured_line, unlike, word};
use harness::draw::{Axis, Picture, Scale};
use harness::process::Process;
use harness::row::Row;
use harness::seat::Seats;

use roles::{FILLING, Order};

pub(super) const EXPERIMENT: Experiment = Experiment {
    name: "store",
    about: "The key-value table by itself, against random cache lines; takes 8 GiB of memory; \
            not part of `all`",
    cases: |sweep| Ok(cases(sweep.items_mib)),
    roles: &[roles::HOLD, roles::LINES],
    transports: &[],
    allowed: &[],
    items_mib: Some(1024),
    usual_time: Duration::from_secs(150),
    is_in_all: false,
    is_compared: false,
    section: Some(Section {
        title: "The key-value table",
        text: "Gets and sets of items of 16 + 32 bytes in one thread, in batches whose memory is \
               fetched together; a batch of one fetches nothing ahead. The baseline is the rate at \
               which this thread gets two random cache lines from memory, in groups of the size \
               that suits the machine best. Times are processor times.",
    }),
    charts,
    findings,
    aims: AIMS,
    ..Experiment::BASE
};

/// Aims of batched gets.
const AIMS: &[Aim] = &[
    Aim {
        metric: "ops_per_s",
        transport: "none",
        params: &[("popularity", "uniform"), ("gets", "100"), ("batch", "32")],
        of: Of::Ratio,
        bound: Bound::AtLeast(0.6),
    },
    Aim {
        metric: "ops_per_s",
        transport: "none",
        params: &[("popularity", "uniform"), ("gets", "100"), ("batch", "32")],
        of: Of::Over("batch", "1"),
        bound: Bound::AtLeast(1.5),
    },
];

/// Operations whose memory is fetched together.
const BATCHES: [usize; 6] = [1, 2, 4, 8, 16, 32];

const METRICS: [Metric; 1] = [Metric {
    name: "ops_per_s",
    unit: "1/s",
    against: Against::Baseline(0),
}];

/// Rates of random lines.
#[derive(Debug)]
struct Lines {
    process: Resident<Process>,
    bytes: usize,
}

/// Rates of operations on a table.
#[derive(Debug)]
struct Table {
    process: Resident<Process>,
    items: Items,
    is_cache: bool,
    mix: Mix,
    batch: usize,
}

/// Both modes, with every mix and batch.
fn cases(items_mib: u32) -> Vec<Case> {
    let items = Items::of_mib(items_mib, VALUE);
    let lines = Resident::new();
    let mut cases = Vec::new();
    for is_cache in [false, true] {
        let process = Resident::new();
        for mix in Mix::all() {
            for batch in BATCHES {
                let table = Table {
                    process: process.clone(),
                    items,
                    is_cache,
                    mix,
                    batch,
                };
                cases.push(table.case(items_mib).against(Lines {
                    process: lines.clone(),
                    bytes: items.table_bytes(),
                }));
            }
        }
    }
    cases
}

impl Table {
    fn case(self, items_mib: u32) -> Case {
        let mode = if self.is_cache { "cache" } else { "store" };
        let params: [(&str, Value); 5] = [
            ("mode", mode.into()),
            ("popularity", self.mix.popularity.name().into()),
            ("gets", self.mix.gets.into()),
            ("batch", self.batch.into()),
            ("items_mib", items_mib.into()),
        ];
        Case::new("store", "none", &params, self)
    }
}

impl Probe for Lines {
    fn name(&self) -> &'static str {
        "two random lines"
    }

    fn metrics(&self) -> &'static [Metric] {
        &METRICS
    }

    fn measure(&mut self, span: Duration) -> anyhow::Result<Measurement> {
        let start = || {
            let mut process = Process::spawn(roles::LINES, Seats::pick().client, &self.bytes)?;
            process.receive::<()>(FILLING)?;
            Ok(process)
        };
        let lines: f64 = self.process.with(start, |process| {
            process.send(&span)?;
            process.receive(patience(span))
        })?;
        Ok(vec![lines / 2.0].into())
    }
}

impl Probe for Table {
    fn name(&self) -> &'static str {
        "the table"
    }

    fn metrics(&self) -> &'static [Metric] {
        &METRICS
    }

    fn measure(&mut self, span: Duration) -> anyhow::Result<Measurement> {
        let start = || {
            let params = (self.items, self.is_cache);
            let mut process = Process::spawn(roles::HOLD, Seats::pick().client, &params)?;
            process.receive::<()>(FILLING)?;
            Ok(process)
        };
        let rate: f64 = self.process.with(start, |process| {
            process.send(&Order {
                mix: self.mix,
                batch: self.batch,
                span,
            })?;
            process.receive(patience(4 * span))
        })?;
        Ok(vec![rate].into())
    }
}

/// The gain of batches: the best batch over single operations.
fn findings(rows: &[Row]) -> Vec<String> {
    let batch = |row: &Row| word(row, "batch").unwrap_or_default();
    let own = || rows.iter().filter(|row| EXPERIMENT.owns(row));
    let singles = own().filter(|row| batch(row) == "1");
    let gain = |single: &Row| {
        let same =
            |row: &&Row| ["mode", "popularity", "gets"].map(|it| word(row, it)) == of(single);
        let best = own()
            .filter(same)
            .max_by(|a, b| a.median.total_cmp(&b.median))?;
        let [mode, popularity, gets] = of(single).map(Option::unwrap_or_default);
        Some(format!(
            "batch {} / single: {:.2}  store {mode}, {popularity}, {gets} % gets{}",
            batch(best),
            best.median / single.median,
            unlike(best, single)
        ))
    };
    singles.filter_map(gain).collect()
}

fn of(row: &Row) -> [Option<String>; 3] {
    ["mode", "popularity", "gets"].map(|it| word(row, it))
}

fn charts(rows: &[&Row]) -> Vec<Picture> {
    let of_mode = |mode: &str, title: &str| {
        let mut lines = Vec::new();
        let drawn = [("uniform", "100"), ("uniform", "50"), ("zipf", "95")];
        for (colour, (popularity, gets)) in drawn.into_iter().enumerate() {
            let wanted = Wanted {
                metric: "ops_per_s",
                x: "batch",
                params: &[("mode", mode), ("popularity", popularity), ("gets", gets)],
            };
            let rows: Vec<&Row> = rows.iter().filter(|row| wanted.is(row)).copied().collect();
            let name = format!("{popularity}, {gets} % gets");
            lines.push(measured_line(&name, Some(colour), &rows, "batch"));
            if colour == 0 {
                lines.push(baseline_line(Some(colour), &rows, "batch"));
            }
        }
        lines.retain(|line| !line.points.is_empty());
        let x = Axis::new("operations in a batch", "", Scale::Each);
        let y = Axis::new("operations per second", "1/s", Scale::Linear);
        chart(title, x, y, lines)
    };
    vec![
        of_mode("store", "Rate of the table in store mode"),
        of_mode("cache", "Rate of the table in cache mode"),
    ]
}
