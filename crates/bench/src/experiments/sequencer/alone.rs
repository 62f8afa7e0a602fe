//! The server's own rate. For each number, the client needs more time than the server. If each had
//! a processor, the client would set the rate, and a slower server would not show. So here they
//! take turns in one thread, and only the server's turns count.

use anyhow::ensure;
use dunlin::sequencer::{Desk, Files, perform};
use dunlin::{Nexus, Rpc};

use super::client::{App, Params, Step, connect};
use super::server::{desk, register};
use crate::harness::probe::patience;
use crate::harness::subject::steps::Stepping;
use crate::harness::subject::{Medium, over};
use crate::harness::ticks::{self, Stretch};
use harness::process::{Parent, Process, Role};
use harness::seat::Seat;

/// Gives and takes numbers.
pub(super) const ROLE: Role = Role::new("numbers-turns", take_turns);

/// Turns between two looks at the clock.
const BLOCK: u32 = 64;

/// The most turns until the requests in flight have ended.
const MOST: u32 = 1_000_000;

/// Starts the process. Returns the server's rate of each step.
///
/// # Errors
/// A request has failed, or had a wrong answer.
pub(super) fn run(params: &Params) -> anyhow::Result<Vec<f64>> {
    let mut process = Process::spawn(ROLE, Seat::default(), params)?;
    let steps = u32::try_from(params.steps.len())?;
    process.receive(patience(params.span * steps))
}

/// # Errors
/// A request has failed, or had a wrong answer.
fn take_turns(parent: &Parent) -> anyhow::Result<()> {
    let params: Params = parent.receive()?;
    over!(params.setting, steps(parent, &params))
}

/// Both sides.
struct Pair<T: Medium> {
    client: Rpc<T, App>,
    server: Rpc<T, Desk>,
    files: Files,
    /// Ticks of the server's turns with requests.
    busy: u64,
}

fn steps<T: Medium>(parent: &Parent, params: &Params) -> anyhow::Result<()> {
    let setting = &params.setting;
    let (near, far): (Nexus, Nexus) = (setting.bind()?, setting.bind()?);
    setting.seat.take()?;
    let (desk, files, folder) = desk()?;
    let mut pair = Pair::<T> {
        client: setting.open_at(&near, App::new(params.batch))?,
        server: setting.open_at(&far, desk)?,
        files,
        busy: 0,
    };
    register(&mut pair.server);
    let params = Params {
        server: far.address(),
        ..params.clone()
    };
    let (server, files) = (&mut pair.server, &mut pair.files);
    connect(&mut pair.client, &params, || {
        server.run_once();
        keep(server, files);
    })?;
    let mut rates = Vec::new();
    for &step in &params.steps {
        rates.push(pair.measure(step, &params)?);
    }
    pair.client.app().check_all()?;
    drop(folder);
    parent.say(&rates)
}

/// The work of the disk's thread, which is not measured.
fn keep<T: Medium>(server: &mut Rpc<T, Desk>, files: &mut Files) {
    let (desk, mut cx) = server.with();
    if let Some(job) = desk.next_job(cx.now()) {
        desk.on_outcome(perform(files, &job), &mut cx);
    }
}

impl<T: Medium> Pair<T> {
    fn turn(&mut self) {
        self.client.run_once();
        let begin = ticks::now();
        let progress = self.server.run_once();
        if progress.frames > 0 {
            self.busy += ticks::now().wrapping_sub(begin);
        }
        keep(&mut self.server, &mut self.files);
    }

    /// The server's rate, per second of its turns. At the end, nothing is in flight.
    #[expect(
        clippy::cast_precision_loss,
        reason = "counts of a run are far below 2^53"
    )]
    fn measure(&mut self, step: Step, params: &Params) -> anyhow::Result<f64> {
        let (app, mut cx) = self.client.with();
        app.begin(step, &mut cx);
        let (first, stretch) = (self.client.app().answered(), Stretch::begin());
        self.busy = 0;
        while stretch.elapsed() < params.span {
            (0..BLOCK).for_each(|_| self.turn());
        }
        let answers = self.client.app().answered() - first;
        let busy = self.busy as f64 * stretch.ns_per_tick() / 1e9;
        self.client.app_mut().end();
        for _ in 0..MOST {
            self.turn();
            if self.client.app().is_idle() {
                break;
            }
        }
        ensure!(self.client.app().is_idle(), "a request does not end");
        let wrong = self.client.app_mut().take_wrong();
        ensure!(wrong.is_none(), "{}", wrong.unwrap_or_default());
        ensure!(answers > 0, "nothing was answered");
        Ok(answers as f64 / busy)
    }
}
