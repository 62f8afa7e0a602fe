//! Maps that the kernel keeps for programs (`bpf(2)`), and its descriptions of maps, programs and
//! links.
//!
//! Invariant: a [`Map`] has keys and values of the lengths that its type says, because it was made
//! so, or because the kernel described it so. Called by `steering`.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use libc::c_int;

use super::{bpf, own};

/// Commands of `bpf(2)`.
const MAP_CREATE: c_int = 0;
const MAP_LOOKUP: c_int = 1;
const MAP_UPDATE: c_int = 2;
const MAP_DELETE: c_int = 3;
const MAP_NEXT: c_int = 4;
const OBJECT_INFO: c_int = 15;

/// The kinds of maps.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u32)]
pub(crate) enum Kind {
    Hash = 1,
    Array = 2,
    Sockets = 17,
}

/// Whether an update may replace a value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u64)]
pub(crate) enum Replace {
    Yes = 0,
    No = 1,
}

/// A map with keys of `K` bytes and values of `V` bytes.
#[derive(Debug)]
pub(crate) struct Map<const K: usize, const V: usize>(OwnedFd);

impl<const K: usize, const V: usize> Map<K, V> {
    #[expect(clippy::cast_possible_truncation, reason = "keys and values are short")]
    const LENGTHS: [u32; 2] = [K as u32, V as u32];

    /// Makes an empty map for up to `entries` entries.
    ///
    /// # Errors
    /// The kernel's.
    pub(crate) fn new(kind: Kind, entries: u32) -> io::Result<Self> {
        let [key, value] = Self::LENGTHS;
        let mut attributes = [0; 16];
        attributes[0] = pair(kind as u32, key);
        attributes[1] = pair(value, entries);
        // SAFETY: the command reads numbers alone.
        Ok(Self(own(unsafe { bpf(MAP_CREATE, &mut attributes) }?)?))
    }

    /// A map that another process has made, with this kind, number of entries, and lengths of keys
    /// and values.
    ///
    /// # Errors
    /// `InvalidData` if it differs, or is no map; the kernel's.
    pub(crate) fn of(fd: OwnedFd, kind: Kind, entries: u32) -> io::Result<Self> {
        let [key, value] = Self::LENGTHS;
        let [its_kind, _, its_key, its_value, its_entries, ..] = facts(fd.as_fd())?;
        if [its_kind, its_key, its_value, its_entries] != [kind as u32, key, value, entries] {
            return Err(io::ErrorKind::InvalidData.into());
        }
        Ok(Self(fd))
    }

    /// Its descriptor.
    pub(crate) fn fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }

    /// Sets the value of a key.
    ///
    /// # Errors
    /// The kernel's.
    pub(crate) fn set(&self, key: &[u8; K], value: &[u8; V], replace: Replace) -> io::Result<()> {
        let [key, value] = [key.as_ptr(), value.as_ptr()].map(|at| at as u64);
        let mut attributes = [self.number(), key, value, replace as u64];
        // SAFETY: the map's keys and values have the lengths of `key` and `value`, which are only
        // read.
        unsafe { bpf(MAP_UPDATE, &mut attributes) }.map(|_| ())
    }

    /// The value of a key.
    pub(crate) fn get(&self, key: &[u8; K]) -> Option<[u8; V]> {
        let mut value = [0; V];
        let places = [key.as_ptr() as u64, value.as_mut_ptr() as u64];
        let mut attributes = [self.number(), places[0], places[1], 0];
        // SAFETY: the map's keys and values have the lengths of `key` and `value`.
        let found = unsafe { bpf(MAP_LOOKUP, &mut attributes) };
        found.is_ok().then_some(value)
    }

    /// Removes a key. False if there is none.
    pub(crate) fn remove(&self, key: &[u8; K]) -> bool {
        let mut attributes = [self.number(), key.as_ptr() as u64, 0, 0];
        // SAFETY: the map's keys have the length of `key`, which is only read.
        unsafe { bpf(MAP_DELETE, &mut attributes) }.is_ok()
    }

    /// The key after this one, or the first one.
    pub(crate) fn key_after(&self, last: Option<&[u8; K]>) -> Option<[u8; K]> {
        let last = last.map_or(std::ptr::null(), |key| key.as_ptr());
        let mut key = [0; K];
        let mut attributes = [self.number(), last as u64, key.as_mut_ptr() as u64, 0];
        // SAFETY: the last key is null or live, and the map's keys have the length of `key`.
        let found = unsafe { bpf(MAP_NEXT, &mut attributes) };
        found.is_ok().then_some(key)
    }

    /// Its descriptor, as the first attribute of a command.
    fn number(&self) -> u64 {
        pair(self.0.as_raw_fd().cast_unsigned(), 0)
    }
}

/// The first fields of the kernel's description of a map, program or link: its kind and its id; for
/// a link also the program's id (the third) and the interface's index (the fifth).
pub(crate) fn facts(object: BorrowedFd<'_>) -> io::Result<[u32; 8]> {
    let mut facts = [0_u32; 8];
    let len = u32::try_from(size_of_val(&facts)).expect("32 bytes");
    let number = object.as_raw_fd().cast_unsigned();
    let mut attributes = [pair(number, len), facts.as_mut_ptr() as u64];
    // SAFETY: the kernel writes at most `len` bytes into the live array, and zero bytes ask for
    // nothing else.
    unsafe { bpf(OBJECT_INFO, &mut attributes) }?;
    Ok(facts)
}

/// Two 32-bit attributes, one after the other.
pub(crate) fn pair(first: u32, second: u32) -> u64 {
    let mut bytes = [0; 8];
    bytes[..4].copy_from_slice(&first.to_ne_bytes());
    bytes[4..].copy_from_slice(&second.to_ne_bytes());
    u64::from_ne_bytes(bytes)
}
