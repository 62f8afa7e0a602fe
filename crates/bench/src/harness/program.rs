//! Servers of other projects, which this program starts for a baseline. A child takes its seat, and
//! then executes the server, which stays there and ends with its parent.

use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::os::fd::AsFd;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use anyhow::Context;

use harness::process::{Parent, Process, Role};
use harness::seat::Seat;
use harness::sys;

/// Becomes a server.
pub(crate) const ROLE: Role = Role::new("program", become_program);

/// True if a folder of `PATH` has a program of this name. The flag makes it show its version.
pub(crate) fn is_installed(name: &str, flag: &str) -> bool {
    version(name, flag).is_some()
}

/// The first line of what a program shows of its version, given this flag; `None`, if no folder of
/// `PATH` has a program of this name.
pub(crate) fn version(name: &str, flag: &str) -> Option<String> {
    let shown = Command::new(name)
        .arg(flag)
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .output();
    let shown = shown.ok().filter(|it| it.status.success())?;
    let text = String::from_utf8_lossy(&shown.stdout);
    Some(text.lines().next().unwrap_or_default().to_owned())
}

/// Starts a program with its flags.
///
/// # Errors
/// The system cannot start another process.
pub(crate) fn start(program: PathBuf, flags: Vec<String>, seat: Seat) -> anyhow::Result<Process> {
    Process::spawn(ROLE, seat, &(program, flags))
}

/// Different addresses that were free a moment ago.
///
/// # Errors
/// There are no free addresses.
pub(crate) fn free_addresses<const COUNT: usize>() -> anyhow::Result<[SocketAddr; COUNT]> {
    let mut listeners = Vec::with_capacity(COUNT);
    let mut addresses = [SocketAddr::from((Ipv4Addr::LOCALHOST, 0)); COUNT];
    for address in &mut addresses {
        let listener = TcpListener::bind(*address)?;
        *address = listener.local_addr()?;
        listeners.push(listener);
    }
    Ok(addresses)
}

/// Becomes the server that the parent names, with its flags.
///
/// # Errors
/// There is no such program.
fn become_program(parent: &Parent) -> anyhow::Result<()> {
    let (program, flags): (PathBuf, Vec<String>) = parent.receive()?;
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
