//! Picks one of the ready servers for a call.
//!
//! - Round robin: each in turn.
//! - The least of two: of two servers, drawn at random, the one with fewer attempts outstanding
//!   (Mitzenmacher, "The power of two choices in randomized load balancing", 2001). The attempts of
//!   a server that takes several times as long to answer count several times (`pace.rs`).
//! - Hash: the server whose number, mixed with the key, is highest (Thaler and Ravishankar, "Using
//!   name-based mappings to increase hit rates", 1998). When one of n servers leaves, only its keys
//!   move.

use std::hash::Hasher;

use dunlin_core::Rng;

use crate::config::Config;
use crate::handle::AddressId;
use crate::key::Fnv;
#[cfg(feature = "mutants")]
use crate::mutant::Mutant;
use crate::pace::Load;

/// The rule for picking a server.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Pick {
    /// Takes each server in turn.
    RoundRobin,
    /// Draws two servers at random, and takes the one with fewer outstanding calls. If a server
    /// takes twice, three times, or at least four times as long as the other to answer, each of its
    /// calls counts as two, three or four.
    LeastOfTwo,
    /// Takes the server to which a call's key ([`key_of`](crate::key_of)) belongs. Calls without a
    /// key go to the less busy of two.
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
    #[cfg(feature = "mutants")]
    mutant: Option<Mutant>,
}

impl Picker {
    pub(crate) const fn new(config: &Config) -> Self {
        Self {
            pick: config.pick,
            turn: 0,
            #[cfg(feature = "mutants")]
            mutant: config.mutant,
        }
    }

    /// Picks one of `ready`, and not `avoid` if there is another.
    pub(crate) fn pick(
        &mut self,
        ready: &[Ready],
        avoid: Option<AddressId>,
        key: Option<u64>,
        load: impl Fn(AddressId) -> Load,
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
            (Pick::RoundRobin, _) => at(self.next_turn(count)),
            (Pick::Hash, Some(key)) => self.owner((0..count).map(at), key)?,
            (Pick::LeastOfTwo | Pick::Hash, _) => {
                let [one, other] = self.draw_two(count, rng).map(at);
                let [here, there] = [other, one].map(|it| load(it.id));
                #[cfg(feature = "mutants")]
                let [here, there] = match self.shows(Mutant::PaceIgnored) {
                    true => [here, there].map(Load::without_pace),
                    false => [here, there],
                };
                let is_less = here.is_less(there, rng);
                #[cfg(feature = "mutants")]
                let is_less = is_less && !self.shows(Mutant::FirstOfTwoPicked);
                if is_less { other } else { one }
            }
        };
        Some(picked.id)
    }

    fn next_turn(&mut self, count: usize) -> usize {
        self.turn = self.turn.wrapping_add(1);
        #[cfg(feature = "mutants")]
        if self.shows(Mutant::TurnsSkipLast) {
            return self.turn % (count - 1).max(1);
        }
        self.turn % count
    }

    /// The server of `all` to which a key belongs.
    #[cfg_attr(not(feature = "mutants"), expect(clippy::unused_self))]
    fn owner(&self, all: impl ExactSizeIterator<Item = Ready>, key: u64) -> Option<Ready> {
        #[cfg(feature = "mutants")]
        if self.shows(Mutant::KeyIsPosition) {
            let at = key % all.len() as u64;
            return all.into_iter().nth(usize::try_from(at).unwrap_or(0));
        }
        #[cfg(feature = "mutants")]
        if self.shows(Mutant::WeightsCoarse) {
            return all.max_by_key(|one| (weight(one.seed, key) >> 62, one.id));
        }
        all.max_by_key(|one| (weight(one.seed, key), one.id))
    }

    /// Draws two of `count` places, which are equal only if there is one place.
    #[cfg_attr(not(feature = "mutants"), expect(clippy::unused_self))]
    fn draw_two(&self, count: usize, rng: &mut Rng) -> [usize; 2] {
        let first = draw(count, rng);
        #[cfg(feature = "mutants")]
        let first = match self.shows(Mutant::FirstAlwaysDrawn) {
            true => 0,
            false => first,
        };
        match count {
            1 => [first, first],
            _ => [first, (first + 1 + draw(count - 1, rng)) % count],
        }
    }

    #[cfg(feature = "mutants")]
    fn shows(&self, mutant: Mutant) -> bool {
        self.mutant == Some(mutant)
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

/// The weight of a key at a server whose name has the number `server` ([`seed_of`]). Of a list of
/// servers, the one with the greatest weight for a key owns it, in every process and release.
#[must_use]
pub const fn weight(server: u64, key: u64) -> u64 {
    mix(server ^ mix(key))
}

/// The number of a server's name, the same in every process and release (FNV-1a).
#[must_use]
pub fn seed_of(name: &str) -> u64 {
    let mut hasher = Fnv::new();
    hasher.write(name.as_bytes());
    hasher.finish()
}

#[cfg(test)]
mod tests;
