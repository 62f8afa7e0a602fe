//! The processes of a run and its phases: one without attacks, then attacks by turns on another
//! server and on the watched one, until the time is over or a fault is found.
//!
//! Invariant: the watched server and the healthy client run from the beginning to the end, so
//! everything that an attack leaves behind is seen later.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
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
use crate::words::{Ask, Deeds, Event, Orders, Stats, Target};

/// Time in which a process begins, or answers.
const PATIENCE: Duration = Duration::from_secs(20);
/// The part of the quiet time in which pools grow and pages are touched.
const WARM: Duration = Duration::from_secs(2);
/// Time without attackers.
const QUIET: Duration = Duration::from_secs(5);
/// Time of a phase of attacks on the other server, and of one on the watched server.
const ELSEWHERE: Duration = Duration::from_secs(6);
const ATTACK: Duration = Duration::from_secs(14);
/// Time between two looks at the server.
const LOOK: Duration = Duration::from_millis(250);
/// Time by which a phase is over at the latest, for attackers that are late.
const LATE: Duration = Duration::from_secs(30);

/// If a nap takes longer than this, the machine has stood still: other threads may then miss a
/// failure timeout of a second, and no attacker is to blame.
const STILL: Duration = Duration::from_millis(300);
/// The nap of the thread that only sleeps.
const NAP: Duration = Duration::from_millis(10);

/// A server and where it listens.
struct Server {
    process: Process,
    target: Target,
}

struct Stage<'a> {
    args: &'a Args,
    watched: Server,
    other: Server,
    client: Process,
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
        let (watched, other) = (Server::start()?, Server::start()?);
        let params = (watched.target.address, args.seed);
        let mut client = Process::spawn(client::ROLE, Seat::default(), &params)?;
        client.receive::<()>(PATIENCE)?;
        Ok(Self {
            args,
            watched,
            other,
            client,
            rng: Rng::new(args.seed),
            begun: Instant::now(),
            seen: Seen::default(),
        })
    }

    fn play(&mut self) -> anyhow::Result<()> {
        wait(WARM)?;
        self.ask()?;
        self.seen.memory_before_kib = self.watched.memory_kib()?;
        wait(QUIET)?;
        let stats = self.ask()?;
        self.seen.add(Phase::Quiet, stats, Vec::new());
        let end = self.begun + self.args.span();
        while Instant::now() < end {
            self.attack(Phase::Elsewhere, ELSEWHERE)?;
            let left = end.saturating_duration_since(Instant::now());
            self.attack(Phase::Attacked, left.min(ATTACK).max(ELSEWHERE))?;
            // More output would only bury the fault.
            if !judge::at_once(&self.seen).is_empty() {
                return Ok(());
            }
        }
        Ok(())
    }

    /// Runs all attackers against one of the servers.
    fn attack(&mut self, phase: Phase, span: Duration) -> anyhow::Result<()> {
        let watch = Watch::start();
        let target = match phase {
            Phase::Attacked => &self.watched.target,
            Phase::Quiet | Phase::Elsewhere => &self.other.target,
        };
        let mut attackers = Vec::new();
        for attack in self.args.attacks() {
            let orders = Orders {
                target: target.clone(),
                seed: self.rng.next_u64(),
                span,
            };
            attackers.push(Process::spawn(attack.role(), Seat::default(), &orders)?);
        }
        let deadline = Instant::now() + span + LATE;
        let mut deeds = Vec::new();
        while !attackers.is_empty() {
            wait(LOOK)?;
            self.look()?;
            if Instant::now() > deadline {
                bail!("the attackers do not end");
            }
            let mut left = Vec::new();
            for mut attacker in attackers {
                match attacker.try_receive::<Deeds>() {
                    Ok(Some(done)) => deeds.push(done),
                    Ok(None) => left.push(attacker),
                    // One attacker that failed is noted; the others go on.
                    Err(error) => self.seen.ended.push(format!("{error:#}")),
                }
            }
            attackers = left;
        }
        let stats = self.ask()?;
        match watch.longest_rest() {
            rest if rest > STILL => self.seen.stood_still(rest, stats),
            _ => self.seen.add(phase, stats, deeds),
        }
        report::progress(self.args, &self.seen, self.begun.elapsed());
        Ok(())
    }

    /// Looks at both servers.
    fn look(&mut self) -> anyhow::Result<()> {
        let memory = self.watched.memory_kib()?;
        self.seen.memory_kib.push(memory);
        for server in [&mut self.watched, &mut self.other] {
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

    /// The healthy client's counts since the last request for them.
    fn ask(&mut self) -> anyhow::Result<Stats> {
        self.client.send(&Ask)?;
        self.client.receive(PATIENCE).context("the healthy client")
    }
}

/// A thread that sleeps, and measures for how long.
struct Watch {
    over: Arc<AtomicBool>,
    thread: JoinHandle<Duration>,
}

impl Watch {
    fn start() -> Self {
        let over = Arc::new(AtomicBool::new(false));
        let ends = Arc::clone(&over);
        let thread = std::thread::spawn(move || {
            let mut longest = Duration::ZERO;
            while !ends.load(Ordering::Relaxed) {
                let begun = Instant::now();
                std::thread::sleep(NAP);
                longest = longest.max(begun.elapsed());
            }
            longest
        });
        Self { over, thread }
    }

    fn longest_rest(self) -> Duration {
        self.over.store(true, Ordering::Relaxed);
        self.thread.join().unwrap_or(Duration::MAX)
    }
}

impl Server {
    fn start() -> anyhow::Result<Self> {
        let mut process = Process::spawn(server::ROLE, Seat::default(), &"127.0.0.1:0")?;
        match process.receive(PATIENCE)? {
            Event::Ready(target) => Ok(Self { process, target }),
            other => bail!("the server began with {other:?}"),
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

/// Sleeps.
fn wait(span: Duration) -> Result<(), signal::Interrupted> {
    let end = Instant::now() + span;
    while Instant::now() < end {
        signal::check()?;
        let left = end.saturating_duration_since(Instant::now());
        std::thread::sleep(left.min(Duration::from_millis(20)));
    }
    Ok(())
}
