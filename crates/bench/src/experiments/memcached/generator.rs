//! The load generator. It writes all items into a server, and gets them by memcached's text
//! protocol over TCP, in one thread that blocks in the kernel. It compares every answer with the
//! expected one, byte for byte.

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use anyhow::{bail, ensure};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use serde::{Deserialize, Serialize};

use crate::harness::items::{self, Draws, Items, Mix};
use crate::harness::rtt::Recorder;
use crate::harness::ticks;
use harness::process::{Parent, Role};
use harness::sys;

/// Writes all items.
pub(in crate::experiments) const LOAD: Role = Role::new("memcached-load", load);

/// Gets items.
pub(super) const GET: Role = Role::new("memcached-get", get);

/// Time before the first get that counts.
const WARM_UP: Duration = Duration::from_millis(20);

/// Bytes of sets that are sent together.
const SENT: usize = 1 << 16;

/// Gets that are drawn beforehand.
const DRAWN: usize = 1 << 20;

/// How long to wait for an answer.
const PATIENCE: Duration = Duration::from_secs(10);

/// How a connection asks.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(super) enum Way {
    /// One get at a time.
    Single,
    /// This number of gets is sent before their answers are read.
    Pipelined(u32),
    /// One get with this number of keys at a time.
    Many(u32),
}

impl Way {
    /// Its name in rows.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Single => "single",
            Self::Pipelined(_) => "pipelined",
            Self::Many(_) => "many_keys",
        }
    }

    /// The number of commands that are sent together, and of keys in each.
    const fn shape(self) -> (u32, u32) {
        match self {
            Self::Single => (1, 1),
            Self::Pipelined(commands) => (commands, 1),
            Self::Many(keys) => (1, keys),
        }
    }
}

/// The work of a generator.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) struct Params {
    pub(super) server: SocketAddr,
    /// The id of the server's process, whose processor time is read.
    pub(super) process: u32,
    pub(super) items: Items,
    pub(super) way: Way,
    pub(super) connections: u32,
    pub(super) span: Duration,
}

/// The result.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) struct Report {
    gets_per_s: f64,
    /// Gets for each second of the server's processor time.
    gets_per_cpu_s: f64,
    /// Time from the first byte of a request to the last of its answer, in ns.
    p50: f64,
    p99: f64,
    /// Percentage of a processor that the generator used.
    busy: f64,
}

impl Report {
    /// The values, in the order of the experiment's metrics.
    pub(super) const fn values(&self) -> [f64; 5] {
        [
            self.gets_per_s,
            self.gets_per_cpu_s,
            self.p50,
            self.p99,
            self.busy,
        ]
    }
}

/// # Errors
/// The server refuses, or closes the connection.
fn load(parent: &Parent) -> anyhow::Result<()> {
    let (server, items): (SocketAddr, Items) = parent.receive()?;
    let mut socket = connect(server)?;
    let mut sets = Vec::with_capacity(2 * SENT);
    let mut value = vec![0; items.value];
    for number in 0..items.count {
        items::fill(&mut value, number);
        sets.extend_from_slice(b"set ");
        sets.extend_from_slice(&items::key(number));
        write!(sets, " 0 0 {} noreply\r\n", items.value)?;
        sets.extend_from_slice(&value);
        sets.extend_from_slice(b"\r\n");
        if sets.len() >= SENT {
            socket.write_all(&sets)?;
            sets.clear();
        }
    }
    // The answer to the last command shows that the server has read everything.
    sets.extend_from_slice(b"mn\r\n");
    socket.write_all(&sets)?;
    let mut answer = [0; 4];
    socket.read_exact(&mut answer)?;
    ensure!(
        &answer == b"MN\r\n",
        "the server answers {}",
        answer.escape_ascii()
    );
    parent.say(&())
}

/// # Errors
/// An answer is wrong or missing.
fn get(parent: &Parent) -> anyhow::Result<()> {
    let params: Params = parent.receive()?;
    let mut draws = Draws::new(Mix::ALL_GETS, params.items.count, 13);
    let drawn: Vec<u32> = (0..DRAWN).map(|_| draws.draw().number).collect();
    let mut numbers = drawn.into_iter().cycle();
    let mut clients = Vec::new();
    for _ in 0..params.connections {
        let mut client = Client::new(connect(params.server)?, params.way, params.items);
        client.ask(&mut numbers)?;
        clients.push(client);
    }
    let mut recorder = Recorder::skipping(0);
    run(&mut clients, &mut numbers, &mut recorder, WARM_UP)?;
    recorder = Recorder::skipping(0);
    let begin = Instant::now();
    let own = sys::thread_time()?;
    let server = sys::processor_time_of(params.process)?;
    run(&mut clients, &mut numbers, &mut recorder, params.span)?;
    let took = begin.elapsed().as_secs_f64();
    let own = sys::thread_time()?.saturating_sub(own).as_secs_f64();
    let server = sys::processor_time_of(params.process)?.saturating_sub(server);
    let (commands, keys) = params.way.shape();
    #[expect(clippy::cast_precision_loss, reason = "counts of a run are small")]
    let gets = (recorder.count() * u64::from(commands * keys)) as f64;
    parent.say(&Report {
        gets_per_s: gets / took,
        gets_per_cpu_s: gets / server.as_secs_f64(),
        p50: recorder.quantile(0.5),
        p99: recorder.quantile(0.99),
        busy: 100.0 * own / took,
    })
}

/// For `span`, sends a new request whenever an answer is complete.
fn run(
    clients: &mut [Client],
    numbers: &mut impl Iterator<Item = u32>,
    recorder: &mut Recorder,
    span: Duration,
) -> anyhow::Result<()> {
    let begin = Instant::now();
    let mut ready = Vec::new();
    while begin.elapsed() < span || recorder.count() == 0 {
        wait(clients, &mut ready)?;
        for &index in &ready {
            let client = &mut clients[index];
            if client.read()? {
                recorder.record(ticks::now().saturating_sub(client.begin));
                client.ask(numbers)?;
            }
        }
    }
    Ok(())
}

/// Waits until some clients can read, and puts their indices into `ready`. A single client waits in
/// its read.
fn wait(clients: &[Client], ready: &mut Vec<usize>) -> anyhow::Result<()> {
    ready.clear();
    if clients.len() == 1 {
        ready.push(0);
        return Ok(());
    }
    let on = |client| PollFd::new(client, PollFlags::IN);
    let mut polled: Vec<PollFd<'_>> = clients.iter().map(|it| on(&it.socket)).collect();
    let timeout = Timespec::try_from(PATIENCE)?;
    let count = poll(&mut polled, Some(&timeout))?;
    ensure!(count > 0, "no answer has come for {} s", PATIENCE.as_secs());
    let is_ready =
        |(index, polled): (usize, &PollFd<'_>)| (!polled.revents().is_empty()).then_some(index);
    ready.extend(polled.iter().enumerate().filter_map(is_ready));
    Ok(())
}

/// Connects, and switches off the delay of small packets (`TCP_NODELAY`).
fn connect(server: SocketAddr) -> anyhow::Result<TcpStream> {
    let socket = TcpStream::connect(server)?;
    socket.set_nodelay(true)?;
    socket.set_read_timeout(Some(PATIENCE))?;
    Ok(socket)
}

/// A connection to a server.
struct Client {
    socket: TcpStream,
    way: Way,
    /// Bytes of a value.
    value: usize,
    /// The bytes between key and value in an answer.
    middle: Vec<u8>,
    request: Vec<u8>,
    /// The answer that is expected.
    expected: Vec<u8>,
    answer: Vec<u8>,
    /// Bytes of the answer that have arrived.
    come: usize,
    /// When the request was sent, in ticks.
    begin: u64,
}

impl Client {
    fn new(socket: TcpStream, way: Way, items: Items) -> Self {
        Self {
            socket,
            way,
            value: items.value,
            middle: format!(" 0 {}\r\n", items.value).into_bytes(),
            request: Vec::new(),
            expected: Vec::new(),
            answer: Vec::new(),
            come: 0,
            begin: 0,
        }
    }

    /// Sends the next request.
    fn ask(&mut self, numbers: &mut impl Iterator<Item = u32>) -> anyhow::Result<()> {
        let (commands, keys) = self.way.shape();
        self.request.clear();
        self.expected.clear();
        for _ in 0..commands {
            self.request.extend_from_slice(b"get");
            for number in numbers.by_ref().take(keys as usize) {
                self.expect(number);
            }
            self.request.extend_from_slice(b"\r\n");
            self.expected.extend_from_slice(b"END\r\n");
        }
        self.answer.resize(self.expected.len(), 0);
        self.come = 0;
        self.begin = ticks::now();
        self.socket.write_all(&self.request)?;
        Ok(())
    }

    /// Adds a key to the request, and its item to the expected answer.
    fn expect(&mut self, number: u32) {
        let key = items::key(number);
        self.request.push(b' ');
        self.request.extend_from_slice(&key);
        self.expected.extend_from_slice(b"VALUE ");
        self.expected.extend_from_slice(&key);
        self.expected.extend_from_slice(&self.middle);
        let start = self.expected.len();
        self.expected.resize(start + self.value, 0);
        items::fill(&mut self.expected[start..], number);
        self.expected.extend_from_slice(b"\r\n");
    }

    /// Reads the bytes that have arrived. True if the answer is complete.
    fn read(&mut self) -> anyhow::Result<bool> {
        let read = match self.socket.read(&mut self.answer[self.come..]) {
            Ok(0) => bail!("the server has closed the connection"),
            Ok(read) => read,
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                bail!("only this has arrived: {}", self.shown())
            }
            Err(error) => return Err(error.into()),
        };
        self.come += read;
        if self.come < self.answer.len() {
            return Ok(false);
        }
        if self.answer != self.expected {
            bail!("a wrong answer: {}", self.shown());
        }
        Ok(true)
    }

    /// The first bytes of the answer, for messages.
    fn shown(&self) -> String {
        let come = &self.answer[..self.come.min(80)];
        come.escape_ascii().to_string()
    }
}
