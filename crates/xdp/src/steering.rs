//! Steering: the program at an interface and its maps, which lead from an endpoint's address to its
//! socket. Loaded by `bpf(2)` without a library, and without a compiler for BPF.
//!
//! Invariant: everything here ends with its descriptors, even when the process is killed. The
//! program is attached by a link, which the kernel removes when the link's last descriptor is
//! closed; nothing is pinned, and no setting of the interface is changed. Called by `open`.

mod assemble;
mod attachment;
mod numbers;
mod program;

use std::io;
use std::net::IpAddr;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use libc::c_int;

use crate::ffi::maps::{Kind, Map, Replace, facts, pair};
use crate::socket::{explain, patiently};
use crate::{ffi, refusal};
use attachment::Attachment;
use dunlin_packet::Home;
use numbers::{MAX_SOCKETS, Numbers};
use program::{KEY, MARK, Maps, VALUE};

/// The command of `bpf(2)`.
const PROGRAM_LOAD: c_int = 5;

/// The kind of the program.
const XDP: u32 = 6;
/// The program may see packets of several pieces, of which it reads the first.
const HAS_FRAGMENTS: u32 = 1 << 5;

/// Addresses that an interface can have, each at one queue.
const MAX_HOMES: u32 = 4096;

/// Bytes for the log of the kernel's verifier.
const LOG: usize = 1 << 16;

/// Where the kernel runs the program.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Mode {
    /// After the driver, for every kind of interface (`XDP_FLAGS_SKB_MODE`).
    #[default]
    Generic,
    /// In the driver, if it can (`XDP_FLAGS_DRV_MODE`). Some drivers take the link down and up for
    /// it (`docs/transports.md`).
    Native,
}

/// Descriptors of a program with its maps and its link.
pub(crate) const DESCRIPTORS: usize = 5;

/// The program of one interface, and its maps.
#[derive(Debug)]
pub struct Steering {
    homes: Map<KEY, VALUE>,
    numbers: Numbers,
    program: OwnedFd,
    attachment: Attachment,
}

impl Steering {
    /// Loads the program with empty maps; it is not attached.
    ///
    /// # Errors
    /// The kernel's, with a sentence that names the missing capability.
    pub fn load() -> io::Result<Self> {
        let homes = Map::new(Kind::Hash, MAX_HOMES).map_err(map_refused)?;
        let numbers = Numbers::new().map_err(map_refused)?;
        let [sockets, places] = numbers.fds().map(|fd| fd.as_raw_fd());
        let maps = Maps {
            homes: homes.fd().as_raw_fd(),
            places,
            sockets,
        };
        let program = load_program(&program::steering(&maps))?;
        Ok(Self {
            homes,
            numbers,
            program,
            attachment: Attachment::none(),
        })
    }

    /// Adopts the program of another process at interface `index`, from its [`Self::descriptors`].
    ///
    /// # Errors
    /// `InvalidData` if these are descriptors of other objects, or if the link is at another
    /// interface.
    pub(crate) fn of(
        [homes, sockets, places, program, link]: [OwnedFd; DESCRIPTORS],
        index: u32,
    ) -> io::Result<Self> {
        let [kind, program_id, ..] = facts(program.as_fd())?;
        if kind != XDP {
            return Err(io::ErrorKind::InvalidData.into());
        }
        Ok(Self {
            homes: Map::of(homes, Kind::Hash, MAX_HOMES)?,
            numbers: Numbers::of([sockets, places])?,
            program,
            attachment: Attachment::of(link, program_id, index)?,
        })
    }

    /// Its link, if it was attached.
    pub(crate) fn link(&self) -> Option<Arc<OwnedFd>> {
        self.attachment.link()
    }

    /// Its descriptors, with that of its link, for another process.
    pub(crate) fn descriptors<'a>(&'a self, link: &'a OwnedFd) -> [BorrowedFd<'a>; DESCRIPTORS] {
        let [sockets, places] = self.numbers.fds();
        let program = self.program.as_fd();
        [self.homes.fd(), sockets, places, program, link.as_fd()]
    }

    /// Whether its link leads to interface `index`. It no longer does after an operator has
    /// detached the program.
    pub(crate) fn is_attached(&self, index: u32) -> bool {
        self.attachment.is_at(index)
    }

    /// Takes the link of another owner of this program. False if the other one has another program.
    ///
    /// # Errors
    /// The kernel's; `ResourceBusy` if the program is attached.
    pub(crate) fn share_link(&self, other: &Self) -> io::Result<bool> {
        let [[_, own, ..], [_, its, ..]] =
            [facts(self.program.as_fd())?, facts(other.program.as_fd())?];
        if own == its {
            self.attachment.share(&other.attachment)?;
        }
        Ok(own == its)
    }

    /// Attaches the program to interface `index`. If the interface has a program, retries for up to
    /// a second.
    ///
    /// # Errors
    /// The kernel's; `ResourceBusy` if the interface has a program, this one included.
    pub fn attach(&self, index: u32, mode: Mode) -> io::Result<()> {
        patiently(|| self.try_attach(index, mode))
    }

    /// Attaches the program to interface `index`.
    ///
    /// # Errors
    /// The kernel's; `ResourceBusy` if the interface has a program, this one included.
    pub(crate) fn try_attach(&self, index: u32, mode: Mode) -> io::Result<()> {
        self.attachment.attach(self.program.as_fd(), index, mode)
    }

    /// Steers packets for `home` that arrive at `queue` to socket number `socket`. `owner` is the
    /// inode number of the UDP socket that has the address.
    ///
    /// # Errors
    /// The kernel's, for example if the map is full.
    pub fn steer(&self, home: &Home, socket: u32, queue: u32, owner: u64) -> io::Result<()> {
        self.set_home(&key_of(home, queue), socket, owner, Replace::Yes)
            .map_err(|error| explain(error, UNSTEERED))
    }

    /// Like [`Self::steer`], but for an owner that has not proven that it has the address: the
    /// address must not have another owner, at any queue, among those that `living` returns.
    ///
    /// # Errors
    /// The kernel's; `ResourceBusy` if it has another owner.
    pub(crate) fn claim(
        &self,
        home: &Home,
        [socket, queue]: [u32; 2],
        owner: u64,
        living: impl Fn() -> io::Result<Vec<u64>>,
    ) -> io::Result<()> {
        let key = key_of(home, queue);
        if self.try_claim(&key, socket, owner)? {
            return Ok(());
        }
        self.forget_dead(living)?;
        if self.try_claim(&key, socket, owner)? {
            return Ok(());
        }
        let why = "another endpoint has this address and port";
        Err(io::Error::new(io::ErrorKind::ResourceBusy, why))
    }

    /// Steers to a socket unless the address has another owner. False if it has.
    fn try_claim(&self, key: &[u8; KEY], socket: u32, owner: u64) -> io::Result<bool> {
        if self.has_other_owner(key, owner) {
            return Ok(false);
        }
        let outcome = self.set_home(key, socket, owner, Replace::No);
        if is_taken(&outcome) {
            return Ok(false);
        }
        outcome.map_err(|error| explain(error, UNSTEERED))?;
        // Two owners may claim different queues at the same time. Then neither gets one.
        let is_contested = self.has_other_owner(key, owner);
        if is_contested {
            self.remove(key);
        }
        Ok(!is_contested)
    }

    /// Whether the address of this key has another owner at any queue.
    fn has_other_owner(&self, key: &[u8; KEY], owner: u64) -> bool {
        let is_it = |other: &[u8; KEY]| other[..QUEUE_IN_KEY] == key[..QUEUE_IN_KEY];
        let homes = self.homes();
        homes
            .iter()
            .any(|(other, value)| is_it(other) && owner_of(value) != owner)
    }

    fn set_home(
        &self,
        key: &[u8; KEY],
        socket: u32,
        owner: u64,
        replace: Replace,
    ) -> io::Result<()> {
        self.homes.set(key, &value(socket, owner), replace)?;
        self.numbers.steer(key, socket)
    }

    /// Lets packets for `home` that arrive at `queue` pass to the kernel again, unless the address
    /// has another owner by now. False if nothing was removed.
    pub fn release(&self, home: &Home, queue: u32, owner: u64) -> bool {
        let key = key_of(home, queue);
        self.homes
            .get(&key)
            .is_some_and(|value| owner_of(&value) == owner)
            && self.remove(&key)
    }

    /// Removes the addresses that ended endpoints have left behind: those whose owner is absent
    /// from two readings of `living`. One reading of the kernel's table does not suffice: it may
    /// miss a socket while others end. Returns the number of removed addresses.
    ///
    /// # Errors
    /// The errors of `living`.
    pub(crate) fn forget_dead(
        &self,
        living: impl Fn() -> io::Result<Vec<u64>>,
    ) -> io::Result<usize> {
        let mut dead = self.homes();
        for _ in 0..2 {
            if dead.is_empty() {
                return Ok(0);
            }
            let living = living()?;
            dead.retain(|(_, value)| !living.contains(&owner_of(value)));
        }
        let removed = dead.iter().filter(|(key, value)| {
            // Another endpoint may have the address by now.
            self.homes.get(key).as_ref() == Some(value) && self.remove(key)
        });
        Ok(removed.count())
    }

    /// Removes the addresses that a killed process has left at a number that a new socket has now.
    fn forget_homes_of(&self, socket: u32) {
        for (key, value) in self.homes() {
            if value[..4] == socket.to_ne_bytes() {
                self.remove(&key);
            }
        }
    }

    /// All addresses in the map, with their values.
    fn homes(&self) -> Vec<([u8; KEY], [u8; VALUE])> {
        let mut homes = Vec::new();
        let mut last = None;
        // The map never has more entries, but it may change during the loop.
        for _ in 0..MAX_HOMES {
            let Some(key) = self.homes.key_after(last.as_ref()) else {
                break;
            };
            homes.extend(self.homes.get(&key).map(|value| (key, value)));
            last = Some(key);
        }
        homes
    }

    fn remove(&self, key: &[u8; KEY]) -> bool {
        // Nothing depends on the answer: the map of all addresses decides.
        let _ = self.numbers.forget_home(key);
        self.homes.remove(key)
    }

    /// Frees the number of a socket.
    pub(crate) fn forget_socket(&self, socket: u32) {
        self.numbers.forget(socket);
    }

    /// Assigns a number to a socket.
    ///
    /// # Errors
    /// The kernel's.
    pub fn set_socket(&self, number: u32, socket: BorrowedFd<'_>) -> io::Result<()> {
        self.numbers
            .set(number, socket, Replace::Yes)
            .map_err(|error| explain(error, NO_SOCKET))
    }

    /// Assigns the first free number that [`numbers_of`] lists to the socket of `home` at a queue,
    /// and removes the addresses that an earlier socket has left at that number. Other processes
    /// may do the same at the same time. The number is free again when the socket ends.
    ///
    /// # Errors
    /// The kernel's; `ResourceBusy` if no number is free.
    pub(crate) fn add_socket(
        &self,
        socket: BorrowedFd<'_>,
        home: &Home,
        queue: u32,
    ) -> io::Result<u32> {
        for number in numbers_of(home, queue) {
            let outcome = self.numbers.set(number, socket, Replace::No);
            if is_taken(&outcome) {
                continue;
            }
            outcome.map_err(|error| explain(error, NO_SOCKET))?;
            self.forget_homes_of(number);
            return Ok(number);
        }
        let why = format!(
            "the interface has {MAX_SOCKETS} sockets, one for each endpoint and queue, and one \
             program serves no more"
        );
        Err(io::Error::new(io::ErrorKind::ResourceBusy, why))
    }
}

/// Complaint about an address that the map does not take.
const UNSTEERED: &str = "the address cannot be steered";
/// Complaint about a socket that the map does not take.
const NO_SOCKET: &str = "the socket cannot be steered to";

/// Where the queue begins in a key.
const QUEUE_IN_KEY: usize = 20;

/// The numbers for the socket of an endpoint at a queue. The program finds the first one soonest.
fn numbers_of(home: &Home, queue: u32) -> impl Iterator<Item = u32> {
    let first = program::number_of(&key_of(home, queue));
    (first..MAX_SOCKETS).chain(0..first)
}

/// The key of an endpoint at a queue, in the form in which the program builds it.
fn key_of(home: &Home, queue: u32) -> [u8; KEY] {
    let ip = match home.address.ip() {
        IpAddr::V4(v4) => v4.to_ipv6_mapped(),
        IpAddr::V6(v6) => v6,
    };
    let mut key = [0; KEY];
    key[..16].copy_from_slice(&ip.octets());
    key[16..18].copy_from_slice(&home.address.port().to_be_bytes());
    key[18..QUEUE_IN_KEY].copy_from_slice(&(home.vlan | MARK).to_be_bytes());
    key[QUEUE_IN_KEY..].copy_from_slice(&queue.to_ne_bytes());
    key
}

/// The value of an endpoint's key.
fn value(socket: u32, owner: u64) -> [u8; VALUE] {
    let mut value = [0; VALUE];
    value[..4].copy_from_slice(&socket.to_ne_bytes());
    value[4..].copy_from_slice(&owner.to_ne_bytes());
    value
}

/// Whether an update failed because the key has a value.
fn is_taken(outcome: &io::Result<()>) -> bool {
    let code = outcome.as_ref().err().and_then(io::Error::raw_os_error);
    code == Some(libc::EEXIST)
}

/// The inode number in a value.
fn owner_of(value: &[u8; VALUE]) -> u64 {
    let [.., a, b, c, d, e, f, g, h] = *value;
    u64::from_ne_bytes([a, b, c, d, e, f, g, h])
}

/// A map that the kernel refuses, with a sentence about the missing capability.
fn map_refused(error: io::Error) -> io::Error {
    let why = refusal::of_map(error.raw_os_error());
    explain(error, why)
}

fn load_program(code: &[u64]) -> io::Result<OwnedFd> {
    // The verifier lets only programs with such a licence call all functions.
    let licence = c"Dual MIT/GPL";
    let mut log = vec![0_u8; LOG];
    let len = |len: usize| u32::try_from(len).expect("a short program");
    let mut attributes = [0; 16];
    attributes[0] = pair(XDP, len(code.len()));
    attributes[1] = code.as_ptr() as u64;
    attributes[2] = licence.as_ptr() as u64;
    attributes[3] = pair(1, len(LOG));
    attributes[4] = log.as_mut_ptr() as u64;
    attributes[5] = pair(0, HAS_FRAGMENTS);
    // SAFETY: the code and the licence are read, the log is written up to its length, and all three
    // live during the call.
    let program = unsafe { ffi::bpf(PROGRAM_LOAD, &mut attributes) };
    let program = program.map_err(|error| {
        let log = log.split(|byte| *byte == 0).next().unwrap_or_default();
        let log = String::from_utf8_lossy(log);
        let why = refusal::of_program(error.raw_os_error());
        explain(error, &format!("{why}: {}", log.trim()))
    })?;
    ffi::own(program)
}

#[cfg(test)]
mod tests;
