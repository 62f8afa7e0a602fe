//! The processes of a run and its phases. The first phase has no attacks. Then, in turn, come
//! attacks on another server, attacks on the watched one, and a storm of attacks on the watched
//! one, until the time is over or a fault is found.
//!
//! Invariant: the watched server and the healthy client run from beginning to end, so damage that
//! outlasts an attack shows in a later phase.

use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use dunlin_core::Rng;
use harness::process::Process;
use harness::seat::Seat;
use harness::signal;

use crate::args::Args;
use crate::honest::{client, server};
use crate::judge::{self, Phase, Seen};
use crate::report;
use crate::watch::Watches;
use crate::words::{Ask, Counts, Deeds, Event, Orders, Rates, STEADY, Serve, Stats, Target};

/// Longest time that a process takes to start, or to answer.
const PATIENCE: Duration = Duration::from_secs(20);
/// Time before the quiet phase: pools grow, and pages are touched for the first time.
const WARM: Duration = Duration::from_secs(2);
/// Length of the quiet phase.
const QUIET: Duration = Duration::from_secs(5);
/// Length of the attacks on either server.
const ATTACK: Duration = Duration::from_secs(7);
/// Length of a storm. The last one is shorter if less time is left, but at least [`SHORT`].
const STORM: Duration = Duration::from_secs(14);
/// See [`STORM`].
const SHORT: Duration = Duration::from_secs(3);
/// Time between two checks of the servers.
const LOOK: Duration = Duration::from_millis(250);
/// How much longer than its span a phase may take, because attackers may be late.
const LATE: Duration = Duration::from_secs(30);

/// If a watch's nap takes longer than this, the machine has stood still: its host did not run a
/// processor. Threads on it may then miss a failure timeout of a second, and no attacker is to
/// blame.
const STILL: Duration = Duration::from_millis(300);

/// A server and its addresses.
struct Server {
    process: Process,
    target: Target,
}

struct Stage<'a> {
    args: &'a Args,
    server: Server,
    /// Another server of the same kind, which the healthy client does not use.
    other: Server,
    client: Process,
    watches: Watches,
    rng: Rng,
    begun: Instant,
    seen: Seen,
}

/// Runs all phases.
///
/// # Errors
/// A process cannot be started, or the server or the healthy client has ended.
pub(crate) fn run(args: &Args) -> anyhow::Result<Seen> {
    let mut stage = Stage::set(args)?;
    let played = stage.play();
    stage.seen.interrupted = signal::check().is_err();
    match played {
        Err(error) if !error.is::<signal::Interrupted>() => Err(error),
        _ => Ok(stage.seen),
    }
}

impl<'a> Stage<'a> {
    fn set(args: &'a Args) -> anyhow::Result<Self> {
        let (server, other) = (Server::start()?, Server::start()?);
        let params = (server.target.address, args.seed);
        let mut client = Process::spawn(client::ROLE, Seat::default(), &params)?;
        client.receive::<()>(PATIENCE)?;
        Ok(Self {
            args,
            server,
            other,
            client,
            watches: Watches::start(PATIENCE),
            rng: Rng::new(args.seed),
            begun: Instant::now(),
            seen: Seen {
                attacks: args.attacks(),
                ..Seen::default()
            },
        })
    }

    fn play(&mut self) -> anyhow::Result<()> {
        wait(WARM)?;
        self.ask()?;
        self.seen.memory_before_kib = self.server.memory_kib()?;
        wait(QUIET)?;
        let stats = self.ask()?;
        self.seen.add(Phase::Quiet, stats, Vec::new());
        let before = self.server.counts(&mut self.seen.events)?;
        let end = self.begun + self.args.span();
        while Instant::now() < end {
            self.attack(Phase::Elsewhere, STEADY, ATTACK)?;
            self.attack(Phase::Attacked, STEADY, ATTACK)?;
            let left = end.saturating_duration_since(Instant::now());
            self.attack(Phase::Storm, self.args.storm(), left.clamp(SHORT, STORM))?;
            self.seen.counts = self.server.counts(&mut self.seen.events)?.since(before);
            report::progress(self.args, &self.seen, self.begun.elapsed());
            // Further phases would only bury the fault in output.
            let found = !judge::at_once(&self.seen).is_empty();
            if found || self.args.reach && self.seen.has_reached() {
                return Ok(());
            }
        }
        Ok(())
    }

    /// Runs all attackers.
    fn attack(&mut self, phase: Phase, rates: Rates, span: Duration) -> anyhow::Result<()> {
        let target = match phase {
            Phase::Elsewhere => &self.other.target,
            _ => &self.server.target,
        };
        let mut attackers = Vec::new();
        for attack in self.args.attacks() {
            let orders = Orders {
                target: target.clone(),
                seed: self.rng.next_u64(),
                span,
                rates,
            };
            attackers.push(Process::spawn(attack.role(), Seat::default(), &orders)?);
        }
        self.phase(phase, attackers, span)
    }

    /// Watches the servers and the client until the attackers have ended.
    fn phase(
        &mut self,
        phase: Phase,
        mut others: Vec<Process>,
        span: Duration,
    ) -> anyhow::Result<()> {
        self.watches.longest(PATIENCE)?;
        let deadline = Instant::now() + span + LATE;
        let mut deeds = Vec::new();
        while !others.is_empty() {
            wait(LOOK)?;
            self.look()?;
            if Instant::now() > deadline {
                bail!("the attackers do not end");
            }
            let mut left = Vec::new();
            for mut other in others {
                match other.try_receive::<Deeds>() {
                    Ok(Some(done)) => deeds.push(done),
                    Ok(None) => left.push(other),
                    // An attacker that failed is noted; the others continue.
                    Err(error) => self.seen.ended.push(format!("{error:#}")),
                }
            }
            others = left;
        }
        let stats = self.ask()?;
        match self.watches.longest(PATIENCE)? {
            rest if rest > STILL => self.seen.stood_still(phase, rest, stats, deeds),
            _ => self.seen.add(phase, stats, deeds),
        }
        Ok(())
    }

    /// Samples the watched server's memory, and reads the reports of both servers.
    fn look(&mut self) -> anyhow::Result<()> {
        let memory = self.server.memory_kib()?;
        self.seen.memory_kib.push(memory);
        for server in [&mut self.server, &mut self.other] {
            while let Some(event) = server
                .process
                .try_receive::<Event>()
                .context("a server that was attacked has ended")?
            {
                self.seen.events.push(event);
            }
        }
        Ok(())
    }

    /// The healthy client's counts since they were last asked for.
    fn ask(&mut self) -> anyhow::Result<Stats> {
        // If the client has ended, sending fails, and the read below returns the client's last
        // error.
        let _ = self.client.send(&Ask);
        self.client.receive(PATIENCE).context("the healthy client")
    }
}

impl Server {
    fn start() -> anyhow::Result<Self> {
        let serve = Serve {
            address: "127.0.0.1:0".to_owned(),
            spins: true,
        };
        let mut process = Process::spawn(server::ROLE, Seat::default(), &serve)?;
        match process.receive(PATIENCE)? {
            Event::Ready(target) => Ok(Self { process, target }),
            other => bail!("the server began with {other:?}"),
        }
    }

    /// The server's counts; events that arrive before them go to `events`.
    fn counts(&mut self, events: &mut Vec<Event>) -> anyhow::Result<Counts> {
        self.process.send(&Ask)?;
        loop {
            match self.process.receive(PATIENCE).context("the server")? {
                Event::Counts(counts) => return Ok(counts),
                other => events.push(other),
            }
        }
    }

    /// Resident memory.
    fn memory_kib(&self) -> anyhow::Result<u64> {
        let path = format!("/proc/{}/status", self.process.id());
        let status = std::fs::read_to_string(path)?;
        let line = status.lines().find(|line| line.starts_with("VmRSS:"));
        let number = line.and_then(|line| line.split_whitespace().nth(1));
        let number = number.context("the server has ended")?;
        Ok(number.parse()?)
    }
}

/// Sleeps for `span`, or until Ctrl-C.
fn wait(span: Duration) -> Result<(), signal::Interrupted> {
    let end = Instant::now() + span;
    while Instant::now() < end {
        signal::check()?;
        let left = end.saturating_duration_since(Instant::now());
        std::thread::sleep(left.min(Duration::from_millis(20)));
    }
    Ok(())
}
