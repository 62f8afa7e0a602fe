//! The process that measures one look-up: it makes the table, then runs all forms in turns, and
//! reports the rate of each after every round.
//!
//! A figure is the median of several samples of a few milliseconds each. A sample counts this
//! thread's processor time, so other processes of a busy machine do not matter. The forms take
//! turns, and each sample has queries of its own.

use std::hint::black_box;
use std::io;
use std::ops::RangeInclusive;
use std::time::Duration;

use anyhow::{Context, ensure};
use gopt_lookups::aho_corasick::Automata;
use gopt_lookups::c::InC;
use gopt_lookups::forms;
use gopt_lookups::lines::Lines;
use gopt_lookups::random::Random;
use gopt_lookups::touched::Touched;
use gopt_lookups::work::{Handled, Handler, Packet, Tight};
use harness::process::Parent;
use harness::row::Spread;
use harness::sys;
use serde::{Deserialize, Serialize};

use super::automata::{self, Traffic};
use super::form::{Cell, Form, run_form};
use super::options::{Lookup, Shape};
use super::tables::{self, Visit};

/// Samples of a round.
const SAMPLES: usize = 7;

/// Approximate time of a sample of `plain`; samples of the other forms have the same number of
/// items.
const SAMPLE: Duration = Duration::from_millis(2);

/// Items of a sample. All items and their values stay in the second-level cache.
const ITEMS: RangeInclusive<usize> = 512..=16_384;

/// Queries whose lines are counted, and for which all forms must find the same values.
const CHECKED: usize = 4096;

const MIB: usize = 1 << 20;

const LINE_BYTES: usize = 64;

/// Bytes of a state of an automaton.
const STATE_BYTES: u64 = 1 << 10;

/// The look-ups, forms and widths to measure.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Job {
    pub(super) lookup: Lookup,
    pub(super) shapes: Vec<Shape>,
    pub(super) widths: Vec<usize>,
    pub(super) table_mib: u32,
    pub(super) runs: u32,
}

/// Facts about the table, printed once it is made.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) struct Made {
    /// Memory of the table.
    pub(super) bytes: u64,
    /// The part of it on huge pages.
    pub(super) huge_bytes: u64,
    /// The average number of lines per look-up that are not in a second-level cache.
    pub(super) lines: f64,
}

impl Job {
    /// The cells of a shape: each round reports a rate for each, in this order.
    pub(super) fn cells(&self, shape: Shape) -> Vec<Cell> {
        let mut cells = self.lookup_cells();
        if shape == Shape::Tight {
            cells.extend(self.line_cells());
        }
        cells
    }

    pub(super) fn lookup_cells(&self) -> Vec<Cell> {
        let batched: &[Form] = match self.lookup {
            Lookup::AhoCorasick => &[Form::Batch, Form::CBatch],
            _ => &[Form::Gopt, Form::Hand, Form::CGopt, Form::CHand],
        };
        let plain = [Form::Plain, Form::CPlain].map(Cell::single);
        let batched = batched
            .iter()
            .flat_map(|&form| Cell::batched(form, &self.widths));
        plain.into_iter().chain(batched).collect()
    }

    fn line_cells(&self) -> Vec<Cell> {
        Cell::batched(Form::Lines, &self.widths).collect()
    }

    pub(super) const fn bytes(&self) -> usize {
        self.table_mib as usize * MIB
    }
}

/// The work of the process. It reports a [`Made`], and then, for each round and each shape, the
/// rates of all cells.
///
/// # Errors
/// There is not enough memory; two forms found different values; the parent has ended.
pub(super) fn run(parent: &Parent) -> anyhow::Result<()> {
    let job: Job = parent.receive()?;
    tables::make(job.lookup, job.bytes(), Measure { parent, job: &job })
}

struct Measure<'a> {
    parent: &'a Parent,
    job: &'a Job,
}

impl Visit for Measure<'_> {
    fn table<L>(self, table: &L, key: impl Fn(&mut Random) -> L::Key) -> anyhow::Result<()>
    where
        L: InC,
        L::Value: PartialEq,
    {
        let mut random = Random::new(0xBEEF);
        let keys: Vec<L::Key> = (0..CHECKED).map(|_| key(&mut random)).collect();
        let cells = self.job.lookup_cells();
        let value = check(table, &cells, &keys)?;
        self.made(None, lines_of(table, &keys))?;
        self.rounds(|shape| match shape {
            Shape::Tight => {
                let run =
                    |cell, keys: &[_], out: &mut [_]| run_form(cell, table, &Tight, keys, out);
                rates(&cells, value, run, || key(&mut random))
            }
            Shape::Handler => {
                let nothing = Handled { value, digest: 0 };
                let run =
                    |cell, items: &[_], out: &mut [_]| run_form(cell, table, &Handler, items, out);
                rates(&cells, nothing, run, || Packet {
                    words: std::array::from_fn(|_| random.bits()),
                    key: key(&mut random),
                })
            }
        })
    }

    fn automata(self, automata: &Automata, sets: &[Vec<Vec<u8>>]) -> anyhow::Result<()> {
        let mut random = Random::new(0xBEEF);
        let cells = self.job.lookup_cells();
        automata::check(automata, &cells, &Traffic::new(sets, &mut random))?;
        // The process still holds the memory that building took, which is not part of the table.
        let bytes = automata.states() as u64 * STATE_BYTES;
        self.made(Some(bytes), 1.0)?;
        self.rounds(|_| {
            let rate = |&cell: &Cell| {
                let traffic = Traffic::new(sets, &mut random);
                let packets = traffic.packets();
                let took = timed(|| {
                    black_box(automata::run_form(cell, automata, &packets));
                })?;
                Ok(traffic.bytes() as f64 / took.as_secs_f64())
            };
            cells.iter().map(rate).collect()
        })
    }
}

impl Measure<'_> {
    /// Reports the table. Without its size in `bytes`, all memory of the process counts.
    fn made(&self, bytes: Option<u64>, lines: f64) -> anyhow::Result<()> {
        let (resident, huge_bytes) = sys::resident_and_huge_bytes()?;
        self.parent.say(&Made {
            bytes: bytes.unwrap_or(resident),
            huge_bytes,
            lines,
        })
    }

    /// Runs all rounds. `measure` finds the rates for each shape. For [`Shape::Tight`], this also
    /// measures the rate of lines.
    fn rounds(
        &self,
        mut measure: impl FnMut(Shape) -> anyhow::Result<Vec<f64>>,
    ) -> anyhow::Result<()> {
        let line_cells = self.job.line_cells();
        let has_lines = self.job.shapes.contains(&Shape::Tight);
        let lines = has_lines.then(|| Lines::new(self.job.bytes() / LINE_BYTES));
        let lines = lines.transpose()?;
        let mut random = Random::new(0xFEED);
        for _ in 0..self.job.runs {
            for &shape in &self.job.shapes {
                let mut found = measure(shape)?;
                if let (Shape::Tight, Some(lines)) = (shape, &lines) {
                    let key = || number_below(&mut random, lines.len());
                    let run = |cell: Cell, keys: &[u32], out: &mut [u64]| {
                        forms::hand(cell.width(), lines, &Tight, keys, out);
                    };
                    found.extend(rates(&line_cells, 0, run, key)?);
                }
                self.parent.say(&found)?;
            }
        }
        Ok(())
    }
}

/// Look-ups per second of each cell. At the start, the places of the values hold `nothing`.
fn rates<I, O: Copy>(
    cells: &[Cell],
    nothing: O,
    run: impl Fn(Cell, &[I], &mut [O]),
    mut fresh: impl FnMut() -> I,
) -> anyhow::Result<Vec<f64>> {
    let mut items: Vec<I> = Vec::with_capacity(*ITEMS.end());
    let mut out = vec![nothing; *ITEMS.end()];
    let mut sample = |cell: Cell, count: usize| {
        items.clear();
        items.extend((0..count).map(|_| fresh()));
        let out = &mut out[..count];
        let took = timed(|| run(cell, black_box(&items), out));
        black_box(out);
        took
    };
    let took = sample(cells[0], *ITEMS.start())?.as_secs_f64() / *ITEMS.start() as f64;
    let count = items_of_a_sample(took);
    let mut samples = vec![Vec::with_capacity(SAMPLES); cells.len()];
    for _ in 0..SAMPLES {
        for (&cell, samples) in cells.iter().zip(&mut samples) {
            samples.push(count as f64 / sample(cell, count)?.as_secs_f64());
        }
    }
    let median = |samples: Vec<f64>| Spread::of(samples.into_iter()).map(|it| it.median);
    Ok(samples.into_iter().filter_map(median).collect())
}

/// The number of items that fill a sample, if one takes `took` seconds.
fn items_of_a_sample(took: f64) -> usize {
    let mut count = *ITEMS.start();
    while 2 * count <= *ITEMS.end() && (2 * count) as f64 * took <= SAMPLE.as_secs_f64() {
        count *= 2;
    }
    count
}

/// Processor time of this thread that `run` takes; at least a nanosecond.
fn timed(run: impl FnOnce()) -> io::Result<Duration> {
    let begin = sys::thread_time()?;
    run();
    let took = sys::thread_time()?.saturating_sub(begin);
    Ok(took.max(Duration::from_nanos(1)))
}

/// Checks that all forms find the values that `plain` finds. Returns one of the values.
fn check<L>(table: &L, cells: &[Cell], keys: &[L::Key]) -> anyhow::Result<L::Value>
where
    L: InC,
    L::Value: PartialEq,
{
    let first = *keys.first().context("there are no keys")?;
    let expected: Vec<L::Value> = keys.iter().map(|&key| table.find(key)).collect();
    for &cell in cells {
        // Each form begins with the values of other keys.
        let mut out = expected.clone();
        out.rotate_left(1);
        run_form(cell, table, &Tight, keys, &mut out);
        ensure!(out == expected, "{cell:?} differs from plain");
    }
    Ok(table.find(first))
}

/// The average number of lines per look-up that are expected to miss.
fn lines_of<L: gopt_lookups::Lookup>(table: &L, keys: &[L::Key]) -> f64 {
    let mut touched = Touched::default();
    let mut lines = 0;
    for &key in keys {
        table.touch(key, &mut touched);
        lines += touched.take();
    }
    lines as f64 / keys.len() as f64
}

fn number_below(random: &mut Random, len: usize) -> u32 {
    u32::try_from(random.index(len)).expect("there are fewer than 2^32 lines")
}
