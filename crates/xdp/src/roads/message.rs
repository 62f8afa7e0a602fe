//! Messages about the kernel's routing tables (`rtnetlink(7)`): our requests, and the kernel's
//! answers and events.
//!
//! No I/O and no unsafe code. Every length is checked before it is used. Called by `roads`.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::steering::Mode;
use dunlin_packet::{Mac, TYPE_TAG};

const HEADER: usize = 16;
const ALIGN: usize = 4;

/// Kinds of messages.
const ERROR: u16 = 2;
const NEW_LINK: u16 = 16;
const DELETE_LINK: u16 = 17;
const GET_LINK: u16 = 18;
const NEW_ROUTE: u16 = 24;
const DELETE_ROUTE: u16 = 25;
const GET_ROUTE: u16 = 26;
const NEW_NEIGHBOUR: u16 = 28;
const DELETE_NEIGHBOUR: u16 = 29;
const GET_NEIGHBOUR: u16 = 30;

const REQUEST: u16 = 1;

/// A route to one host, as opposed to one to ourselves, or to nowhere.
const UNICAST: u8 = 1;
/// The state of a neighbour: its address is known and was confirmed lately, or by an operator.
const KNOWN: u16 = 0x02 | 0x40 | 0x80;
/// The state of a neighbour: its address is known, and the kernel will confirm the address when it
/// next sends there, or is confirming it now.
const STALE: u16 = 0x04 | 0x08 | 0x10;
/// The state of a neighbour about which the kernel does nothing until it sends there.
const IDLE: u16 = 0x04;
/// The interface is up.
const UP: u32 = 1;
/// The kind of interface that has Ethernet frames.
const ETHERNET: u16 = 1;
/// The number of no family in particular (`AF_UNSPEC`), and that of IPv6 (`AF_INET6`).
const ANY: u8 = 0;
const INET_6: u8 = 10;

/// A neighbour, as the kernel knows it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Neighbour {
    /// Its address, while the kernel would use it.
    pub mac: Option<Mac>,
    /// Whether the kernel has not confirmed the address for a long time, and will do so when it
    /// next sends there.
    pub is_idle: bool,
}

/// An interface, as the kernel knows it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Link {
    /// Its number.
    pub index: u32,
    /// Its address; `None` if it is not one of Ethernet.
    pub mac: Option<Mac>,
    /// Bytes of its longest packets.
    pub mtu: u32,
    /// Bytes of its longest packets of IPv6, which a router or an operator may limit further;
    /// `None` if it has no IPv6.
    pub mtu_6: Option<u32>,
    /// Whether it is up.
    pub is_up: bool,
    /// The interface below it.
    pub below: Below,
    /// Its XDP program.
    pub program: Attached,
}

impl Link {
    /// Bytes of its longest packets of IPv6, or of IPv4.
    pub(crate) fn mtu_of(&self, is_v6: bool) -> u32 {
        let limit = self.mtu_6.filter(|_| is_v6);
        limit.map_or(self.mtu, |limit| limit.min(self.mtu))
    }
}

/// The XDP programs of an interface.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Attached {
    /// It has none.
    #[default]
    Nothing,
    /// It has the program with this number, which runs in this mode; `None` if it runs in the card.
    Program(u32, Option<Mode>),
    /// It has several, for example one in the driver and one in the card.
    Several,
}

/// The interface whose frames carry those of another one.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Below {
    /// None: its own frames are on the wire.
    #[default]
    Itself,
    /// An interface whose frames have the tag of a VLAN (802.1Q).
    Vlan {
        /// Its index.
        index: u32,
        /// The number of the VLAN.
        number: u16,
    },
    /// One that has tags of another kind (802.1ad), or is in another network namespace.
    Elsewhere,
}

/// The contents of a message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Message {
    /// A neighbour at an interface.
    Neighbour(u32, IpAddr, Neighbour),
    /// An interface.
    Link(Link),
    /// An interface that is gone.
    LinkGone(u32),
    /// A route to a single host over an interface.
    Route(Route),
    /// A route that is none of these: to ourselves, say, or withdrawn.
    OtherRoute,
    /// The kernel refuses, for this reason (`errno(3)`).
    Refused(i32),
}

/// A route to a single host.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Route {
    /// The interface over which it leads.
    pub(super) index: u32,
    pub(super) gateway: Option<IpAddr>,
    /// Bytes of the longest packets on it, if an operator has set them, or if a router has refused
    /// longer ones. 0 if routers may cut packets on it: only the kernel sends packets that may be
    /// cut.
    pub(super) mtu: Option<u32>,
}

/// Asks for the route to an address. Only a link-local one needs the interface.
pub(super) fn ask_for_route(to: IpAddr, index: u32) -> Vec<u8> {
    let (family, octets) = octets(to);
    let bits = u8::try_from(8 * octets.len()).expect("addresses have at most 128 bits");
    let mut request = begin(GET_ROUTE, &[family, bits, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
    attribute(&mut request, 1, &octets);
    if let IpAddr::V6(v6) = to
        && v6.is_unicast_link_local()
    {
        attribute(&mut request, 4, &index.to_ne_bytes());
    }
    end(request)
}

/// Asks for a neighbour at an interface.
pub(super) fn ask_for_neighbour(ip: IpAddr, index: u32) -> Vec<u8> {
    let (family, octets) = octets(ip);
    let [a, b, c, d] = index.to_ne_bytes();
    let mut request = begin(GET_NEIGHBOUR, &[family, 0, 0, 0, a, b, c, d, 0, 0, 0, 0]);
    attribute(&mut request, 1, &octets);
    end(request)
}

/// Asks for an interface.
pub(super) fn ask_for_link(index: u32) -> Vec<u8> {
    let mut body = [0; 16];
    body[4..8].copy_from_slice(&index.to_ne_bytes());
    end(begin(GET_LINK, &body))
}

/// The body of the first message in bytes that the kernel has sent, if it is of this kind.
pub(super) fn body_of(bytes: &[u8], kind: u16) -> Option<&[u8]> {
    let (its_kind, body) = bodies(bytes).next()?;
    (its_kind == kind).then_some(body)
}

/// The messages in bytes that the kernel has sent. Messages of other kinds are left out.
pub(super) fn read(bytes: &[u8]) -> impl Iterator<Item = Message> {
    bodies(bytes).filter_map(|(kind, body)| match kind {
        NEW_NEIGHBOUR | DELETE_NEIGHBOUR => neighbour(body, kind == NEW_NEIGHBOUR),
        NEW_LINK if is_of_interface(body) => link(body).map(Message::Link),
        DELETE_LINK if is_of_interface(body) => {
            Some(Message::LinkGone(u32::from_ne_bytes(field(body, 4)?)))
        }
        NEW_ROUTE => Some(route(body).unwrap_or(Message::OtherRoute)),
        DELETE_ROUTE => Some(Message::OtherRoute),
        ERROR => Some(Message::Refused(reason(body)?)),
        _ => None,
    })
}

/// The kernel's answer to a question: the first message in bytes that it has sent.
///
/// # Errors
/// The kernel's, if it could not answer at that moment, which tells nothing about its tables;
/// `InvalidData` if there is no message.
pub(super) fn answer(bytes: &[u8]) -> io::Result<Message> {
    match read(bytes).next() {
        Some(Message::Refused(reason)) if is_passing(reason) => {
            Err(io::Error::from_raw_os_error(reason))
        }
        first => first.ok_or_else(|| io::ErrorKind::InvalidData.into()),
    }
}

/// Whether the kernel refuses for a reason that passes: it has no memory, say.
fn is_passing(reason: i32) -> bool {
    matches!(
        reason,
        libc::ENOBUFS | libc::ENOMEM | libc::EAGAIN | libc::EINTR
    )
}

/// The reason of a refusal, which the kernel sends as a negative number.
fn reason(body: &[u8]) -> Option<i32> {
    i32::from_ne_bytes(field(body, 0)?).checked_neg()
}

/// The kinds and bodies of messages.
fn bodies(bytes: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
    let mut rest = bytes;
    std::iter::from_fn(move || {
        let len = usize::try_from(u32::from_ne_bytes(field(rest, 0)?)).ok()?;
        let kind = u16::from_ne_bytes(field(rest, 4)?);
        let body = rest.get(HEADER..len)?;
        rest = rest.get(len.next_multiple_of(ALIGN)..).unwrap_or_default();
        Some((kind, body))
    })
}

fn neighbour(body: &[u8], is_there: bool) -> Option<Message> {
    let index = u32::from_ne_bytes(field(body, 4)?);
    let state = u16::from_ne_bytes(field(body, 8)?);
    let (mut ip, mut mac) = (None, None);
    for (kind, value) in attributes(body.get(12..)?) {
        match kind {
            1 => ip = address(value),
            2 => mac = value.try_into().ok(),
            _ => {}
        }
    }
    let is_usable = is_there && state & (KNOWN | STALE) != 0;
    let neighbour = Neighbour {
        mac: mac.filter(|_| is_usable),
        is_idle: state & IDLE != 0,
    };
    Some(Message::Neighbour(index, ip?, neighbour))
}

/// Whether a message describes an interface, in whole or for IPv6. A bridge sends messages of the
/// same kinds, but of its own family, about its ports. These lack the facts of IPv6; and when a
/// port leaves the bridge, one of them looks as if the interface were gone.
fn is_of_interface(body: &[u8]) -> bool {
    matches!(body.first(), Some(&(ANY | INET_6)))
}

fn link(body: &[u8]) -> Option<Link> {
    let kind = u16::from_ne_bytes(field(body, 2)?);
    let index = u32::from_ne_bytes(field(body, 4)?);
    let flags = u32::from_ne_bytes(field(body, 8)?);
    let (mut mac, mut mtu, mut lower, mut vlan) = (None, 0, None, None);
    let (mut is_near, mut program, mut mtu_6) = (true, Attached::Nothing, None);
    for (kind, value) in attributes(body.get(16..)?) {
        match kind {
            1 => mac = value.try_into().ok(),
            4 => mtu = u32::from_ne_bytes(field(value, 0)?),
            5 => lower = Some(u32::from_ne_bytes(field(value, 0)?)),
            // A router's advertisement causes an event of IPv6 alone.
            12 if body.first() == Some(&INET_6) => mtu_6 = mtu_of_inet_6(value),
            18 => vlan = vlan_of(value),
            26 => {
                let mut families = attributes(value);
                let inet_6 = families.find(|(family, _)| *family == u16::from(INET_6));
                mtu_6 = inet_6.and_then(|(_, facts)| mtu_of_inet_6(facts));
            }
            37 => is_near = false,
            43 => program = program_of(value),
            _ => {}
        }
    }
    let below = match (vlan, lower.filter(|_| is_near)) {
        (None, _) => Below::Itself,
        (Some(Some(number)), Some(index)) => Below::Vlan { index, number },
        _ => Below::Elsewhere,
    };
    Some(Link {
        below,
        index,
        mac: mac.filter(|_| kind == ETHERNET),
        mtu,
        mtu_6,
        is_up: flags & UP != 0,
        program,
    })
}

/// The longest packets among the facts of IPv6 about an interface (`IFLA_INET6_CONF`, an array
/// whose third number is `DEVCONF_MTU6`).
fn mtu_of_inet_6(facts: &[u8]) -> Option<u32> {
    const CONF: u16 = 2;
    const MTU: usize = 2;
    let (_, numbers) = attributes(facts).find(|(kind, _)| *kind == CONF)?;
    let mtu = u32::from_ne_bytes(field(numbers, 4 * MTU)?);
    (mtu != 0).then_some(mtu)
}

/// The program in the description of an interface's XDP (`IFLA_XDP_ATTACHED`, `IFLA_XDP_PROG_ID`).
/// An interface without one has no number, or 0, as has an interface with several.
fn program_of(details: &[u8]) -> Attached {
    const NATIVE: u8 = 1;
    const GENERIC: u8 = 2;
    const SEVERAL: u8 = 4;
    let (mut number, mut mode) = (0, None);
    for (kind, value) in attributes(details) {
        match (kind, value) {
            (2, [SEVERAL]) => return Attached::Several,
            (2, [NATIVE]) => mode = Some(Mode::Native),
            (2, [GENERIC]) => mode = Some(Mode::Generic),
            (4, value) => number = field(value, 0).map_or(0, u32::from_ne_bytes),
            _ => {}
        }
    }
    match number {
        0 => Attached::Nothing,
        _ => Attached::Program(number, mode),
    }
}

/// The number of a VLAN in the details of an interface. `None` if the interface is of another kind,
/// `Some(None)` if it is a VLAN's and its tags are of another kind.
#[expect(
    clippy::option_option,
    reason = "tags of another kind differ from none"
)]
fn vlan_of(details: &[u8]) -> Option<Option<u16>> {
    let (mut is_vlan, mut number, mut has_usual_tags) = (false, None, true);
    for (kind, value) in attributes(details) {
        match kind {
            1 => is_vlan = value.strip_suffix(&[0]).unwrap_or(value) == b"vlan",
            2 => {
                for (kind, value) in attributes(value) {
                    match kind {
                        1 => number = Some(u16::from_ne_bytes(field(value, 0)?)),
                        5 => has_usual_tags = value == TYPE_TAG.to_be_bytes(),
                        _ => {}
                    }
                }
            }
            _ => {}
        }
    }
    is_vlan.then(|| number.filter(|_| has_usual_tags))
}

fn route(body: &[u8]) -> Option<Message> {
    let [kind] = field(body, 7)?;
    let (mut index, mut gateway, mut mtu) = (None, None, None);
    for (kind, value) in attributes(body.get(12..)?) {
        match kind {
            4 => index = Some(u32::from_ne_bytes(field(value, 0)?)),
            5 => gateway = Some(address(value)?),
            8 => mtu = mtu_of(value),
            // A gateway of the other family: its family, then its address.
            18 => gateway = Some(address(value.get(2..)?)?),
            _ => {}
        }
    }
    let index = index.filter(|_| kind == UNICAST)?;
    Some(Message::Route(Route {
        index,
        gateway,
        mtu,
    }))
}

/// The longest packets, among the metrics of a route (`RTAX_MTU`). 0 if the operator has locked
/// them (`RTAX_LOCK`): then the kernel permits routers to cut its packets, and our frames never do.
fn mtu_of(metrics: &[u8]) -> Option<u32> {
    const LOCK: u16 = 1;
    const MTU: u16 = 2;
    let metric = |wanted| {
        let (_, value) = attributes(metrics).find(|(kind, _)| *kind == wanted)?;
        field(value, 0).map(u32::from_ne_bytes)
    };
    match metric(LOCK) {
        Some(locked) if locked >> MTU & 1 == 1 => Some(0),
        _ => metric(MTU).filter(|mtu| *mtu != 0),
    }
}

/// Kinds and values of attributes. The upper two bits of a kind are flags.
pub(super) fn attributes(bytes: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
    let mut rest = bytes;
    std::iter::from_fn(move || {
        let len = usize::from(u16::from_ne_bytes(field(rest, 0)?));
        let kind = u16::from_ne_bytes(field(rest, 2)?) & 0x3FFF;
        let value = rest.get(4..len)?;
        rest = rest.get(len.next_multiple_of(ALIGN)..).unwrap_or_default();
        Some((kind, value))
    })
}

pub(super) fn begin(kind: u16, body: &[u8]) -> Vec<u8> {
    let mut request = vec![0; HEADER];
    request[4..6].copy_from_slice(&kind.to_ne_bytes());
    request[6..8].copy_from_slice(&REQUEST.to_ne_bytes());
    request.extend(body);
    request
}

pub(super) fn attribute(request: &mut Vec<u8>, kind: u16, value: &[u8]) {
    let len = u16::try_from(4 + value.len()).expect("attributes are short");
    request.extend(len.to_ne_bytes());
    request.extend(kind.to_ne_bytes());
    request.extend(value);
    request.resize(request.len().next_multiple_of(ALIGN), 0);
}

pub(super) fn end(mut request: Vec<u8>) -> Vec<u8> {
    let len = u32::try_from(request.len()).expect("requests are short");
    request[..4].copy_from_slice(&len.to_ne_bytes());
    request
}

/// The kernel's number of an address's family, and its bytes.
fn octets(ip: IpAddr) -> (u8, Vec<u8>) {
    let (family, octets) = match ip {
        IpAddr::V4(v4) => (libc::AF_INET, v4.octets().to_vec()),
        IpAddr::V6(v6) => (libc::AF_INET6, v6.octets().to_vec()),
    };
    (u8::try_from(family).expect("a small number"), octets)
}

fn address(bytes: &[u8]) -> Option<IpAddr> {
    match bytes.len() {
        4 => Some(Ipv4Addr::from(field::<4>(bytes, 0)?).into()),
        16 => Some(Ipv6Addr::from(field::<16>(bytes, 0)?).into()),
        _ => None,
    }
}

pub(super) fn field<const N: usize>(bytes: &[u8], at: usize) -> Option<[u8; N]> {
    bytes.get(at..)?.first_chunk().copied()
}

#[cfg(test)]
mod tests;
