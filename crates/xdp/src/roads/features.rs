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

/// Bytes of the header after that of netlink.
const HEADER: usize = 4;

/// The kinds of XDP that a driver has.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Features {
    /// The driver runs programs, and they may redirect packets.
    pub native: bool,
    /// The driver uses frames in place.
    pub zero_copy: bool,
}

impl Features {
    /// Those of interface `index`; `None` if the kernel does not tell.
    pub(crate) fn of(index: u32) -> Option<Self> {
        let socket = ffi::socket(libc::AF_NETLINK, libc::SOCK_RAW, libc::NETLINK_GENERIC).ok()?;
        let mut room = vec![0; ROOM];
        let mut ask = |kind: u16, command: u8, (name, value): (u16, &[u8]), wanted: u16| {
            let mut question = begin(kind, &[command, 1, 0, 0]);
            attribute(&mut question, name, value);
            ffi::send(socket.as_fd(), &end(question)).ok()?;
            let answer = ffi::receive(socket.as_fd(), &mut room).ok()?;
            value_of(answer, kind, wanted)
        };
        let family = ask(CONTROL, GET_FAMILY, (FAMILY_NAME, b"netdev\0"), FAMILY_ID)?;
        let family = u16::from_ne_bytes(field(&family, 0)?);
        let place = (INTERFACE, &index.to_ne_bytes()[..]);
        let bits = ask(family, GET_DEVICE, place, XDP_FEATURES)?;
        Some(Self::of_bits(u64::from_ne_bytes(field(&bits, 0)?)))
    }

    fn of_bits(bits: u64) -> Self {
        const BASIC: u64 = 1;
        const REDIRECT: u64 = 2;
        const ZERO_COPY: u64 = 8;
        let has = |all| bits & all == all;
        Self {
            native: has(BASIC | REDIRECT),
            zero_copy: has(ZERO_COPY),
        }
    }
}

/// The value of an attribute in an answer of this kind.
fn value_of(answer: &[u8], kind: u16, wanted: u16) -> Option<Vec<u8>> {
    let body = body_of(answer, kind)?.get(HEADER..)?;
    let (_, value) = attributes(body).find(|(name, _)| *name == wanted)?;
    Some(value.to_vec())
}
