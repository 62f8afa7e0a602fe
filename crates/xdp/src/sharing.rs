//! Processes of one user share the program of an interface: each process that has it offers it to
//! the next, over a UNIX socket of its own.
//!
//! The sockets have abstract names with the user, the interface and the process. Such names belong
//! to the network namespace, and end with the process. A process that finds such a name asks there
//! for descriptors of the link, the program and its maps. It keeps them, so the program stays as
//! long as any of the processes lives, whichever made it.
//!
//! Invariant: both ends of a connection check that the other is the same user's. Called by `queue`.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use crate::ffi::{self, descriptors};
use crate::steering::{Mode, Steering};

/// The first bytes of a message. The last of them is the version of the program and of its maps.
const MARK: [u8; 4] = *b"dxp\x01";

/// Longest time that a process waits for another one.
const PATIENCE: Duration = Duration::from_secs(1);

/// The offer of this process, as long as this value lives.
#[derive(Debug)]
pub(crate) struct Offer {
    listener: Arc<UnixListener>,
    thread: Option<JoinHandle<()>>,
}

impl Offer {
    /// Offers the program of interface `index` to other processes.
    ///
    /// # Errors
    /// The kernel's.
    pub(crate) fn make(index: u32, mode: Mode, steering: &Arc<Steering>) -> io::Result<Self> {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("{}{}/{number}", prefix(index), std::process::id());
        let address = SocketAddr::from_abstract_name(&name)?;
        let listener = Arc::new(UnixListener::bind_addr(&address)?);
        let (accepting, steering) = (listener.clone(), steering.clone());
        let serve = move || {
            // It ends when the listener is shut.
            while let Ok((stream, _)) = accepting.accept() {
                // A process that goes away, or is another user's, gets nothing.
                let _ = give(&stream, mode, &steering);
            }
        };
        let thread = std::thread::Builder::new()
            .name("dunlin-xdp".to_owned())
            .spawn(serve)?;
        Ok(Self {
            listener,
            thread: Some(thread),
        })
    }
}

impl Drop for Offer {
    fn drop(&mut self) {
        descriptors::shut(self.listener.as_fd());
        if let Some(thread) = self.thread.take() {
            // It has not panicked, and if it had, the offer would end as well.
            let _ = thread.join();
        }
    }
}

/// The program of interface `index`, if another process of this user has it, and its mode.
pub(crate) fn adopt(index: u32) -> Option<(Steering, Mode)> {
    let names = ffi::abstract_names().ok()?;
    let prefix = prefix(index);
    let mut offers = names.iter().filter(|name| name.starts_with(&prefix));
    offers.find_map(|name| ask(name).ok())
}

/// Asks the process that offers its program under this name.
fn ask(name: &str) -> io::Result<(Steering, Mode)> {
    let stream = UnixStream::connect_addr(&SocketAddr::from_abstract_name(name)?)?;
    check_user(&stream)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    let mut message = [0; MARK.len() + 1];
    let (len, fds) = descriptors::receive(stream.as_fd(), &mut message)?;
    let strange = || io::Error::from(io::ErrorKind::InvalidData);
    let mode = match message.strip_prefix(&MARK) {
        Some([0]) if len == message.len() => Mode::Generic,
        Some([1]) if len == message.len() => Mode::Native,
        _ => return Err(strange()),
    };
    let fds: [OwnedFd; descriptors::COUNT] = fds.try_into().map_err(|_| strange())?;
    Ok((Steering::of(fds), mode))
}

fn give(stream: &UnixStream, mode: Mode, steering: &Steering) -> io::Result<()> {
    check_user(stream)?;
    stream.set_write_timeout(Some(PATIENCE))?;
    let fds = steering.descriptors().ok_or(io::ErrorKind::NotFound)?;
    let [a, b, c, d] = MARK;
    descriptors::send(stream.as_fd(), &[a, b, c, d, mode as u8], fds)
}

fn check_user(stream: &UnixStream) -> io::Result<()> {
    match descriptors::user_of_peer(stream.as_fd())? == descriptors::user() {
        true => Ok(()),
        false => Err(io::ErrorKind::PermissionDenied.into()),
    }
}

fn prefix(index: u32) -> String {
    format!("dunlin-xdp/{}/{index}/", descriptors::user())
}

#[cfg(test)]
mod tests;
