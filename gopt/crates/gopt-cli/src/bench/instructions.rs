//! Instructions per look-up, counted by callgrind. The counts are the same on every machine and in
//! every run. They show the price of interleaving next to its gain.
//!
//! A second process runs under valgrind, with a small table, because the number of instructions
//! hardly depends on its size. Only the functions called `run_form` count.

use std::time::Duration;

use gopt_lookups::aho_corasick::Automata;
use gopt_lookups::c::InC;
use gopt_lookups::random::Random;
use gopt_lookups::work::{Handled, Handler, Packet, Tight};
use harness::callgrind::Callgrind;
use harness::process::{Parent, Process, Role};
use harness::seat::Seat;
use serde::{Deserialize, Serialize};

use super::automata::{self, Traffic};
use super::form::{Cell, MEASURED, run_form};
use super::measure::Job;
use super::options::Shape;
use super::tables::{self, Visit};

/// Runs every form of a look-up once, under valgrind.
pub(super) const COUNT: Role = Role::new("count", run);

/// Size of the table.
const TABLE_MIB: u32 = 2;

/// Items of each call.
const ITEMS: usize = 1024;

/// The width of the interleaved forms, if the command's widths include it; otherwise the smallest
/// of those is used.
const WIDTH: usize = 16;

/// Valgrind is about fifty times as slow as the machine.
const PATIENCE: Duration = Duration::from_secs(300);

/// Instructions of one form.
#[derive(Clone, Copy, Debug)]
pub(super) struct Counted {
    pub(super) shape: Shape,
    pub(super) cell: Cell,
    /// Instructions of one look-up, including its share of the cost of the batch.
    pub(super) instructions: f64,
}

/// One call of a measured function.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Call {
    shape: Shape,
    cell: Cell,
    lookups: usize,
}

/// Counts every form of a look-up; `None` if there is no valgrind.
///
/// # Errors
/// [`harness::signal::Interrupted`]; valgrind failed, or wrote something unexpected.
pub(super) fn count(job: &Job) -> anyhow::Result<Option<Vec<Counted>>> {
    let Some(callgrind) = Callgrind::find()? else {
        return Ok(None);
    };
    let width = if job.widths.contains(&WIDTH) {
        WIDTH
    } else {
        job.widths[0]
    };
    let job = Job {
        table_mib: TABLE_MIB,
        widths: vec![width],
        ..job.clone()
    };
    let command = callgrind.command(MEASURED)?;
    let mut process = Process::spawn_by(command, COUNT, Seat::default(), &job)?;
    let calls: Vec<Call> = process.receive(PATIENCE)?;
    process.wait(PATIENCE)?;
    let counts = callgrind.counts(calls.len())?;
    let counted = calls.into_iter().zip(counts).map(|(call, count)| Counted {
        shape: call.shape,
        cell: call.cell,
        instructions: count / call.lookups as f64,
    });
    Ok(Some(counted.collect()))
}

/// The work of the process under valgrind: it calls each form once, then reports which forms these
/// were.
///
/// # Errors
/// There is not enough memory; the parent has ended.
pub(super) fn run(parent: &Parent) -> anyhow::Result<()> {
    let job: Job = parent.receive()?;
    tables::make(job.lookup, job.bytes(), Count { parent, job: &job })
}

struct Count<'a> {
    parent: &'a Parent,
    job: &'a Job,
}

impl Count<'_> {
    fn all(&self, lookups: usize, mut run: impl FnMut(Shape, Cell)) -> anyhow::Result<()> {
        let mut calls = Vec::new();
        for &shape in &self.job.shapes {
            for cell in self.job.lookup_cells() {
                run(shape, cell);
                calls.push(Call {
                    shape,
                    cell,
                    lookups,
                });
            }
        }
        self.parent.say(&calls)
    }
}

impl Visit for Count<'_> {
    fn table<L>(self, table: &L, key: impl Fn(&mut Random) -> L::Key) -> anyhow::Result<()>
    where
        L: InC,
        L::Value: PartialEq,
    {
        let mut random = Random::new(0xBEEF);
        let keys: Vec<L::Key> = (0..ITEMS).map(|_| key(&mut random)).collect();
        let packets = keys.iter().map(|&key| Packet {
            words: std::array::from_fn(|_| random.bits()),
            key,
        });
        let packets: Vec<Packet<L::Key>> = packets.collect();
        let mut values: Vec<L::Value> = keys.iter().map(|&key| table.find(key)).collect();
        let handled = values.iter().map(|&value| Handled { value, digest: 0 });
        let mut handled: Vec<Handled<L::Value>> = handled.collect();
        self.all(ITEMS, |shape, cell| match shape {
            Shape::Tight => run_form(cell, table, &Tight, &keys, &mut values),
            Shape::Handler => run_form(cell, table, &Handler, &packets, &mut handled),
        })
    }

    fn automata(self, automata: &Automata, sets: &[Vec<Vec<u8>>]) -> anyhow::Result<()> {
        let traffic = Traffic::new(sets, &mut Random::new(0xBEEF));
        let packets = traffic.packets();
        self.all(traffic.bytes(), |_, cell| {
            std::hint::black_box(automata::run_form(cell, automata, &packets));
        })
    }
}
