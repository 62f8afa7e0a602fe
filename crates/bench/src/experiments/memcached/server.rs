//! The servers: Debian's memcached and `dunlin memcached`, which this program starts with the same
//! flags on the same processor.

use std::net::{SocketAddr, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::ensure;

use super::crowd::{self, CROWD};
use crate::harness::program;
use crate::harness::transport::Transport;
use harness::process::Process;
use harness::seat::Seats;
use harness::signal;

/// How long a server may take until it listens, and after that until its items are written.
pub(in crate::experiments) const STARTING: Duration = Duration::from_secs(120);

/// The kinds of servers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::experiments) enum Kind {
    /// Debian's memcached.
    Memcached,
    /// `dunlin memcached`, whose native clients come over this transport.
    Dunlin(Transport),
    /// `dunlin memcached` with a crowd of idle connections.
    Crowded(Transport),
    /// `dunlin kv serve`, which has only native clients.
    Plain(Transport),
}

/// A server that listens.
#[derive(Debug)]
pub(in crate::experiments) struct Running {
    process: Process,
    door: SocketAddr,
    native: SocketAddr,
    /// The process that holds idle connections.
    crowd: Option<Process>,
}

/// True if a folder of `PATH` has a `memcached`.
pub(in crate::experiments) fn is_installed() -> bool {
    program::is_installed("memcached", "-V")
}

impl Running {
    /// Starts a server with room for items of `items_mib` MiB, and waits until it listens.
    ///
    /// # Errors
    /// It does not start, or does not listen in time.
    pub(super) fn start(kind: Kind, items_mib: u32) -> anyhow::Result<Self> {
        // memcached takes about 120 bytes for an item of 48.
        Self::start_with(kind, 4 * items_mib + 64)
    }

    /// Starts a server with this `-m`, and waits until it listens.
    ///
    /// # Errors
    /// It does not start, or does not listen in time.
    pub(in crate::experiments) fn start_with(kind: Kind, megabytes: u32) -> anyhow::Result<Self> {
        let [door, native] = program::free_addresses()?;
        let connections = match kind {
            Kind::Crowded(_) => CROWD + 1024,
            _ => 1024,
        };
        let common = format!(
            "-m {megabytes} -t 1 -U 0 -c {connections} -l {} -p {}",
            door.ip(),
            door.port()
        );
        let (program, flags) = match kind {
            // Debian's memcached refuses to run as root without a user.
            Kind::Memcached => ("memcached".into(), format!("-u root {common}")),
            Kind::Dunlin(transport) | Kind::Crowded(transport) => {
                let over = format!("--transport {} --native {native}", transport.name());
                let flags = format!("memcached {over} {common}");
                (std::env::current_exe()?, flags)
            }
            Kind::Plain(transport) => {
                let over = format!("--transport {} --listen {native}", transport.name());
                let flags = format!("kv serve --memory {megabytes}MiB {over}");
                (std::env::current_exe()?, flags)
            }
        };
        let flags = flags.split(' ').map(str::to_owned).collect();
        let mut process = program::start(program, flags, Seats::pick().server)?;
        let begin = Instant::now();
        let listens_at = match kind {
            // Its nexus listens for native clients as soon as its partitions exist.
            Kind::Plain(_) => native,
            _ => door,
        };
        while TcpStream::connect(listens_at).is_err() {
            signal::check()?;
            // This fails if the server has ended.
            process.try_receive::<()>()?;
            ensure!(begin.elapsed() < STARTING, "{kind:?} does not listen");
            thread::sleep(Duration::from_millis(5));
        }
        Ok(Self {
            process,
            door,
            native,
            crowd: None,
        })
    }

    /// Has a process make idle connections, and hold them as long as this server runs.
    ///
    /// # Errors
    /// They cannot be made.
    pub(super) fn gather(&mut self) -> anyhow::Result<()> {
        let mut crowd = Process::spawn(crowd::IDLE, Seats::pick().client, &self.door)?;
        crowd.receive::<()>(STARTING)?;
        self.crowd = Some(crowd);
        Ok(())
    }

    /// Where memcached's clients connect.
    pub(in crate::experiments) const fn door(&self) -> SocketAddr {
        self.door
    }

    /// Where native clients connect.
    pub(super) const fn native(&self) -> SocketAddr {
        self.native
    }

    /// The id of its process.
    pub(in crate::experiments) fn id(&self) -> u32 {
        self.process.id()
    }
}
