//! The numbers of sockets, by which the program directs packets to them, and the address of the
//! socket at each number.
//!
//! Each address has a preferred number ([`number_of`]), which its socket gets if that number is
//! free. The program looks there first, and finds the address in a few instructions. Only for other
//! addresses does it search the map of all addresses, which takes 30 ns.
//!
//! Invariants: only the process whose socket has a number writes the address there, and only if it
//! is the address's preferred number. So an address has at most one such place, and one that an
//! earlier owner has left there is removed before the next owner's packets are steered elsewhere.
//! Called by `steering`, for which the map of all addresses decides.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};

use super::program::{KEY, number_of};
use crate::ffi::maps::{Kind, Map, Replace};

/// Sockets that an interface can have.
pub(super) const MAX_SOCKETS: u32 = 256;

/// The place of no address: a key is never zero.
const NOTHING: [u8; KEY] = [0; KEY];

/// The sockets by their numbers, and their addresses.
#[derive(Debug)]
pub(super) struct Numbers {
    sockets: Map<4, 4>,
    homes: Map<4, KEY>,
}

impl Numbers {
    /// Makes the maps, without sockets.
    ///
    /// # Errors
    /// The kernel's.
    pub(super) fn new() -> io::Result<Self> {
        Ok(Self {
            sockets: Map::new(Kind::Sockets, MAX_SOCKETS)?,
            homes: Map::new(Kind::Array, MAX_SOCKETS)?,
        })
    }

    /// The maps of another process, from its [`Self::fds`].
    ///
    /// # Errors
    /// `InvalidData` if these are other objects.
    pub(super) fn of([sockets, homes]: [OwnedFd; 2]) -> io::Result<Self> {
        Ok(Self {
            sockets: Map::of(sockets, Kind::Sockets, MAX_SOCKETS)?,
            homes: Map::of(homes, Kind::Array, MAX_SOCKETS)?,
        })
    }

    /// Its descriptors.
    pub(super) fn fds(&self) -> [BorrowedFd<'_>; 2] {
        [self.sockets.fd(), self.homes.fd()]
    }

    /// Gives this number to a socket.
    ///
    /// # Errors
    /// The kernel's; that of a key that has a value if another socket has the number, and
    /// `Replace::No` is given.
    pub(super) fn set(
        &self,
        number: u32,
        socket: BorrowedFd<'_>,
        replace: Replace,
    ) -> io::Result<()> {
        let fd = socket.as_raw_fd().to_ne_bytes();
        self.sockets.set(&number.to_ne_bytes(), &fd, replace)?;
        self.leave(number)
    }

    /// Takes the number from its socket, which gets no more packets.
    pub(super) fn forget(&self, number: u32) {
        // The next socket with the number does the same, so nothing depends on the answers.
        let _ = self.leave(number);
        self.sockets.remove(&number.to_ne_bytes());
    }

    /// Notes that packets with this key go to the socket with this number.
    ///
    /// # Errors
    /// The kernel's.
    pub(super) fn steer(&self, key: &[u8; KEY], number: u32) -> io::Result<()> {
        if number != number_of(key) {
            return self.forget_home(key);
        }
        self.homes.set(&number.to_ne_bytes(), key, Replace::Yes)
    }

    /// Notes that packets with this key go to no socket, or to one with another number than it
    /// would choose.
    ///
    /// # Errors
    /// The kernel's.
    pub(super) fn forget_home(&self, key: &[u8; KEY]) -> io::Result<()> {
        let number = number_of(key);
        match self.homes.get(&number.to_ne_bytes()).as_ref() == Some(key) {
            true => self.leave(number),
            false => Ok(()),
        }
    }

    /// Notes that no packets are known to go to the socket with this number.
    fn leave(&self, number: u32) -> io::Result<()> {
        self.homes
            .set(&number.to_ne_bytes(), &NOTHING, Replace::Yes)
    }
}
