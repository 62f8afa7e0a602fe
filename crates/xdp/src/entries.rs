//! The entries of an endpoint at a queue, in the maps of the program: the number of its socket, and
//! its address, whose packets come to the socket.
//!
//! Invariant: dropping this value removes them. Made by `open` for endpoints of this process, and
//! by the daemon of `setup` for those of others.

use std::io;
use std::os::fd::BorrowedFd;
use std::sync::Arc;

use crate::ffi;
use crate::steering::Steering;
use dunlin_packet::Home;

/// The entries of one endpoint at one queue.
#[derive(Debug)]
pub(crate) struct Entries {
    steering: Arc<Steering>,
    /// The socket's number in the map of sockets.
    number: u32,
    home: Home,
    queue: u32,
    /// The inode number of the UDP socket that has the address.
    owner: u64,
}

impl Entries {
    /// Assigns a number to the socket of an endpoint at `queue`. Nothing is steered to it yet.
    ///
    /// # Errors
    /// The kernel's; `ResourceBusy` if no number is free.
    pub(crate) fn add(
        steering: &Arc<Steering>,
        socket: BorrowedFd<'_>,
        home: Home,
        queue: u32,
        owner: u64,
    ) -> io::Result<Self> {
        Ok(Self {
            number: steering.add_socket(socket, &home, queue)?,
            steering: steering.clone(),
            home,
            queue,
            owner,
        })
    }

    /// Steers the packets that arrive at the queue to the socket. The caller has bound the address.
    ///
    /// # Errors
    /// The kernel's.
    pub(crate) fn steer(&self) -> io::Result<()> {
        self.steering
            .steer(&self.home, self.number, self.queue, self.owner)
    }

    /// Steers the packets that arrive at the queue to the socket, unless their address is another
    /// endpoint's.
    ///
    /// # Errors
    /// The kernel's; `ResourceBusy` if it is another endpoint's.
    pub(crate) fn claim(&self) -> io::Result<()> {
        let place = [self.number, self.queue];
        self.steering
            .claim(&self.home, place, self.owner, ffi::udp_sockets)
    }
}

impl Drop for Entries {
    fn drop(&mut self) {
        // From now on, the program finds no socket for arriving packets and passes them to the
        // kernel.
        self.steering.release(&self.home, self.queue, self.owner);
        self.steering.forget_socket(self.number);
    }
}
