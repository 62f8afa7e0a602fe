//! Steering: the program at an interface and its two maps, which lead from an endpoint's address to
//! its socket. Loaded by `bpf(2)` without a library, and without a compiler for BPF.
//!
//! Invariant: everything here ends with its descriptors, even when the process is killed. The
//! program is attached by a link, which the kernel removes when the link's last descriptor is
//! closed; nothing is pinned, and no setting of the interface is changed. Called by `open`.

mod assemble;
mod program;

use std::io;
use std::net::IpAddr;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::sync::OnceLock;

use libc::c_int;

use crate::ffi;
use crate::refusal;
use crate::socket::{explain, patiently};
use dunlin_packet::Home;
use program::{KEY, VALUE};

/// Commands of `bpf(2)`.
const MAP_CREATE: c_int = 0;
const MAP_LOOKUP: c_int = 1;
const MAP_UPDATE: c_int = 2;
const MAP_DELETE: c_int = 3;
const MAP_NEXT: c_int = 4;
const PROGRAM_LOAD: c_int = 5;
const OBJECT_INFO: c_int = 15;
const LINK_CREATE: c_int = 28;

/// Kinds of maps and programs.
const HASH: u32 = 1;
const SOCKETS: u32 = 17;
const XDP: u32 = 6;
/// The kind of the link of such a program.
const LINK_XDP: u32 = 6;
/// Where a program is attached.
const AT_XDP: u32 = 37;
/// The program may see packets of several pieces, of which it reads the first.
const HAS_FRAGMENTS: u32 = 1 << 5;

/// Addresses that an interface can have, each at one queue.
const MAX_HOMES: u32 = 4096;
/// Sockets that an interface can have.
const MAX_SOCKETS: u32 = 256;

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

/// The program of one interface, and its maps.
#[derive(Debug)]
pub struct Steering {
    homes: OwnedFd,
    sockets: OwnedFd,
    program: OwnedFd,
    /// Empty before it is attached.
    link: OnceLock<OwnedFd>,
}

impl Steering {
    /// Loads the program with empty maps; it is not attached.
    ///
    /// # Errors
    /// The kernel's, with a sentence that names the missing capability.
    pub fn load() -> io::Result<Self> {
        let homes = create_map(HASH, KEY, VALUE, MAX_HOMES)?;
        let sockets = create_map(SOCKETS, 4, 4, MAX_SOCKETS)?;
        let code = program::steering(homes.as_raw_fd(), sockets.as_raw_fd());
        let program = load_program(&code)?;
        Ok(Self {
            homes,
            sockets,
            program,
            link: OnceLock::new(),
        })
    }

    /// Adopts the program of another process at interface `index`, from its [`Self::descriptors`].
    ///
    /// # Errors
    /// `InvalidData` if these are descriptors of other objects, or if the link is at another
    /// interface.
    pub(crate) fn of(
        [homes, sockets, program, link]: [OwnedFd; 4],
        index: u32,
    ) -> io::Result<Self> {
        let bytes = |len: usize| u32::try_from(len).expect("keys and values are short");
        let [kind, program_id, ..] = facts(&program)?;
        let of_homes = shape_of_map(&homes)? == [HASH, bytes(KEY), bytes(VALUE), MAX_HOMES];
        let of_sockets = shape_of_map(&sockets)? == [SOCKETS, 4, 4, MAX_SOCKETS];
        let [of_link, _, linked, _, at, ..] = facts(&link)?;
        let is_there = [of_link, linked, at] == [LINK_XDP, program_id, index];
        if kind != XDP || !of_homes || !of_sockets || !is_there {
            return Err(io::ErrorKind::InvalidData.into());
        }
        let link = OnceLock::from(link);
        Ok(Self {
            homes,
            sockets,
            program,
            link,
        })
    }

    /// Its descriptors, for another process; `None` if it is not attached.
    pub(crate) fn descriptors(&self) -> Option<[BorrowedFd<'_>; 4]> {
        let link = self.link.get()?;
        Some([&self.homes, &self.sockets, &self.program, link].map(AsFd::as_fd))
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
        let flags = match mode {
            Mode::Generic => 1 << 1,
            Mode::Native => 1 << 2,
        };
        let mut attributes = [
            pair(number(&self.program), index),
            pair(AT_XDP, flags),
            0,
            0,
        ];
        // SAFETY: the command reads numbers alone.
        let link = unsafe { ffi::bpf(LINK_CREATE, &mut attributes) };
        let link = link.map_err(|error| {
            let why = refusal::of_attachment(error.raw_os_error());
            explain(error, why)
        })?;
        // SAFETY: the descriptor is new, open, and has no other owner.
        let link = unsafe { OwnedFd::from_raw_fd(link) };
        // The kernel lets the program be attached to several interfaces, but this value keeps only
        // one link.
        self.link
            .set(link)
            .map_err(|_| io::Error::from(io::ErrorKind::ResourceBusy))?;
        Ok(())
    }

    /// Steers packets for `home` that arrive at `queue` to socket number `socket`. `owner` is the
    /// inode number of the UDP socket that has the address.
    ///
    /// # Errors
    /// The kernel's, for example if the map is full.
    pub fn steer(&self, home: &Home, socket: u32, queue: u32, owner: u64) -> io::Result<()> {
        self.set_home(&key_of(home, queue), value(socket, owner), ANY)
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
        let (key, value) = (key_of(home, queue), value(socket, owner));
        if self.try_claim(&key, value, owner)? {
            return Ok(());
        }
        self.forget_dead(living)?;
        if self.try_claim(&key, value, owner)? {
            return Ok(());
        }
        let why = "another endpoint has this address and port";
        Err(io::Error::new(io::ErrorKind::ResourceBusy, why))
    }

    /// Steers to a socket unless the address has another owner. False if it has.
    fn try_claim(&self, key: &[u8; KEY], value: [u8; VALUE], owner: u64) -> io::Result<bool> {
        if self.has_other_owner(key, owner) {
            return Ok(false);
        }
        let outcome = self.set_home(key, value, NEW);
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

    fn set_home(&self, key: &[u8; KEY], value: [u8; VALUE], flags: u64) -> io::Result<()> {
        update(&self.homes, key, &value, flags)
    }

    /// Lets packets for `home` that arrive at `queue` pass to the kernel again, unless the address
    /// has another owner by now. False if nothing was removed.
    pub fn release(&self, home: &Home, queue: u32, owner: u64) -> bool {
        let key = key_of(home, queue);
        self.value_of(&key)
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
            self.value_of(key).as_ref() == Some(value) && self.remove(key)
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
            let Some(key) = self.key_after(last.as_ref()) else {
                break;
            };
            homes.extend(self.value_of(&key).map(|value| (key, value)));
            last = Some(key);
        }
        homes
    }

    fn key_after(&self, last: Option<&[u8; KEY]>) -> Option<[u8; KEY]> {
        let last = last.map_or(std::ptr::null(), |key| key.as_ptr());
        let mut key = [0; KEY];
        let map = pair(number(&self.homes), 0);
        let mut attributes = [map, last as u64, key.as_mut_ptr() as u64, 0];
        // SAFETY: the last key is null or live, and the map's keys have the length of `key`.
        let found = unsafe { ffi::bpf(MAP_NEXT, &mut attributes) };
        found.is_ok().then_some(key)
    }

    fn value_of(&self, key: &[u8; KEY]) -> Option<[u8; VALUE]> {
        let mut value = [0; VALUE];
        let map = pair(number(&self.homes), 0);
        let mut attributes = [map, key.as_ptr() as u64, value.as_mut_ptr() as u64, 0];
        // SAFETY: the map's keys and values have the lengths of `key` and `value`.
        let found = unsafe { ffi::bpf(MAP_LOOKUP, &mut attributes) };
        found.is_ok().then_some(value)
    }

    fn remove(&self, key: &[u8; KEY]) -> bool {
        let mut attributes = [pair(number(&self.homes), 0), key.as_ptr() as u64, 0, 0];
        // SAFETY: the map's keys have the length of `key`, which is only read.
        unsafe { ffi::bpf(MAP_DELETE, &mut attributes) }.is_ok()
    }

    /// Frees the number of a socket.
    pub(crate) fn forget_socket(&self, socket: u32) {
        let key = socket.to_ne_bytes();
        let mut attributes = [pair(number(&self.sockets), 0), key.as_ptr() as u64, 0, 0];
        // SAFETY: the map's keys have the length of `key`, which is only read. If the number has no
        // socket, the call does nothing.
        let _ = unsafe { ffi::bpf(MAP_DELETE, &mut attributes) };
    }

    /// Assigns a number to a socket.
    ///
    /// # Errors
    /// The kernel's.
    pub fn set_socket(&self, number: u32, socket: BorrowedFd<'_>) -> io::Result<()> {
        let fd = socket.as_raw_fd();
        update(&self.sockets, &number.to_ne_bytes(), &fd.to_ne_bytes(), ANY)
            .map_err(|error| explain(error, "the socket cannot be steered to"))
    }

    /// Assigns the first free number to a socket, even if other processes do so at the same time,
    /// and removes the addresses that an earlier socket has left at that number. The number is free
    /// again when the socket ends.
    ///
    /// # Errors
    /// The kernel's; `ResourceBusy` if no number is free.
    pub(crate) fn add_socket(&self, socket: BorrowedFd<'_>) -> io::Result<u32> {
        let fd = socket.as_raw_fd();
        for number in 0..MAX_SOCKETS {
            match update(&self.sockets, &number.to_ne_bytes(), &fd.to_ne_bytes(), NEW) {
                Ok(()) => {
                    self.forget_homes_of(number);
                    return Ok(number);
                }
                Err(error) if error.raw_os_error() == Some(libc::EEXIST) => {}
                Err(error) => return Err(explain(error, "the socket cannot be steered to")),
            }
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

/// Where the queue begins in a key.
const QUEUE_IN_KEY: usize = 20;

/// The key of an endpoint at a queue, in the form in which the program builds it.
fn key_of(home: &Home, queue: u32) -> [u8; KEY] {
    let ip = match home.address.ip() {
        IpAddr::V4(v4) => v4.to_ipv6_mapped(),
        IpAddr::V6(v6) => v6,
    };
    let mut key = [0; KEY];
    key[..16].copy_from_slice(&ip.octets());
    key[16..18].copy_from_slice(&home.address.port().to_be_bytes());
    key[18..QUEUE_IN_KEY].copy_from_slice(&home.vlan.to_be_bytes());
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

/// The kind of a map, the lengths of its keys and values, and the most entries that it holds.
fn shape_of_map(map: &OwnedFd) -> io::Result<[u32; 4]> {
    let [kind, _, key, value, entries, ..] = facts(map)?;
    Ok([kind, key, value, entries])
}

/// The first fields of the kernel's description of a map, program or link: its kind and its id; for
/// a link also the program's id (the third) and the interface's index (the fifth).
fn facts(object: &OwnedFd) -> io::Result<[u32; 8]> {
    let mut facts = [0_u32; 8];
    let len = u32::try_from(size_of_val(&facts)).expect("32 bytes");
    let mut attributes = [pair(number(object), len), facts.as_mut_ptr() as u64];
    // SAFETY: the kernel writes at most `len` bytes into the live array, and zero bytes ask for
    // nothing else.
    unsafe { ffi::bpf(OBJECT_INFO, &mut attributes) }?;
    Ok(facts)
}

fn create_map(kind: u32, key: usize, value: usize, entries: u32) -> io::Result<OwnedFd> {
    let bytes = |len: usize| u32::try_from(len).expect("keys and values are short");
    let mut attributes = [0; 16];
    attributes[0] = pair(kind, bytes(key));
    attributes[1] = pair(bytes(value), entries);
    // SAFETY: the command reads numbers alone.
    let map = unsafe { ffi::bpf(MAP_CREATE, &mut attributes) };
    let map = map.map_err(|error| {
        let why = refusal::of_map(error.raw_os_error());
        explain(error, why)
    })?;
    ffi::own(map)
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

/// Flags of an update: `ANY` may replace a value, `NEW` may not.
const ANY: u64 = 0;
const NEW: u64 = 1;

fn update(map: &OwnedFd, key: &[u8], value: &[u8], flags: u64) -> io::Result<()> {
    let mut attributes = [
        pair(number(map), 0),
        key.as_ptr() as u64,
        value.as_ptr() as u64,
        flags,
    ];
    // SAFETY: all callers pass a key and a value of the lengths with which the map was made; they
    // are only read.
    unsafe { ffi::bpf(MAP_UPDATE, &mut attributes) }.map(|_| ())
}

/// A descriptor as an attribute.
fn number(fd: &OwnedFd) -> u32 {
    fd.as_raw_fd().cast_unsigned()
}

/// Two 32-bit attributes, one after the other.
fn pair(first: u32, second: u32) -> u64 {
    let mut bytes = [0; 8];
    bytes[..4].copy_from_slice(&first.to_ne_bytes());
    bytes[4..].copy_from_slice(&second.to_ne_bytes());
    u64::from_ne_bytes(bytes)
}

#[cfg(test)]
mod tests;
