//! The kinds of XDP that a driver has, as the kernel tells by generic netlink (the family `netdev`,
//! `Documentation/netlink/specs/netdev.yaml`). It needs no privilege.
//!
//! Called by `setup`, for `dunlin info`.

use std::os::fd::AsFd;

use super::ROOM;
use super::message::{attribute, attributes, begin, body_of, end, field};
use crate::ffi;

/// The family that knows the others, its command that describes one, and the attributes with the
/// name and the number of a family.
const CONTROL: u16 = 16;
const GET_FAMILY: u8 = 3;
const FAMILY_ID: u16 = 1;
const FAMILY_NAME: u16 = 2;

/// The command of `netdev` that describes an interface, and its attributes.
const GET_DEVICE: u8 = 1;
const INTERFACE: u16 = 1;
const XDP_FEATURES: u16 = 3;
const ZERO_COPY_PIECES: u16 = 4;

/// Bytes of the header after that of netlink.
const HEADER: usize = 4;

/// The kinds of XDP that a driver has.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Features {
    /// The driver runs programs, and they may redirect packets.
    pub native: bool,
    /// The driver uses frames in place, and takes packets of several of them.
    pub zero_copy: bool,
}

impl Features {
    /// Those of interface `index`; `None` if the kernel does not tell.
    pub(crate) fn of(index: u32) -> Option<Self> {
        let socket = ffi::socket(libc::AF_NETLINK, libc::SOCK_RAW, libc::NETLINK_GENERIC).ok()?;
        let mut room = vec![0; ROOM];
        let mut ask = |kind: u16, command: u8, (name, value): (u16, &[u8])| {
            let mut question = begin(kind, &[command, 1, 0, 0]);
            attribute(&mut question, name, value);
            ffi::send(socket.as_fd(), &end(question)).ok()?;
            let answer = ffi::receive(socket.as_fd(), &mut room).ok()?;
            Some(body_of(answer, kind)?.get(HEADER..)?.to_vec())
        };
        let family = ask(CONTROL, GET_FAMILY, (FAMILY_NAME, b"netdev\0"))?;
        let family = u16::from_ne_bytes(value_of(&family, FAMILY_ID)?);
        let place = (INTERFACE, &index.to_ne_bytes()[..]);
        let device = ask(family, GET_DEVICE, place)?;
        let bits = u64::from_ne_bytes(value_of(&device, XDP_FEATURES)?);
        let pieces = value_of(&device, ZERO_COPY_PIECES).map_or(1, u32::from_ne_bytes);
        Some(Self::of_bits(bits, pieces))
    }

    /// The kinds that these bits name, for a driver that takes packets of up to `pieces` frames in
    /// place.
    fn of_bits(bits: u64, pieces: u32) -> Self {
        const BASIC: u64 = 1;
        const REDIRECT: u64 = 2;
        const ZERO_COPY: u64 = 8;
        let has = |all| bits & all == all;
        Self {
            native: has(BASIC | REDIRECT),
            zero_copy: has(ZERO_COPY) && pieces > 1,
        }
    }
}

/// The value of an attribute.
fn value_of<const N: usize>(bytes: &[u8], wanted: u16) -> Option<[u8; N]> {
    let (_, value) = attributes(bytes).find(|(name, _)| *name == wanted)?;
    field(value, 0)
}

#[cfg(test)]
mod tests;
