//! Drills that kill or stop processes at random moments: clients of the attacked server, and a
//! server of the drills' own. The clients of this second server must notice in time and find its
//! successor.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use dunlin_core::Rng;
use harness::process::{Parent, Process, Role};
use harness::seat::Seat;
use rustix::process::{Pid, Signal, kill_process};

use super::pawn::{self, Order, Word};
use crate::honest::server;
use crate::words::{Deeds, Event, Orders, Serve};

pub(crate) const ROLE: Role = Role::new("drills", run);

/// Time within which a client must get its first answer; if it does not, the server has refused it.
const START: Duration = Duration::from_secs(20);
/// Longest life of a client. Random lives end anywhere from the middle of the handshake to the
/// middle of the calls.
const LIFE_MS: u64 = 120;
/// Longest time for which a client is stopped: longer than the failure timeout.
const STOP_MS: u64 = 1_500;
/// Time between two drills of the drills' own server.
const EACH: Duration = Duration::from_secs(3);
/// Longest time for which the kernel may hold the address of a killed server.
const HELD: Duration = Duration::from_secs(5);
/// Number of clients of the drills' own server.
const OWN_CLIENTS: usize = 2;

struct Drill {
    rng: Rng,
    deeds: Deeds,
    end: Instant,
}

/// The drills' own server and its clients.
struct Own {
    server: Process,
    address: SocketAddr,
    clients: Vec<Process>,
    drilled: Instant,
}

fn run(parent: &Parent) -> anyhow::Result<()> {
    let Orders {
        target, seed, span, ..
    } = parent.receive()?;
    let mut drill = Drill {
        rng: Rng::new(seed),
        deeds: Deeds::default(),
        end: Instant::now() + span,
    };
    let mut own = Own::start()?;
    while Instant::now() < drill.end {
        drill.client(target.address)?;
        drill.listen(&mut own)?;
        if own.drilled.elapsed() > EACH {
            drill.own_server(&mut own)?;
        }
    }
    parent.say(&drill.deeds)
}

impl Drill {
    /// Starts a client of the attacked server, and kills or stops it.
    fn client(&mut self, server: SocketAddr) -> anyhow::Result<()> {
        let mut client = pawn(server, self.rng.next_u32().is_multiple_of(2))?;
        // One client in four must get an answer first, which shows that the server still accepts
        // new clients.
        if self.rng.next_u32().is_multiple_of(4) {
            let word = client.receive(START);
            match word {
                Ok(Word::Works) => {}
                Ok(Word::Complaint(what)) => self.complain(what),
                Err(error) => self.complain(format!("a new client: {error:#}")),
            }
        }
        self.rest(LIFE_MS);
        if self.rng.next_u32().is_multiple_of(4) {
            self.stop(&client, STOP_MS)?;
            self.rest(LIFE_MS);
        }
        signal(&client, Signal::KILL)?;
        self.deeds.kills += 1;
        Ok(())
    }

    /// Stops the drills' own server for a while, or kills it and starts another one in its place.
    fn own_server(&mut self, own: &mut Own) -> anyhow::Result<()> {
        if self.rng.next_u32().is_multiple_of(2) {
            self.stop(&own.server, STOP_MS)?;
        } else {
            signal(&own.server, Signal::KILL)?;
            self.deeds.kills += 1;
            self.rest(LIFE_MS);
            self.replace(own)?;
        }
        own.drilled = Instant::now();
        Ok(())
    }

    /// Starts another server at the address, which the kernel may still hold for the old one.
    fn replace(&mut self, own: &mut Own) -> anyhow::Result<()> {
        let begun = Instant::now();
        loop {
            match start(&own.address.to_string()) {
                Ok(started) => {
                    (own.server, own.address) = started;
                    return Ok(());
                }
                Err(error) if begun.elapsed() > HELD => return Err(error),
                Err(_) => self.rest(LIFE_MS),
            }
        }
    }

    /// Reads the reports of the clients of the drills' own server.
    fn listen(&mut self, own: &mut Own) -> anyhow::Result<()> {
        for client in &mut own.clients {
            while let Some(word) = client.try_receive()? {
                if let Word::Complaint(what) = word {
                    self.deeds.complaints.push(format!("drill: {what}"));
                }
            }
        }
        Ok(())
    }

    fn stop(&mut self, process: &Process, most_ms: u64) -> anyhow::Result<()> {
        signal(process, Signal::STOP)?;
        self.deeds.stops += 1;
        self.rest(most_ms);
        signal(process, Signal::CONT)
    }

    fn complain(&mut self, what: String) {
        self.deeds.complaints.push(format!("drill: {what}"));
    }

    /// Waits for a random time.
    fn rest(&mut self, most_ms: u64) {
        let rest = Duration::from_micros(self.rng.next_u64() % (1_000 * most_ms));
        let left = self.end.saturating_duration_since(Instant::now());
        std::thread::sleep(rest.min(left));
    }
}

impl Own {
    fn start() -> anyhow::Result<Self> {
        let (server, address) = start("127.0.0.1:0")?;
        let client = |number: usize| pawn(address, number.is_multiple_of(2));
        let clients = (0..OWN_CLIENTS).map(client);
        Ok(Self {
            server,
            address,
            clients: clients.collect::<anyhow::Result<_>>()?,
            drilled: Instant::now(),
        })
    }
}

fn pawn(server: SocketAddr, shares_memory: bool) -> anyhow::Result<Process> {
    let order = Order {
        server,
        shares_memory,
    };
    Process::spawn(pawn::ROLE, Seat::default(), &order)
}

fn start(address: &str) -> anyhow::Result<(Process, SocketAddr)> {
    let serve = Serve {
        address: address.to_owned(),
        spins: false,
    };
    let mut process = Process::spawn(server::ROLE, Seat::default(), &serve)?;
    match process.receive(START)? {
        Event::Ready(target) => Ok((process, target.address)),
        other => anyhow::bail!("the server began with {other:?}"),
    }
}

fn signal(process: &Process, signal: Signal) -> anyhow::Result<()> {
    let id = Pid::from_raw(i32::try_from(process.id())?);
    Ok(kill_process(
        id.expect("no child has the number 0"),
        signal,
    )?)
}
