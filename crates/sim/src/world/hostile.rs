//! Frames that no honest endpoint sends: noise, damaged copies, replays, forgeries.
//!
//! Invariant: only the attacks whose documentation says so know the right token. All other packets
//! have a wrong token or are exact copies of earlier packets, so all checkers can stay on. This
//! file knows the packet format, as an attacker does. Called by scenarios.

use dunlin_wire::{HEADER_LEN, Header, PacketType, PktNum, ReqNum, Token};

use crate::world::net::PortId;
use crate::world::rng::Rng;

/// A record of frames that passed the switch: the newest, and a few old ones.
#[derive(Debug, Default)]
pub struct Tap {
    on: bool,
    passed: usize,
    recent: Vec<(PortId, Vec<u8>)>,
    old: Vec<(PortId, Vec<u8>)>,
}

/// The packets that the attacker sends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Attack {
    /// Random bytes.
    Noise,
    /// A copy of a packet with random changes and a wrong token.
    Mutation,
    /// A copy of a frame, perhaps of a session or a process that is long gone.
    Replay,
    /// A request with a later number and a wrong token.
    FutureGuess,
    /// A request with the right token and a later number than the slot can have reached. In eRPC it
    /// wedges the slot forever (design §17).
    FutureInsider,
    /// A CR for more packets than any message has, with the right token.
    FutureCredit,
    /// A packet with the right token and otherwise random changes. The protocol cannot distinguish
    /// it from the peer's own, so only memory safety and liveness may be checked.
    Insider,
}

impl Attack {
    /// The attacks that must not affect a run at all.
    pub const HARMLESS: [Self; 6] = [
        Self::Noise,
        Self::Mutation,
        Self::Replay,
        Self::FutureGuess,
        Self::FutureInsider,
        Self::FutureCredit,
    ];
}

const RECENT: usize = 64;
const OLD: usize = 64;
/// One in this many frames is kept among the old ones.
const OLD_STEP: usize = 23;

impl Tap {
    /// Starts to record.
    pub fn start(&mut self) {
        self.on = true;
    }

    /// Records a frame that passes.
    pub(crate) fn record(&mut self, to: PortId, bytes: &[u8]) {
        if !self.on {
            return;
        }
        let at = self.passed;
        self.passed += 1;
        keep(&mut self.recent, RECENT, at, to, bytes);
        if at.is_multiple_of(OLD_STEP) {
            keep(&mut self.old, OLD, at / OLD_STEP, to, bytes);
        }
    }

    fn pick(&self, rng: &mut Rng) -> Option<&(PortId, Vec<u8>)> {
        let from = if rng.one_in(2) {
            &self.old
        } else {
            &self.recent
        };
        from.get(rng.index(from.len()))
    }

    /// Makes a hostile frame for one of `ports`, if the record has the packets that the attack
    /// needs. `data_size` is the number of data bytes per packet.
    pub fn forge(
        &self,
        attack: Attack,
        ports: usize,
        data_size: u32,
        rng: &mut Rng,
    ) -> Option<(PortId, Vec<u8>)> {
        if attack == Attack::Noise {
            let mut bytes = vec![0; rng.index(120)];
            rng.fill(&mut bytes);
            return Some((PortId(rng.index(ports)), bytes));
        }
        if attack == Attack::FutureCredit {
            return self.forge_credit(rng);
        }
        let (to, bytes) = self.pick(rng)?;
        let mut bytes = bytes.clone();
        match attack {
            Attack::Noise | Attack::Replay | Attack::FutureCredit => {}
            Attack::Mutation => mutate(&mut bytes, data_size, rng, false)?,
            Attack::Insider => mutate(&mut bytes, data_size, rng, true)?,
            Attack::FutureGuess => later_request(&mut bytes, data_size, rng, false)?,
            Attack::FutureInsider => later_request(&mut bytes, data_size, rng, true)?,
        }
        Some((*to, bytes))
    }

    /// The newest CR, whose request may still be in flight, with other numbers.
    fn forge_credit(&self, rng: &mut Rng) -> Option<(PortId, Vec<u8>)> {
        let newest = (1..=self.recent.len()).map(|ago| &self.recent[(self.passed - ago) % RECENT]);
        let credits = newest.filter_map(|(to, bytes)| Some((to, Header::decode(bytes).ok()?)));
        let (to, mut header) = credits
            .into_iter()
            .find(|(_, header)| header.kind == PacketType::Cr)?;
        let mut packets =
            || PktNum(u32::try_from(rng.between(1 << 10, 1 << 20)).unwrap_or(1 << 20));
        header.size = Header::arrivals(packets(), 0);
        header.pkt = packets();
        Some((*to, header.encode().to_vec()))
    }
}

fn keep(ring: &mut Vec<(PortId, Vec<u8>)>, limit: usize, at: usize, to: PortId, bytes: &[u8]) {
    if ring.len() < limit {
        return ring.push((to, bytes.to_vec()));
    }
    let (port, copy) = &mut ring[at % limit];
    *port = to;
    copy.clear();
    copy.extend_from_slice(bytes);
}

/// Cuts the frame after its first packet, which is decoded.
fn first_packet(bytes: &mut Vec<u8>, data_size: u32) -> Option<Header> {
    let header = Header::decode(bytes).ok()?;
    let end = HEADER_LEN + header.extension_len() + header.data_len(data_size)? as usize;
    bytes.truncate(end);
    Some(header)
}

fn mutate(bytes: &mut Vec<u8>, data_size: u32, rng: &mut Rng, insider: bool) -> Option<()> {
    let header = first_packet(bytes, data_size)?;
    for _ in 0..rng.between(1, 6) {
        // Half of the changes hit the header, where they have more effect.
        let reach = if rng.one_in(2) {
            bytes.len().min(HEADER_LEN)
        } else {
            bytes.len()
        };
        bytes[rng.index(reach)] = rng.next_u64().to_le_bytes()[0];
    }
    let token = if insider {
        header.token
    } else {
        wrong(header.token, rng)
    };
    bytes[8..12].copy_from_slice(&token.0.to_le_bytes());
    Some(())
}

fn later_request(bytes: &mut Vec<u8>, data_size: u32, rng: &mut Rng, insider: bool) -> Option<()> {
    let mut header = first_packet(bytes, data_size)?;
    if header.kind != PacketType::Req {
        return None;
    }
    // A multiple of the largest window stays in the same slot. The copy may be old: a small step
    // could reach the number that the slot expects now, and the endpoint would take the packet for
    // the peer's own.
    let ahead = 64 * u32::try_from(rng.log_between(1 << 11, 1 << 23)).expect("it is below 2^24");
    header.req = ReqNum(header.req.0.wrapping_add(ahead));
    if !insider {
        header.token = wrong(header.token, rng);
    }
    bytes[..HEADER_LEN].copy_from_slice(&header.encode());
    Some(())
}

fn wrong(token: Token, rng: &mut Rng) -> Token {
    // Adding anything but zero makes it wrong.
    Token(token.0.wrapping_add(rng.next_u32().max(1)))
}

#[cfg(test)]
mod tests;
