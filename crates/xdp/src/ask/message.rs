//! The messages between a process without privilege and the daemon: one request and one answer on
//! each connection.
//!
//! Invariant: a request has a fixed length. An answer is a mark, a code, and then, in a grant,
//! whether the device has a rule for the endpoint; in a refusal, the reason. Each carries one
//! descriptor, except a refusal. No I/O. Used by `ask` and by the daemon.

use std::io;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};

use crate::steering::Mode;

/// The first bytes of a message. The last of them is the version.
const MARK: [u8; 4] = *b"dxs\x03";

/// Bytes of a request.
pub(crate) const REQUEST: usize = 80;
/// The most bytes of an answer.
pub(crate) const ANSWER: usize = 1024;

/// A queue of an interface, as the process sees it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct QueueId {
    /// The device and inode numbers of the network namespace.
    pub(crate) namespace: (u64, u64),
    /// The number of the interface.
    pub(crate) index: u32,
    pub(crate) queue: u32,
    pub(crate) mode: Mode,
}

/// The address for which an endpoint wants packets.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Claim {
    pub(crate) address: SocketAddr,
    pub(crate) vlan: u16,
    /// The inode number of the UDP socket that has the address.
    pub(crate) owner: u64,
}

/// The subject of a request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Wish {
    /// The socket of a queue, with a region of this many frames. The request carries the descriptor
    /// of the region's memory.
    Queue { frames: u32 },
    /// The socket of an endpoint, whose rings have this many entries. The request carries the
    /// descriptor of the queue's socket.
    Endpoint { entries: u32, claim: Claim },
}

/// A request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Request {
    pub(crate) place: QueueId,
    pub(crate) wish: Wish,
}

impl Request {
    pub(crate) fn to_bytes(self) -> [u8; REQUEST] {
        let mut bytes = [0; REQUEST];
        let QueueId {
            namespace: (device, inode),
            index,
            queue,
            mode,
        } = self.place;
        bytes[..4].copy_from_slice(&MARK);
        bytes[5] = mode as u8;
        bytes[8..16].copy_from_slice(&device.to_le_bytes());
        bytes[16..24].copy_from_slice(&inode.to_le_bytes());
        bytes[24..28].copy_from_slice(&index.to_le_bytes());
        bytes[28..32].copy_from_slice(&queue.to_le_bytes());
        let number = match self.wish {
            Wish::Queue { frames } => frames,
            Wish::Endpoint { entries, claim } => {
                bytes[4] = 1;
                bytes[40..48].copy_from_slice(&claim.owner.to_le_bytes());
                bytes[48..64].copy_from_slice(&octets(claim.address.ip()));
                bytes[64..66].copy_from_slice(&claim.address.port().to_le_bytes());
                bytes[66..68].copy_from_slice(&claim.vlan.to_le_bytes());
                entries
            }
        };
        bytes[32..36].copy_from_slice(&number.to_le_bytes());
        bytes
    }

    /// Reads a request from untrusted bytes; `None` if they have another form.
    pub(crate) fn of(bytes: &[u8]) -> Option<Self> {
        let bytes: &[u8; REQUEST] = bytes.try_into().ok()?;
        if bytes[..4] != MARK {
            return None;
        }
        let mode = match bytes[5] {
            0 => Mode::Generic,
            1 => Mode::Native,
            _ => return None,
        };
        let number = u32::from_le_bytes(field(bytes, 32));
        let wish = match bytes[4] {
            0 => Wish::Queue { frames: number },
            1 => Wish::Endpoint {
                entries: number,
                claim: Claim {
                    address: SocketAddr::new(
                        ip(field(bytes, 48)),
                        u16::from_le_bytes(field(bytes, 64)),
                    ),
                    vlan: u16::from_le_bytes(field(bytes, 66)),
                    owner: u64::from_le_bytes(field(bytes, 40)),
                },
            },
            _ => return None,
        };
        let place = QueueId {
            namespace: (
                u64::from_le_bytes(field(bytes, 8)),
                u64::from_le_bytes(field(bytes, 16)),
            ),
            index: u32::from_le_bytes(field(bytes, 24)),
            queue: u32::from_le_bytes(field(bytes, 28)),
            mode,
        };
        Some(Self { place, wish })
    }
}

fn field<const N: usize>(bytes: &[u8; REQUEST], at: usize) -> [u8; N] {
    let field = bytes[at..].first_chunk();
    *field.expect("all fields lie within a request")
}

fn octets(ip: IpAddr) -> [u8; 16] {
    match ip {
        IpAddr::V4(v4) => v4.to_ipv6_mapped().octets(),
        IpAddr::V6(v6) => v6.octets(),
    }
}

fn ip(octets: [u8; 16]) -> IpAddr {
    Ipv6Addr::from(octets).to_canonical()
}

/// Kinds of refusals that a process distinguishes, with their codes. Code 0 is a grant.
const KINDS: [(u8, io::ErrorKind); 5] = [
    (1, io::ErrorKind::PermissionDenied),
    (2, io::ErrorKind::ResourceBusy),
    (3, io::ErrorKind::OutOfMemory),
    (4, io::ErrorKind::InvalidInput),
    (5, io::ErrorKind::Other),
];

/// The answer with a descriptor. `rule`: whether the device puts the packets into the queue; `None`
/// if it was not asked to.
pub(crate) fn grant(rule: Option<bool>) -> Vec<u8> {
    let rule = match rule {
        None => 0,
        Some(true) => 1,
        Some(false) => 2,
    };
    [&MARK[..], &[0, rule]].concat()
}

/// The answer with a reason.
pub(crate) fn refusal(error: &io::Error) -> Vec<u8> {
    let found = KINDS.iter().find(|(_, kind)| *kind == error.kind());
    let (code, _) = found.unwrap_or(&KINDS[4]);
    let text = error.to_string();
    let mut answer = [&MARK[..], &[*code]].concat();
    answer.extend(text.bytes().take(ANSWER - answer.len()));
    answer
}

/// Reads an answer. Returns whether there is a rule; `None` if none was asked for.
///
/// # Errors
/// The daemon's refusal; `InvalidData` if these are not bytes of a daemon of this version.
pub(crate) fn read_answer(bytes: &[u8]) -> io::Result<Option<bool>> {
    match bytes.strip_prefix(&MARK) {
        Some([0, 0]) => Ok(None),
        Some([0, rule @ (1 | 2)]) => Ok(Some(*rule == 1)),
        Some([code @ 1..=u8::MAX, text @ ..]) => {
            let kind = KINDS.iter().find(|(known, _)| known == code);
            let kind = kind.map_or(io::ErrorKind::Other, |(_, kind)| *kind);
            Err(io::Error::new(kind, String::from_utf8_lossy(text)))
        }
        _ => Err(io::Error::new(
            io::ErrorKind::InvalidData,
            "the answer is not one of `dunlin xdp-setup` of this version",
        )),
    }
}

#[cfg(test)]
mod tests;
