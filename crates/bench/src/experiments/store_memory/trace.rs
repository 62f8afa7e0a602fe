//! A trace of requests, and the client that plays it over TCP: it asks for keys, and writes the
//! missing ones, like a program with a read-through cache.

use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use anyhow::{bail, ensure};
use serde::{Deserialize, Serialize};

use super::items::{LONGEST, MEAN, len_of};
use crate::harness::items::{self, Draws, Mix, Popularity};
use harness::process::{Parent, Role};
use harness::signal;

/// Plays a trace, and reports the share of requests that were hits.
pub(super) const ROLE: Role = Role::new("store-trace", play);

/// The bytes of all keys and values are this many times the memory.
const TIMES: u64 = 4;

/// Requests per key before hits count, and requests per key that count.
const WARM_UP: u64 = 7;
const COUNTED: u64 = 5;

/// Requests that are sent together.
const GROUP: u64 = 32;

/// How long to wait for an answer.
const PATIENCE: Duration = Duration::from_secs(10);

/// A trace, which the numbers determine.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) struct Trace {
    keys: u32,
    /// Percentage of requests for keys that never come again.
    scans: u8,
}

impl Trace {
    /// A trace for a cache of this size.
    pub(super) fn new(memory_mib: u32, scans: u8) -> Self {
        let keys = TIMES * (u64::from(memory_mib) << 20) / MEAN;
        let keys = u32::try_from(keys).unwrap_or(u32::MAX / 16);
        Self { keys, scans }
    }

    /// How long it takes to play, on a slow machine.
    pub(super) fn takes(self) -> Duration {
        let requests = u64::from(self.keys) * (WARM_UP + COUNTED);
        Duration::from_micros(10 * requests)
    }

    fn requests(self) -> [u64; 2] {
        [WARM_UP, COUNTED].map(|each| each * u64::from(self.keys))
    }
}

/// Numbers of items, in the order of the requests.
struct Numbers {
    trace: Trace,
    draws: Draws,
    /// The key that the next request of a scan names.
    scanned: u32,
}

impl Numbers {
    fn new(trace: Trace) -> Self {
        let mix = Mix {
            popularity: Popularity::Zipf,
            ..Mix::ALL_GETS
        };
        Self {
            trace,
            draws: Draws::new(mix, trace.keys, 42),
            scanned: trace.keys,
        }
    }

    fn next(&mut self) -> u32 {
        if self.draws.below(100) >= u32::from(self.trace.scans) {
            // Requests the item whose number is the drawn rank, so that each key occurs. `draw`
            // would leave some keys out. Keys and lengths follow from scattered numbers.
            return self.draws.rank();
        }
        self.scanned += 1;
        self.scanned
    }
}

/// # Errors
/// The server does not answer as memcached does.
fn play(parent: &Parent) -> anyhow::Result<()> {
    let (server, trace): (SocketAddr, Trace) = parent.receive()?;
    let mut client = Client::new(server)?;
    let mut numbers = Numbers::new(trace);
    let [warm_up, counted] = trace.requests();
    client.ask(&mut numbers, warm_up)?;
    let hits = client.ask(&mut numbers, counted)?;
    #[expect(clippy::cast_precision_loss, reason = "counts of a run are small")]
    parent.say(&(hits as f64 / counted as f64))
}

struct Client {
    answers: BufReader<TcpStream>,
    socket: TcpStream,
    line: Vec<u8>,
    value: Vec<u8>,
    request: Vec<u8>,
}

impl Client {
    fn new(server: SocketAddr) -> anyhow::Result<Self> {
        let socket = TcpStream::connect(server)?;
        socket.set_nodelay(true)?;
        socket.set_read_timeout(Some(PATIENCE))?;
        Ok(Self {
            answers: BufReader::new(socket.try_clone()?),
            socket,
            line: Vec::new(),
            value: vec![7; LONGEST],
            request: Vec::new(),
        })
    }

    /// Asks for this number of items in groups, writes the missing ones, and returns the number of
    /// hits.
    fn ask(&mut self, numbers: &mut Numbers, requests: u64) -> anyhow::Result<u64> {
        let (mut left, mut hits) = (requests, 0);
        let mut missing = Vec::new();
        while left > 0 {
            signal::check()?;
            let group: Vec<u32> = (0..GROUP.min(left)).map(|_| numbers.next()).collect();
            left -= group.len() as u64;
            missing.clear();
            self.send(group.iter(), |request, number| {
                request.extend_from_slice(b"mg ");
                request.extend_from_slice(&items::key(*number));
                // The client asks only whether the item exists, and needs no value.
                request.extend_from_slice(b" s\r\n");
            })?;
            for number in group {
                match self.answer()? {
                    answer if answer.starts_with(b"HD s") => hits += 1,
                    b"EN" => missing.push(number),
                    other => bail!("a get: {}", other.escape_ascii()),
                }
            }
            let value = std::mem::take(&mut self.value);
            self.send(missing.iter(), |request, number| {
                let value = &value[..len_of(*number)];
                request.extend_from_slice(b"ms ");
                request.extend_from_slice(&items::key(*number));
                // Writing to a vector does not fail.
                let _ = write!(request, " {}\r\n", value.len());
                request.extend_from_slice(value);
                request.extend_from_slice(b"\r\n");
            })?;
            self.value = value;
            for _ in &missing {
                let answer = self.answer()?;
                ensure!(answer == b"HD", "a set: {}", answer.escape_ascii());
            }
        }
        Ok(hits)
    }

    fn send<'n>(
        &mut self,
        numbers: impl Iterator<Item = &'n u32>,
        mut write: impl FnMut(&mut Vec<u8>, &u32),
    ) -> anyhow::Result<()> {
        self.request.clear();
        numbers.for_each(|number| write(&mut self.request, number));
        Ok(self.socket.write_all(&self.request)?)
    }

    /// The next line, without its end.
    fn answer(&mut self) -> anyhow::Result<&[u8]> {
        self.line.clear();
        self.answers.read_until(b'\n', &mut self.line)?;
        match self.line.strip_suffix(b"\r\n") {
            Some(line) => Ok(line),
            None => bail!("the server has closed the connection"),
        }
    }
}

#[cfg(test)]
mod tests;
