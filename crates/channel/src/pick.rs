//! Picks one of the ready servers for a call.
//!
//! - Round robin: each in turn.
//! - The least of two: of two servers, drawn at random, the one with fewer attempts outstanding. A
//!   server that takes ten times as long to answer keeps its attempts ten times as long, so it gets
//!   a tenth of the calls if enough calls are under way (Mitzenmacher, "The power of two choices in
//!   randomized load balancing", 2001).
//! - Hash: the server whose number, mixed with the key, is highest (Thaler and Ravishankar, "Using
//!   name-based mappings to increase hit rates", 1998). When one of n servers leaves, only its keys
//!   move.

use dunlin_core::Rng;

use crate::handle::AddressId;

/// The rule for picking a server.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Pick {
    /// Each in turn.
    RoundRobin,
    /// The one of two, drawn at random, that has fewer calls outstanding.
    LeastOfTwo,
    /// The one to which a call's key belongs. Calls without a key go to the least of two.
    Hash,
}

/// A server that may be picked.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Ready {
    pub(crate) id: AddressId,
    /// The hash of its name.
    pub(crate) seed: u64,
    /// The process at its address.
    pub(crate) server: u64,
}

#[derive(Clone, Debug)]
pub(crate) struct Picker {
    pick: Pick,
    /// The turn of round robin.
    turn: usize,
}

impl Picker {
    pub(crate) const fn new(pick: Pick) -> Self {
        Self { pick, turn: 0 }
    }

    /// Picks one of `ready`, and not `avoid` if there is another.
    pub(crate) fn pick(
        &mut self,
        ready: &[Ready],
        avoid: Option<AddressId>,
        key: Option<u64>,
        outstanding: impl Fn(AddressId) -> u32,
        rng: &mut Rng,
    ) -> Option<AddressId> {
        let avoided = ready.iter().position(|one| Some(one.id) == avoid);
        // Positions are counted as if the server to avoid were not in the list.
        let avoided = avoided.filter(|_| ready.len() > 1);
        let count = ready.len() - usize::from(avoided.is_some());
        let at = |place: usize| match avoided {
            Some(avoided) if place >= avoided => ready[place + 1],
            _ => ready[place],
        };
        if count == 0 {
            return None;
        }
        let picked = match (self.pick, key) {
            (Pick::RoundRobin, _) => {
                self.turn = self.turn.wrapping_add(1);
                at(self.turn % count)
            }
            (Pick::Hash, Some(key)) => (0..count)
                .map(at)
                .max_by_key(|one| (weight(one.seed, key), one.id))?,
            (Pick::LeastOfTwo | Pick::Hash, _) => {
                let first = draw(count, rng);
                let [one, other] = match count {
                    1 => [first, first],
                    _ => [first, (first + 1 + draw(count - 1, rng)) % count],
                }
                .map(at);
                let is_less = outstanding(other.id) < outstanding(one.id);
                if is_less { other } else { one }
            }
        };
        Some(picked.id)
    }
}

fn draw(count: usize, rng: &mut Rng) -> usize {
    let count = u32::try_from(count).expect("a channel has fewer addresses");
    rng.below(count) as usize
}

/// Mixes bits: any bit of the result depends on all bits of the argument (SplitMix64's last steps).
const fn mix(bits: u64) -> u64 {
    Rng::new(bits).next_u64()
}

/// The weight of a key at a server whose name has the number `server` ([`seed_of`]). The listed
/// server where the key has the greatest weight owns it, in every process and release.
#[must_use]
pub const fn weight(server: u64, key: u64) -> u64 {
    mix(server ^ mix(key))
}

/// The number of a server's name, the same in every process and release (FNV-1a).
#[must_use]
pub fn seed_of(name: &str) -> u64 {
    name.bytes().fold(0xCBF2_9CE4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01B3)
    })
}

#[cfg(test)]
mod tests;
