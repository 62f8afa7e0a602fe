//! Processes of one user share the program of an interface: each process that has the program
//! offers it to new ones, over a UNIX socket of its own.
//!
//! The sockets have abstract names with the user, the interface and a random number. A process
//! number would not do: processes of several containers may have one network namespace and the same
//! process number. Abstract names belong to the network namespace, and end with the process. A new
//! process connects to all of these names, asks for descriptors of the link, the program and its
//! maps, and takes the first answer. It keeps the descriptors, so the program stays as long as any
//! of the processes lives, whichever made it. Only if an operator detaches it, the process that
//! attaches it again has the new link, and another one takes that link when it opens an endpoint.
//!
//! Invariants: each end of a connection checks that the other end belongs to the same user, and a
//! process that asks waits no longer than its caller permits. Called by `queue`.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crate::ffi::{self, descriptors};
use crate::steering::{DESCRIPTORS, Mode, Steering};

/// The first bytes of a message. The last of them is the version of the program and of its maps.
const MARK: [u8; 4] = *b"dxp\x03";

/// Longest time to wait until the socket of an asking process has room for the answer.
const PATIENCE: Duration = Duration::from_secs(1);

/// Pause between two checks for answers.
const BETWEEN_LOOKS: Duration = Duration::from_millis(1);

/// Pause after a connection that could not be accepted, for example because no descriptor is free.
const AFTER_FAILURE: Duration = Duration::from_millis(20);

/// The offer of this process. It ends when this value is dropped.
#[derive(Debug)]
pub(crate) struct Offer {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

/// The part of an offer that its thread uses.
#[derive(Debug)]
struct Shared {
    listener: UnixListener,
    /// The only user that gets the program, whose number is in the name.
    user: u32,
    has_ended: AtomicBool,
    mode: Mode,
    steering: Arc<Steering>,
}

impl Offer {
    /// Offers the program of interface `index` to other processes.
    ///
    /// # Errors
    /// The kernel's.
    pub(crate) fn make(index: u32, mode: Mode, steering: &Arc<Steering>) -> io::Result<Self> {
        let user = descriptors::user();
        let name = format!("{}{:016x}", prefix(user, index), ffi::random()?);
        let shared = Arc::new(Shared {
            listener: UnixListener::bind_addr(&SocketAddr::from_abstract_name(&name)?)?,
            user,
            has_ended: AtomicBool::new(false),
            mode,
            steering: steering.clone(),
        });
        let serving = shared.clone();
        let thread = std::thread::Builder::new()
            .name("dunlin-xdp".to_owned())
            .spawn(move || serving.serve())?;
        Ok(Self {
            shared,
            thread: Some(thread),
        })
    }
}

impl Shared {
    /// Gives the program to each process that asks, until the offer ends.
    fn serve(&self) {
        while !self.has_ended.load(Ordering::Acquire) {
            match self.listener.accept() {
                // A process that has gone away, or belongs to another user, gets nothing.
                Ok((stream, _)) => drop(self.give(&stream)),
                Err(_) if self.has_ended.load(Ordering::Acquire) => return,
                Err(_) => std::thread::sleep(AFTER_FAILURE),
            }
        }
    }

    fn give(&self, stream: &UnixStream) -> io::Result<()> {
        check_user(stream.as_fd(), self.user)?;
        stream.set_write_timeout(Some(PATIENCE))?;
        let link = self.steering.link().ok_or(io::ErrorKind::NotFound)?;
        let fds = self.steering.descriptors(&link);
        let [a, b, c, d] = MARK;
        descriptors::send(stream.as_fd(), &[a, b, c, d, self.mode as u8], &fds)
    }
}

impl Drop for Offer {
    fn drop(&mut self) {
        self.shared.has_ended.store(true, Ordering::Release);
        descriptors::shut(self.shared.listener.as_fd());
        if let Some(thread) = self.thread.take() {
            // The thread does not panic; if it did, the offer would end as well.
            let _ = thread.join();
        }
    }
}

/// The program of interface `index` and its mode, if another process of this user has the program
/// and answers before `deadline`. A program that an operator has detached is taken only if no
/// process has one that is attached.
pub(crate) fn adopt(index: u32, deadline: Instant) -> Option<(Steering, Mode)> {
    let names = ffi::listening_names().ok()?;
    let user = descriptors::user();
    let prefix = prefix(user, index).into_bytes();
    let offers = names.iter().filter(|name| name.starts_with(&prefix));
    let mut asked: Vec<OwnedFd> = offers.filter_map(|name| ask(name, user).ok()).collect();
    let mut adopted: Option<(Steering, Mode)> = None;
    let is_attached = |(steering, _): &(Steering, Mode)| steering.is_attached(index);
    loop {
        asked.retain(|stream| {
            if adopted.as_ref().is_some_and(is_attached) {
                return false;
            }
            match answer_of(stream.as_fd(), index) {
                Ok(found) if adopted.is_none() || is_attached(&found) => adopted = Some(found),
                Ok(_) => {}
                Err(error) => return error.kind() == io::ErrorKind::WouldBlock,
            }
            false
        });
        if asked.is_empty() || Instant::now() >= deadline {
            return adopted;
        }
        std::thread::sleep(BETWEEN_LOOKS);
    }
}

/// Connects to the process that offers its program under this name, if the process belongs to this
/// user.
fn ask(name: &[u8], user: u32) -> io::Result<OwnedFd> {
    let stream = descriptors::connect(name)?;
    check_user(stream.as_fd(), user)?;
    Ok(stream)
}

/// The answer of a process about interface `index`; `WouldBlock` if there is none yet.
fn answer_of(stream: BorrowedFd<'_>, index: u32) -> io::Result<(Steering, Mode)> {
    let mut message = [0; MARK.len() + 1];
    let (len, fds) = descriptors::receive(stream, &mut message)?;
    let strange = || io::Error::from(io::ErrorKind::InvalidData);
    let mode = match message.strip_prefix(&MARK) {
        Some([0]) if len == message.len() => Mode::Generic,
        Some([1]) if len == message.len() => Mode::Native,
        _ => return Err(strange()),
    };
    let fds: [OwnedFd; DESCRIPTORS] = fds.try_into().map_err(|_| strange())?;
    Ok((Steering::of(fds, index)?, mode))
}

fn check_user(stream: BorrowedFd<'_>, user: u32) -> io::Result<()> {
    match descriptors::user_of_peer(stream)? == user {
        true => Ok(()),
        false => Err(io::ErrorKind::PermissionDenied.into()),
    }
}

fn prefix(user: u32, index: u32) -> String {
    format!("dunlin-xdp/{user}/{index}/")
}

#[cfg(test)]
mod tests;
