//! The sockets at which other processes connect: takes connections off their queues, determines
//! each one's origin, and handles a lack of descriptors (rule C9).
//!
//! Invariants: one descriptor is kept in reserve. If the system has no other, the listeners use it
//! to accept a process and send it Goodbye. If the reserve is gone too, the listeners pause, and
//! processes wait in the queue. Owned and called by `reactor.rs`.

use std::io;
use std::net::{IpAddr, SocketAddr, TcpListener};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixListener;

use dunlin_control::Origin;
use dunlin_core::Nanos;
use dunlin_wire::control::{GoodbyeReason, MAX_FRAME, Message};

use crate::ffi::diagnosis::Sockets;
use crate::ffi::{Epoll, Interest, socket};

/// The token of the TCP socket in the reactor's epoll.
pub(crate) const TCP: u64 = 1;
/// The token of the UNIX socket there.
pub(crate) const UNIX: u64 = 2;

/// Length of a pause when the system has no descriptor for one more connection, and the reserve is
/// gone.
const PAUSE: Nanos = Nanos::from_millis(100);

/// The listening sockets, which are in the reactor's epoll except during a pause.
#[derive(Debug)]
pub(crate) struct Listeners {
    tcp: TcpListener,
    unix: Option<UnixListener>,
    /// The end of a pause, in which no connection is accepted.
    paused: Option<Nanos>,
    spare: Option<OwnedFd>,
    /// Finds the user at the other end of a connection within this host. If the kernel cannot
    /// report it (`None`), processes of this host use TCP and UDP.
    sockets: Option<Sockets>,
}

/// The next connection of a queue.
#[derive(Debug)]
pub(crate) enum Next {
    /// A process has connected.
    Connection(OwnedFd, Origin),
    /// A process has connected and was sent away, because there is no descriptor for it.
    SentAway,
    /// A process has connected and is gone, or is of another user.
    Gone,
    /// The queue is empty, or accepting is paused.
    Nothing,
}

impl Listeners {
    /// Puts the sockets into the epoll.
    ///
    /// # Errors
    /// The system's error.
    pub(crate) fn new(
        tcp: TcpListener,
        unix: Option<UnixListener>,
        epoll: &Epoll,
    ) -> io::Result<Self> {
        tcp.set_nonblocking(true)?;
        socket::lengthen_queue(tcp.as_fd())?;
        epoll.add(tcp.as_raw_fd(), TCP, Interest::Read)?;
        if let Some(unix) = &unix {
            unix.set_nonblocking(true)?;
            socket::lengthen_queue(unix.as_fd())?;
            epoll.add(unix.as_raw_fd(), UNIX, Interest::Read)?;
        }
        Ok(Self {
            tcp,
            unix,
            paused: None,
            spare: spare(),
            sockets: Sockets::new().ok(),
        })
    }

    /// Takes a connection off the queue of one of the sockets.
    pub(crate) fn next(&mut self, listener: u64, epoll: &Epoll, now: Nanos) -> Next {
        match self.accept(listener) {
            Ok(fd) => self
                .origin_of(&fd, listener)
                .map_or(Next::Gone, |origin| Next::Connection(fd, origin)),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Next::Nothing,
            Err(error) if is_of_one_connection(&error) => Next::Gone,
            Err(_) => self.send_away(listener, epoll, now),
        }
    }

    /// When [`Self::on_time`] must be called.
    pub(crate) fn next_wakeup(&self) -> Nanos {
        self.paused.unwrap_or(Nanos::MAX)
    }

    /// Ends a pause that is over.
    pub(crate) fn on_time(&mut self, epoll: &Epoll, now: Nanos) {
        if now >= self.next_wakeup() {
            self.paused = None;
            self.spare = self.spare.take().or_else(spare);
            self.listen(epoll, true);
        }
    }

    fn accept(&self, listener: u64) -> io::Result<OwnedFd> {
        match (listener, &self.unix) {
            (UNIX, Some(unix)) => unix.accept().map(|(stream, _)| stream.into()),
            _ => self.tcp.accept().map(|(stream, _)| stream.into()),
        }
    }

    /// Handles a lack of descriptors or memory. If the spare descriptor is available, the next
    /// process in the queue gets Goodbye. Otherwise the queue stays as it is, and accepting pauses.
    fn send_away(&mut self, listener: u64, epoll: &Epoll, now: Nanos) -> Next {
        let had_spare = self.spare.take().is_some();
        let accepted = if had_spare {
            self.accept(listener).ok()
        } else {
            None
        };
        let sent_away = accepted.is_some();
        if let Some(fd) = accepted {
            say_goodbye(fd);
        }
        self.spare = spare();
        if sent_away {
            return Next::SentAway;
        }
        self.paused = Some(now + PAUSE);
        self.listen(epoll, false);
        Next::Nothing
    }

    /// Starts or stops waiting for new connections. The calls fail only if the kernel has no
    /// memory; then the pause is longer or shorter than intended.
    fn listen(&self, epoll: &Epoll, on: bool) {
        let unix = self.unix.as_ref().map(|unix| (unix.as_raw_fd(), UNIX));
        for (fd, token) in unix.into_iter().chain([(self.tcp.as_raw_fd(), TCP)]) {
            let _ = if on {
                epoll.add(fd, token, Interest::Read)
            } else {
                epoll.remove(fd)
            };
        }
    }

    /// The origin of a connection; `None`: the process is of another user, or gone.
    fn origin_of(&mut self, fd: &OwnedFd, listener: u64) -> Option<Origin> {
        if listener == UNIX {
            let peer = socket::peer(fd.as_fd()).ok()?;
            return (peer.uid == socket::own_uid()).then_some(Origin::Process(peer.pid));
        }
        let (ours, theirs) = (
            socket::local_addr(fd.as_fd())?,
            socket::remote_addr(fd.as_fd())?,
        );
        Some(match self.user_of(theirs, ours) {
            Some(uid) if uid != socket::own_uid() => Origin::User(uid),
            Some(_) => Origin::OwnUser,
            None if have_one_address(ours.ip(), theirs.ip()) => Origin::UnknownUser,
            None => Origin::of_host(theirs.ip()),
        })
    }

    /// Whether the other end of a connection is a socket of this host.
    pub(crate) fn is_here(&mut self, socket: BorrowedFd<'_>) -> bool {
        let ends = socket::local_addr(socket).zip(socket::remote_addr(socket));
        ends.is_some_and(|(ours, theirs)| {
            have_one_address(ours.ip(), theirs.ip()) || self.user_of(theirs, ours).is_some()
        })
    }

    /// The user of the other end of a connection, if that is a socket of this host.
    fn user_of(&mut self, theirs: SocketAddr, ours: SocketAddr) -> Option<u32> {
        self.sockets.as_mut()?.user_of(theirs, ours)
    }
}

/// Whether both ends of a TCP connection have the same address, so that they are on one host. Two
/// different addresses may also belong to one host, but only the kernel knows that.
fn have_one_address(local: IpAddr, remote: IpAddr) -> bool {
    let (local, remote) = (local.to_canonical(), remote.to_canonical());
    local == remote || (local.is_loopback() && remote.is_loopback())
}

/// A descriptor to keep in reserve.
fn spare() -> Option<OwnedFd> {
    std::fs::File::open("/dev/null").ok().map(OwnedFd::from)
}

/// Sends Goodbye and closes the connection. Reads the Hello first, if it has come: closing a socket
/// with unread bytes can discard bytes that were sent.
fn say_goodbye(fd: OwnedFd) {
    let reason = GoodbyeReason::TooManyConnections;
    let mut frame = [0; MAX_FRAME];
    let length = Message::Goodbye { reason }.encode(&mut frame);
    let length = length.expect("a goodbye is short");
    let mut hello = [0; 512];
    if socket::set_nonblocking(fd.as_fd()).is_ok() {
        // Errors are ignored: if the process is gone, it gets no goodbye.
        let _ = socket::receive(fd.as_fd(), &mut hello, &mut Vec::new());
        let _ = socket::send(fd.as_fd(), &frame[..length], &[]);
    }
}

/// Whether an error of `accept` concerns only the connection to be accepted (accept(2)).
fn is_of_one_connection(error: &io::Error) -> bool {
    let one = [
        libc::ECONNABORTED,
        libc::EINTR,
        libc::EPROTO,
        libc::ENETDOWN,
        libc::EHOSTUNREACH,
    ];
    error.raw_os_error().is_some_and(|code| one.contains(&code))
}

#[cfg(test)]
mod tests;
