//! A rule as the kernel's `ethtool` interface has it (`struct ethtool_rxnfc` with a
//! `struct ethtool_rx_flow_spec`, `linux/ethtool.h`): the datagrams for an address and a port come
//! to a queue.
//!
//! Pure. Numbers for the host are in its byte order, numbers to compare with packets in that of the
//! network. Used by `rules`.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::ops::Range;

/// Commands: count the rules, read one, list the places of all, end one, make one.
pub(super) const COUNT: u32 = 0x2e;
pub(super) const ONE: u32 = 0x2f;
pub(super) const ALL: u32 = 0x30;
pub(super) const END: u32 = 0x31;
pub(super) const MAKE: u32 = 0x32;

/// Bytes of a command, without the list of places that may follow it.
pub(super) const COMMAND: usize = 192;

/// Where the parts of a command lie: a number that belongs to the command, the rule, the number of
/// rules, and the list of places.
const DATA: usize = 8;
const RULE: usize = 16;
const RULES: usize = 184;
const PLACES: usize = 188;

/// Where the parts of a rule lie: its kind, the fields of a packet, further ones, the masks of
/// both, the queue, and the place.
const FIELDS: usize = RULE + 4;
const FURTHER: usize = FIELDS + 52;
const MASKS: usize = FURTHER + 20;
const MASKS_END: usize = MASKS + 72;
const QUEUE: usize = RULE + 152;
const PLACE: usize = RULE + 160;

/// Kinds of rules: for datagrams of IPv4 and of IPv6.
const UDP_4: u32 = 2;
const UDP_6: u32 = 6;

/// Set if the further fields of a rule count (`FLOW_EXT`). Some drivers set it in every rule that
/// they show; it means nothing if the masks of all these fields are zero.
const FURTHER_COUNT: u32 = 0x8000_0000;

/// Where the destination address and port lie among the fields, for both kinds.
const TO_4: (usize, usize) = (4, 10);
const TO_6: (usize, usize) = (16, 34);

/// Asks the driver to choose the place, if it can (`RX_CLS_LOC_ANY`, `RX_CLS_LOC_SPECIAL`).
pub(super) const ANYWHERE: u32 = u32::MAX;
const CHOOSES: u64 = 1 << 31;

/// A rule of ours.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct FlowRule {
    pub(super) to: SocketAddr,
    pub(super) queue: u32,
    /// Its place in the table of the device.
    pub(super) place: u32,
}

/// A command with no rule, and room for `places` places.
pub(super) fn command(number: u32, places: usize) -> Vec<u8> {
    let mut bytes = vec![0; (PLACES + 4 * places).max(COMMAND)];
    put(&mut bytes, 0, &number.to_ne_bytes());
    let places = u32::try_from(places).expect("a few");
    put(&mut bytes, RULES, &places.to_ne_bytes());
    bytes
}

/// The command about the rule at a place.
pub(super) fn about(number: u32, place: u32) -> Vec<u8> {
    let mut bytes = command(number, 0);
    put(&mut bytes, PLACE, &place.to_ne_bytes());
    bytes
}

/// The place of the rule in an answer.
pub(super) fn place(bytes: &[u8]) -> u32 {
    u32::from_ne_bytes(field(bytes, PLACE))
}

/// The number of rules in an answer, and whether the driver chooses places.
pub(super) fn count(bytes: &[u8]) -> (usize, bool) {
    let count = u32::from_ne_bytes(field(bytes, RULES));
    let data = u64::from_ne_bytes(field(bytes, DATA));
    (count as usize, data & CHOOSES != 0)
}

/// The places in an answer, and the number of places of the device.
pub(super) fn places(bytes: &[u8]) -> (Vec<u32>, u64) {
    let (count, _) = count(bytes);
    let places = bytes[PLACES..].chunks_exact(4).take(count);
    let place = |place: &[u8]| u32::from_ne_bytes(field(place, 0));
    let size = u64::from_ne_bytes(field(bytes, DATA));
    (places.map(place).collect(), size)
}

impl FlowRule {
    /// The command that makes it.
    pub(super) fn to_command(self) -> Vec<u8> {
        let mut bytes = about(MAKE, self.place);
        let (kind, (address, port)) = match self.to.ip() {
            IpAddr::V4(ip) => {
                put(&mut bytes, FIELDS + TO_4.0, &ip.octets());
                put(&mut bytes, MASKS + TO_4.0, &[0xFF; 4]);
                (UDP_4, TO_4)
            }
            IpAddr::V6(ip) => {
                put(&mut bytes, FIELDS + TO_6.0, &ip.octets());
                put(&mut bytes, MASKS + TO_6.0, &[0xFF; 16]);
                (UDP_6, TO_6)
            }
        };
        debug_assert!(address < port, "as in the kernel's structures");
        put(&mut bytes, RULE, &kind.to_ne_bytes());
        put(&mut bytes, FIELDS + port, &self.to.port().to_be_bytes());
        put(&mut bytes, MASKS + port, &[0xFF; 2]);
        put(&mut bytes, QUEUE, &u64::from(self.queue).to_ne_bytes());
        bytes
    }

    /// The rule in an answer; `None` if it is of another form than those that we make.
    pub(super) fn of(bytes: &[u8]) -> Option<Self> {
        let (to, address) = match u32::from_ne_bytes(field(bytes, RULE)) & !FURTHER_COUNT {
            UDP_4 => {
                let ip = Ipv4Addr::from(field::<4>(bytes, FIELDS + TO_4.0));
                (IpAddr::V4(ip), TO_4)
            }
            UDP_6 => {
                let ip = Ipv6Addr::from(field::<16>(bytes, FIELDS + TO_6.0));
                (IpAddr::V6(ip), TO_6)
            }
            _ => return None,
        };
        let port = u16::from_be_bytes(field(bytes, FIELDS + address.1));
        let entry = Self {
            to: SocketAddr::new(to, port),
            // A queue of a virtual function, or "drop", needs more bits.
            queue: u32::try_from(u64::from_ne_bytes(field(bytes, QUEUE))).ok()?,
            place: place(bytes),
        };
        // Each other field, and each mask, is as in a rule of ours. The masks of further fields are
        // zero, so these may have any value.
        let own = entry.to_command();
        let is_same = |part: Range<usize>| own[part.clone()] == bytes[part];
        (is_same(FIELDS..FURTHER) && is_same(MASKS..MASKS_END)).then_some(entry)
    }
}

/// Writes a field.
fn put(bytes: &mut [u8], at: usize, field: &[u8]) {
    bytes[at..at + field.len()].copy_from_slice(field);
}

/// Reads a field.
fn field<const N: usize>(bytes: &[u8], at: usize) -> [u8; N] {
    let field = bytes[at..].first_chunk();
    *field.expect("all fields lie within a command")
}

#[cfg(test)]
pub(super) mod tests;
