//! Headers of lower layers for a recorded packet, so that Wireshark can read it: Ethernet, IP and
//! UDP. Both ports are the usual port of a nexus, by which the dissector recognises the packet.
//! Used for frames of the simulator and of running endpoints.

/// The port of every endpoint.
const PORT: u16 = 31_850;
/// ECN: capable, and congestion experienced.
const ECT: u8 = 2;
const CE: u8 = 3;

/// Bytes of all headers together.
pub(crate) const LEN: usize = 14 + 20 + 8;

/// The link type of frames that begin with an Ethernet header.
pub(crate) const ETHERNET: u16 = 1;

/// The headers of a packet of `len` bytes. `congestion`: the network has marked it.
pub(crate) fn of(from: [u8; 4], to: [u8; 4], len: usize, congestion: bool) -> [u8; LEN] {
    let mut out = [0; LEN];
    for (place, address) in [(0, to), (6, from)] {
        out[place] = 2;
        out[place + 2..place + 6].copy_from_slice(&address);
    }
    out[12] = 8;
    out[14..34].copy_from_slice(&ip(from, to, len, congestion));
    let udp = u16::try_from(8 + len).unwrap_or(u16::MAX);
    for (word, place) in [PORT, PORT, udp, 0].into_iter().zip((34..).step_by(2)) {
        out[place..place + 2].copy_from_slice(&word.to_be_bytes());
    }
    out
}

fn ip(from: [u8; 4], to: [u8; 4], len: usize, congestion: bool) -> [u8; 20] {
    let len = u16::try_from(28 + len).unwrap_or(u16::MAX);
    let mut header = [0; 20];
    header[0] = 0x45;
    header[1] = if congestion { CE } else { ECT };
    header[2..4].copy_from_slice(&len.to_be_bytes());
    header[8] = 64;
    header[9] = 17;
    header[12..16].copy_from_slice(&from);
    header[16..].copy_from_slice(&to);
    let words = header
        .chunks(2)
        .map(|word| u32::from(word[0]) << 8 | u32::from(word[1]));
    let sum: u32 = words.sum();
    let sum = (sum & 0xffff) + (sum >> 16);
    let sum = u16::try_from((sum & 0xffff) + (sum >> 16)).unwrap_or(u16::MAX);
    header[10..12].copy_from_slice(&(!sum).to_be_bytes());
    header
}
