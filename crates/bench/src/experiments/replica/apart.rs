//! Three replicas, each in a process of its own, with or without a disk. They idle in the default
//! way, because a machine may have fewer processors than processes.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::ensure;
use dunlin::replica::{Driver, Member, Members, Opened, Options, Replica, Role as Part, open};
use dunlin::{ConnectOptions, Nanos, Nexus};
use serde::{Deserialize, Serialize};

use crate::harness::probe::patience;
use crate::harness::subject::server::listen_to_parent;
use crate::harness::subject::{Medium, Setting, over};
use harness::process::{Parent, Process, Role};
use harness::seat::Seat;

/// Runs one replica.
pub(super) const ROLE: Role = Role::new("replica-member", member);

pub(super) const REPLICAS: usize = 3;

/// An election takes less time than this, even on a busy machine.
pub(super) const ELECTING: Duration = Duration::from_secs(20);

/// The work of a process.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Params {
    setting: Setting,
    /// The directory for its disk, if it has one.
    disk: Option<PathBuf>,
}

/// A replica's state and its counts since its start.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) struct Seen {
    pub(super) leads: bool,
    pub(super) term: u64,
    pub(super) applied: u64,
    /// Syncs of its disk, and the time that they took together.
    pub(super) syncs: u64,
    pub(super) sync_time: Duration,
}

/// Three replicas, as their parent sees them.
#[derive(Debug)]
pub(super) struct Apart {
    members: Vec<Process>,
    pub(super) addresses: Vec<SocketAddr>,
}

impl Apart {
    /// Starts the replicas, with their disks in `folder` if there is one.
    ///
    /// # Errors
    /// The processes do not start.
    pub(super) fn start(setting: Setting, folder: Option<&Path>) -> anyhow::Result<Self> {
        let (mut members, mut addresses) = (Vec::new(), Vec::new());
        for place in 0..REPLICAS {
            let disk = folder.map(|folder| folder.join(place.to_string()));
            let mut member = Process::spawn(ROLE, Seat::default(), &Params { setting, disk })?;
            addresses.push(member.receive(patience(Duration::ZERO))?);
            members.push(member);
        }
        for member in &mut members {
            member.send(&addresses)?;
        }
        Ok(Self { members, addresses })
    }

    /// The state of the replica at this place.
    ///
    /// # Errors
    /// The replica has ended.
    pub(super) fn ask(&mut self, place: usize) -> anyhow::Result<Seen> {
        let member = &mut self.members[place];
        member.send(&())?;
        member.receive(patience(ELECTING))
    }

    /// Waits for a leader, and returns its place.
    ///
    /// # Errors
    /// No replica leads in time, or one has ended.
    pub(super) fn leader(&mut self) -> anyhow::Result<usize> {
        let begin = Instant::now();
        loop {
            for place in 0..REPLICAS {
                if self.ask(place)?.leads {
                    return Ok(place);
                }
            }
            ensure!(begin.elapsed() < ELECTING, "no replica leads");
            thread::sleep(Duration::from_millis(5));
        }
    }

    /// Kills the replica at this place.
    pub(super) fn kill(&mut self, place: usize) {
        drop(self.members.remove(place));
    }
}

/// Runs a replica until the parent kills it. Whenever the parent sends a line, answers
/// with the replica's state.
///
/// # Errors
/// The endpoint or the disk cannot be opened.
fn member(parent: &Parent) -> anyhow::Result<()> {
    let params: Params = parent.receive()?;
    over!(params.setting, member_over(parent, params.disk.as_deref()))
}

fn member_over<T: Medium>(parent: &Parent, disk: Option<&Path>) -> anyhow::Result<()> {
    let nexus = Nexus::bind((Ipv4Addr::LOCALHOST, 0))?;
    parent.say(&nexus.address())?;
    let addresses: Vec<SocketAddr> = parent.receive()?;
    let asked = listen_to_parent();
    // The number of each replica is its port, which no other replica of this host has now.
    let of_port = |address: &SocketAddr| Member {
        id: address.port().into(),
        address: address.to_string(),
    };
    let mut replica = replica(nexus.address().port().into(), disk)?;
    replica.on_bootstrap(Members::new(addresses.iter().map(of_port))?)?;
    let connect = ConnectOptions {
        endpoint: Some(0),
        ..ConnectOptions::default()
    };
    let endpoint = nexus.endpoint_builder::<T>().index(0);
    let mut driver = Driver::new(endpoint, replica, connect)?;
    loop {
        let limit = driver.now() + Nanos::from_millis(5);
        driver.turn(limit);
        if asked.swap(false, Ordering::Relaxed) {
            parent.say(&seen(driver.replica()))?;
        }
    }
}

fn replica(id: u64, disk: Option<&Path>) -> anyhow::Result<Replica> {
    let Some(path) = disk else {
        return Ok(Replica::new(id, Options::DEFAULT));
    };
    let Opened { id, disk, .. } = open(path, id)?;
    Ok(Replica::with_disk(id, None, disk, Options::DEFAULT))
}

fn seen(replica: &Replica) -> Seen {
    let (status, disk) = (replica.status(), replica.disk_figures());
    Seen {
        leads: status.role == Part::Leader,
        term: status.term,
        applied: status.applied,
        syncs: disk.syncs,
        sync_time: Duration::from_nanos(disk.time.0),
    }
}
