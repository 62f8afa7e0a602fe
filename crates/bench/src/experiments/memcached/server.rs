//! The servers: Debian's memcached and `dunlin memcached`, which this program starts with the same
//! flags. A child in the role of server takes its processor and then executes the server, which
//! stays on this processor and ends with its parent.

use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};

use super::crowd::{self, CROWD};
use crate::harness::transport::Transport;
use harness::process::{Parent, Process, Role};
use harness::seat::Seats;
use harness::{signal, sys};

/// Becomes a server.
pub(super) const ROLE: Role = Role::new("memcached-serve", serve);

/// How long a server may take until it listens, and after that until its items are written.
pub(super) const STARTING: Duration = Duration::from_secs(120);

/// Which server.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Kind {
    /// Debian's.
    Memcached,
    /// `dunlin memcached`, whose native clients come over this transport.
    Dunlin(Transport),
    /// The same, with a crowd of idle connections.
    Crowded(Transport),
    /// `dunlin kv serve`, which has native clients alone.
    Plain(Transport),
}

/// A server that listens.
#[derive(Debug)]
pub(super) struct Running {
    process: Process,
    door: SocketAddr,
    native: SocketAddr,
    /// The process that holds idle connections.
    crowd: Option<Process>,
}

/// True if the path has a `memcached`.
pub(super) fn is_installed() -> bool {
    let version = Command::new("memcached")
        .arg("-V")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    version.is_ok_and(|status| status.success())
}

impl Running {
    /// Starts a server with room for items of `items_mib` MiB, and waits until it listens.
    ///
    /// # Errors
    /// It does not start, or does not listen in time.
    pub(super) fn start(kind: Kind, items_mib: u32) -> anyhow::Result<Self> {
        let (door, native) = (free_address()?, free_address()?);
        // memcached takes about 120 bytes for an item of 48.
        let megabytes = 4 * items_mib + 64;
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
        let flags: Vec<String> = flags.split(' ').map(str::to_owned).collect();
        let mut process = Process::spawn(ROLE, Seats::pick().server, &(program, flags))?;
        let begin = Instant::now();
        let listens_at = match kind {
            // Its nexus listens for native clients as soon as its partitions are there.
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
    pub(super) const fn door(&self) -> SocketAddr {
        self.door
    }

    /// Where native clients connect.
    pub(super) const fn native(&self) -> SocketAddr {
        self.native
    }

    /// The id of its process.
    pub(super) fn id(&self) -> u32 {
        self.process.id()
    }
}

/// An address that was free a moment ago.
fn free_address() -> anyhow::Result<SocketAddr> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    Ok(listener.local_addr()?)
}

/// Becomes the server that the parent names, with its flags.
///
/// # Errors
/// There is no such program.
fn serve(parent: &Parent) -> anyhow::Result<()> {
    let (program, flags): (std::path::PathBuf, Vec<String>) = parent.receive()?;
    sys::die_with_parent()?;
    // The server does not use its standard input, which here is the pipe to the parent. The pipe
    // closes when the server ends, so the parent notices that.
    let pipe = std::io::stdout().as_fd().try_clone_to_owned()?;
    let error = Command::new(&program)
        .args(flags)
        .stdin(pipe)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .exec();
    Err(error).with_context(|| format!("cannot start {}", program.display()))
}
