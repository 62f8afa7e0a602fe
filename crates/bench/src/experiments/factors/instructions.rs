//! Instructions of an RPC, client and server together: with all factors on, and with each factor
//! off.
//!
//! A child process under valgrind has both endpoints in one thread, and a clock that advances by
//! the same time in every turn, so that every run executes the same instructions.

use std::cell::Cell;
use std::hint::black_box;
use std::rc::Rc;
use std::time::Duration;

use anyhow::{Context, anyhow};
use dunlin::{Clock, Config, Nanos, SessionOptions, Shm};
use dunlin_core::EndpointNum;
use dunlin_core::transport::{Halves, PeerId};
use dunlin_transport::connect::{EndpointUid, PeerInfo, meet};
use dunlin_transport::shm::{Options, ShmRx, ShmTx};

use super::{BATCH, Factor, Peer, SESSIONS, ShmEndpoint, register, switch, use_sessions};
use crate::harness::ticks;
use harness::callgrind::Callgrind;
use harness::process::{Parent, Process, Role};
use harness::seat::Seat;

/// Runs RPCs under valgrind, with each factor off in turn.
pub(crate) const COUNT: Role = Role::new("factors-count", run);

/// RPCs before the first that counts, in which pools fill.
const WARM_UP: u64 = 300;

/// RPCs that count. A build with debug assertions makes fewer, because its figures mean nothing.
const RPCS: u64 = match cfg!(debug_assertions) {
    true => 150,
    false => 1500,
};

/// The function whose calls count: [`run_counted`].
const MEASURED: &str = "run_counted";

/// Virtual time of one turn of an endpoint: with 60 RPCs in flight, it corresponds to four million
/// RPCs per second.
const TURN: Nanos = Nanos(7500);

/// How long to wait for valgrind, which is about fifty times as slow as the machine.
const PATIENCE: Duration = Duration::from_secs(120);

/// Counts with all factors on, and then with each one off; `None` if valgrind is not installed.
///
/// # Errors
/// [`harness::signal::Interrupted`]; valgrind failed, or wrote something unexpected.
pub(super) fn count() -> anyhow::Result<Option<Vec<f64>>> {
    let Some(callgrind) = Callgrind::find()? else {
        return Ok(None);
    };
    let command = callgrind.command(MEASURED)?;
    let mut process = Process::spawn_by(command, COUNT, Seat::default(), &())?;
    let rpcs: Vec<u32> = process.receive(PATIENCE)?;
    process.wait(PATIENCE)?;
    let counts = callgrind.counts(rpcs.len())?;
    let per_rpc = counts.into_iter().zip(rpcs);
    let per_rpc = per_rpc.map(|(count, rpcs)| count / f64::from(rpcs));
    Ok(Some(per_rpc.collect()))
}

/// The work of the process under valgrind.
///
/// # Errors
/// The system refuses something, or an answer was wrong.
pub(crate) fn run(parent: &Parent) -> anyhow::Result<()> {
    parent.receive::<()>()?;
    let all_on = std::iter::once(None);
    let mut rpcs = Vec::new();
    for off in all_on.chain(Factor::ALL.map(Some)) {
        let mut pair = Pair::connected()?;
        pair.switch(off)?;
        pair.run(WARM_UP)?;
        rpcs.push(u32::try_from(run_counted(&mut pair)?)?);
    }
    parent.say(&rpcs)
}

#[inline(never)]
fn run_counted(pair: &mut Pair) -> anyhow::Result<u64> {
    pair.run(RPCS)
}

/// A clock that the pair advances. Reading it takes as many instructions as reading the real clock.
struct Turns(Rc<Cell<u64>>);

impl Clock for Turns {
    #[inline]
    fn now(&mut self) -> Nanos {
        black_box(u128::from(ticks::now()).wrapping_mul(1 << 31) >> 32);
        Nanos(self.0.get())
    }
}

struct Pair {
    client: ShmEndpoint<Turns>,
    server: ShmEndpoint<Turns>,
    time: Rc<Cell<u64>>,
}

impl Pair {
    fn connected() -> anyhow::Result<Self> {
        let time = Rc::new(Cell::new(0));
        let ((here, to_server), (there, to_client)) = ends()?;
        let config = Config {
            hugepages: false,
            ..Config::default()
        };
        let open = |halves, seed| {
            let clock = Turns(Rc::clone(&time));
            let number = EndpointNum::take().context("this process made too many endpoints")?;
            let app = Peer::default();
            let mut rpc = ShmEndpoint::new(app, clock, halves, config.clone(), seed, None, number)?;
            register(&mut rpc);
            anyhow::Ok(rpc)
        };
        let (mut client, mut server) = (open(here, 1)?, open(there, 2)?);
        let mut sessions = Vec::new();
        for _ in 0..SESSIONS {
            let session = client.lifecycle().open(&SessionOptions::default())?;
            let offer = client
                .lifecycle()
                .offer_of(session)
                .context("it is opening")?;
            let answer = server.lifecycle().accept(to_client, &offer);
            let (_, answer) = answer.map_err(|why| anyhow!("refused: {why:?}"))?;
            let opened = client.lifecycle().opened(session, to_server, &answer);
            opened.map_err(|why| anyhow!("not opened: {why:?}"))?;
            sessions.push(session);
        }
        use_sessions(&mut client, sessions);
        let (peer, mut cx) = client.with();
        peer.pipeline.begin(BATCH, u64::MAX, &mut cx)?;
        Ok(Self {
            client,
            server,
            time,
        })
    }

    fn switch(&mut self, off: Option<Factor>) -> anyhow::Result<()> {
        switch(&mut self.client, off)?;
        switch(&mut self.server, off)
    }

    /// Runs until at least `rpcs` RPCs are done; returns their number, which may be a few more.
    fn run(&mut self, rpcs: u64) -> anyhow::Result<u64> {
        let begin = self.client.app_mut().pipeline.completed()?;
        loop {
            let done = self.client.app_mut().pipeline.completed()? - begin;
            if done >= rpcs {
                return Ok(done);
            }
            self.client.run_once();
            self.time.set(self.time.get() + TURN.0);
            self.server.run_once();
            self.time.set(self.time.get() + TURN.0);
        }
    }
}

type End = (Halves<ShmRx, ShmTx>, PeerId);

/// The two ends of a channel, as in two processes.
fn ends() -> anyhow::Result<(End, End)> {
    let (mut near, mut far) = (
        Shm::open(Options::default())?,
        Shm::open(Options::default())?,
    );
    let infos = [1, 2].map(|uid| PeerInfo::of_this_host(EndpointUid([uid; 16])));
    let [to_far, to_near] = meet::<Shm>([&mut near, &mut far], &infos)?;
    Ok(((near, to_far), (far, to_near)))
}
