//! Three members of etcd on this host, and a client that puts with the same number in flight. The
//! members run on any processor, so they have more processors than the replicas of this project.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use serde::{Deserialize, Serialize};

use super::client::{KEY, Outcome, VALUE, WARM_UP, key_of};
use super::folder::Folder;
use super::grpc::Connection;
use crate::harness::probe::patience;
use crate::harness::program;
use crate::harness::rtt::Recorder;
use crate::harness::ticks;
use dunlin::Rng;
use harness::process::{Parent, Process, Role};
use harness::seat::Seats;
use harness::signal;

/// Puts to etcd.
pub(super) const ROLE: Role = Role::new("etcd-put", put);

/// Members of a cluster.
const MEMBERS: usize = 3;

/// How long a cluster may take until it has a leader.
const STARTING: Duration = Duration::from_secs(60);

/// The path of a put in etcd's service.
const PUT: &str = "/etcdserverpb.KV/Put";

/// The line in the metrics of a member that leads.
const LEADS: &str = "\netcd_server_is_leader 1\n";

/// The work of a client.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Params {
    leader: SocketAddr,
    outstanding: usize,
    span: Duration,
}

/// A cluster. Its files are deleted when it is dropped.
#[derive(Debug)]
pub(super) struct Etcd {
    leader: SocketAddr,
    _members: Vec<Process>,
    _folder: Folder,
}

/// The version of the `etcd` in a folder of `PATH`, if there is one.
pub(super) fn version() -> Option<String> {
    let line = program::version("etcd", "--version")?;
    let version = line.strip_prefix("etcd Version: ");
    Some(version.unwrap_or("of an unknown version").to_owned())
}

impl Etcd {
    /// Starts the members, with their files in a new folder below this one, and waits until one
    /// leads.
    ///
    /// # Errors
    /// The members do not start, or none leads in time.
    pub(super) fn start(below: &Path) -> anyhow::Result<Self> {
        let folder = Folder::new(below, "etcd")?;
        let addresses: [SocketAddr; 2 * MEMBERS] = program::free_addresses()?;
        let (doors, peers) = addresses.split_at(MEMBERS);
        let seat = Seats::pick().anywhere().server;
        let mut members = Vec::new();
        for (member, door) in doors.iter().enumerate() {
            let flags = flags(member, *door, peers, folder.path());
            members.push(program::start("etcd".into(), flags, seat)?);
        }
        let begin = Instant::now();
        let leader = loop {
            signal::check()?;
            for member in &mut members {
                // This fails if the member has ended.
                member.try_receive::<()>()?;
            }
            let leads = |door: &&SocketAddr| leads(**door).unwrap_or(false);
            if let Some(leader) = doors.iter().find(leads) {
                break *leader;
            }
            ensure!(begin.elapsed() < STARTING, "no member of etcd leads");
            thread::sleep(Duration::from_millis(20));
        };
        Ok(Self {
            leader,
            _members: members,
            _folder: folder,
        })
    }

    /// Puts for `span`, with this number in flight.
    ///
    /// # Errors
    /// A put fails.
    pub(super) fn put(&self, outstanding: usize, span: Duration) -> anyhow::Result<Outcome> {
        let params = Params {
            leader: self.leader,
            outstanding,
            span,
        };
        let mut client = Process::spawn(ROLE, Seats::pick().anywhere().client, &params)?;
        client.receive(patience(span + WARM_UP))
    }
}

fn flags(member: usize, door: SocketAddr, peers: &[SocketAddr], folder: &Path) -> Vec<String> {
    let all = peers.iter().enumerate();
    let all: Vec<String> = all
        .map(|(at, peer)| format!("m{at}=http://{peer}"))
        .collect();
    let (door, peer) = (
        format!("http://{door}"),
        format!("http://{}", peers[member]),
    );
    let pairs = [
        ("--name", format!("m{member}")),
        (
            "--data-dir",
            folder.join(member.to_string()).display().to_string(),
        ),
        ("--listen-client-urls", door.clone()),
        ("--advertise-client-urls", door),
        ("--listen-peer-urls", peer.clone()),
        ("--initial-advertise-peer-urls", peer),
        ("--initial-cluster", all.join(",")),
        ("--initial-cluster-token", "dunlin-bench".to_owned()),
        ("--initial-cluster-state", "new".to_owned()),
    ];
    let flags = pairs.into_iter();
    flags
        .flat_map(|(name, value)| [name.to_owned(), value])
        .collect()
}

/// Asks a member whether it leads.
fn leads(door: SocketAddr) -> anyhow::Result<bool> {
    let mut stream = TcpStream::connect(door)?;
    stream.set_read_timeout(Some(Duration::from_secs(2)))?;
    stream.write_all(b"GET /metrics HTTP/1.0\r\n\r\n")?;
    let mut text = String::new();
    stream.read_to_string(&mut text)?;
    Ok(text.contains(LEADS))
}

/// # Errors
/// A put fails.
fn put(parent: &Parent) -> anyhow::Result<()> {
    let params: Params = parent.receive()?;
    let mut putter = Putter::open(&params)?;
    putter.run_for(WARM_UP)?;
    putter.recorder = Recorder::skipping(0);
    let (begin, first) = (Instant::now(), putter.revisions);
    putter.run_for(params.span)?;
    let puts = putter.revisions - first;
    #[expect(
        clippy::cast_precision_loss,
        reason = "counts of a run are far below 2^53"
    )]
    let per_s = puts as f64 / begin.elapsed().as_secs_f64();
    parent.say(&Outcome {
        per_s,
        p50: putter.recorder.quantile(0.5),
        p99: putter.recorder.quantile(0.99),
    })
}

struct Putter {
    connection: Connection,
    rng: Rng,
    /// Start times of the calls in flight, by their numbers.
    begun: std::collections::BTreeMap<u32, u64>,
    recorder: Recorder,
    /// The highest revision that a put has made.
    revisions: u64,
}

impl Putter {
    fn open(params: &Params) -> anyhow::Result<Self> {
        let mut putter = Self {
            connection: Connection::open(params.leader, PUT)?,
            rng: Rng::new(u64::from(std::process::id())),
            begun: std::collections::BTreeMap::new(),
            recorder: Recorder::skipping(0),
            revisions: 0,
        };
        for _ in 0..params.outstanding {
            putter.begin()?;
        }
        Ok(putter)
    }

    fn begin(&mut self) -> anyhow::Result<()> {
        let message = request(&key_of(&mut self.rng), &[0x76; VALUE]);
        let call = self.connection.begin(&message)?;
        self.begun.insert(call, ticks::now());
        Ok(())
    }

    fn run_for(&mut self, span: Duration) -> anyhow::Result<()> {
        let begin = Instant::now();
        while begin.elapsed() < span {
            for (call, message) in self.connection.turn()? {
                let begun = self.begun.remove(&call).context("a put has ended twice")?;
                self.recorder.record(ticks::now().wrapping_sub(begun));
                let revision = revision_of(&message).context("a put has no revision")?;
                ensure!(revision > 0, "a put has changed nothing");
                self.revisions = self.revisions.max(revision);
                self.begin()?;
            }
        }
        Ok(())
    }
}

/// A `PutRequest` of etcd: its key is field 1, its value is field 2.
fn request(key: &[u8; KEY], value: &[u8; VALUE]) -> Vec<u8> {
    let mut message = Vec::with_capacity(4 + KEY + VALUE);
    for (tag, bytes) in [(0x0a, &key[..]), (0x12, &value[..])] {
        message.push(tag);
        message.push(u8::try_from(bytes.len()).expect("keys and values are short"));
        message.extend_from_slice(bytes);
    }
    message
}

/// The revision in a `PutResponse` of etcd: field 3 of its header, which is field 1.
fn revision_of(message: &[u8]) -> Option<u64> {
    let (0x0a, rest) = varint(message)? else {
        return None;
    };
    let (len, rest) = varint(rest)?;
    let mut header = rest.get(..usize::try_from(len).ok()?)?;
    while !header.is_empty() {
        let (tag, rest) = varint(header)?;
        let (value, rest) = varint(rest)?;
        if tag == 0x18 {
            return Some(value);
        }
        header = rest;
    }
    None
}

/// A number with seven bits in each byte, and the bytes after it.
fn varint(bytes: &[u8]) -> Option<(u64, &[u8])> {
    let mut number = 0;
    for (place, byte) in bytes.iter().enumerate().take(10) {
        number |= u64::from(byte & 0x7f) << (7 * place).min(63);
        if byte & 0x80 == 0 {
            return Some((number, &bytes[place + 1..]));
        }
    }
    None
}

#[cfg(test)]
mod tests;
