//! The cost of the front end for native clients: one server has only native clients, another one
//! also has 10 000 idle connections of memcached's clients.

use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use anyhow::{Context, ensure};
use dunlin::kv::{Connection, Options, Store};
use dunlin::{Auto, Nexus};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::harness::items::{self, Items};
use harness::process::{Parent, Role};
use harness::{signal, sys};

/// Writes all items by a native client.
pub(super) const FILL: Role = Role::new("memcached-fill", fill);

/// Holds idle connections.
pub(super) const IDLE: Role = Role::new("memcached-idle", idle);

/// Idle connections.
pub(super) const CROWD: usize = 10_000;

/// Items between two looks at signals.
const BLOCK: u32 = 1 << 14;

/// # Errors
/// The server refuses an item.
fn fill(parent: &Parent) -> anyhow::Result<()> {
    let (server, items): (SocketAddr, Items) = parent.receive()?;
    let nexus = Nexus::bind("127.0.0.1:0")?;
    let endpoint = nexus.endpoint_builder::<Auto>();
    let mut kv = Connection::open(endpoint, server, Options::DEFAULT)?;
    let mut value = vec![0; items.value];
    for number in 0..items.count {
        if number.is_multiple_of(BLOCK) {
            signal::check()?;
        }
        items::fill(&mut value, number);
        let stored = kv.store(&Store::set(&items::key(number), &value));
        stored.with_context(|| format!("item {number}"))?;
    }
    parent.say(&())
}

/// Connects, and holds the connections until the parent ends.
///
/// # Errors
/// The system does not allow enough descriptors, or the server refuses a connection.
fn idle(parent: &Parent) -> anyhow::Result<()> {
    let server: SocketAddr = parent.receive()?;
    sys::die_with_parent()?;
    allow(CROWD as u64 + 64)?;
    let mut held = Vec::with_capacity(CROWD);
    for number in 0..CROWD {
        let connection = TcpStream::connect(server);
        held.push(connection.with_context(|| format!("connection {number}"))?);
        if number.is_multiple_of(100) {
            // The server's backlog is shorter than the crowd.
            std::thread::sleep(Duration::from_millis(2));
        }
    }
    parent.say(&())?;
    let _: () = parent.receive()?;
    drop(held);
    Ok(())
}

/// Allows this process `needed` descriptors.
fn allow(needed: u64) -> anyhow::Result<()> {
    let limit = getrlimit(Resource::Nofile);
    let is_allowed = |limit: Option<u64>| limit.is_none_or(|limit| limit >= needed);
    ensure!(
        is_allowed(limit.maximum),
        "a process may have {:?} descriptors, fewer than {needed}; `ulimit -Hn {needed}` allows \
         them",
        limit.maximum
    );
    if !is_allowed(limit.current) {
        let raised = Rlimit {
            current: Some(needed),
            maximum: limit.maximum,
        };
        setrlimit(Resource::Nofile, raised)?;
    }
    Ok(())
}
