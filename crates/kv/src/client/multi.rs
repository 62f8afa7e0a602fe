//! The table of gets of many keys.
//!
//! Invariant: each key of a get is answered, pending, or in exactly one call.

use dunlin_channel::Failures;
use dunlin_core::Nanos;
use dunlin_store::route;

use super::end::Item;
use super::options::Token;
use crate::error::Error;
use crate::wire::{Keys, MAX_KEYS, Map};

/// A get of many keys.
#[derive(Debug)]
pub(super) struct Multi {
    pub(super) token: Token,
    pub(super) keys: Vec<u8>,
    /// Where each key ends in `keys`.
    pub(super) ends: Vec<u32>,
    pub(super) items: Vec<Result<Option<Item>, Error>>,
    /// The hashes that route the keys, each computed once; empty until a map has several
    /// partitions.
    pub(super) routes: Vec<u64>,
    /// Keys that are in no call.
    pub(super) pending: Vec<u16>,
    pub(super) calls: usize,
    /// The most bytes of a request, as the server has said.
    pub(super) most_asked: usize,
    pub(super) failed: Option<Error>,
    pub(super) deadline: Nanos,
    /// Whether keys of partitions that are down count as missing.
    pub(super) misses: bool,
    /// After a call for some of the pending keys has failed, no call is made for them before this
    /// time.
    pub(super) not_before: Nanos,
    pub(super) failures: Failures,
}

/// The gets of many keys, each at a place that its calls name.
#[derive(Debug, Default)]
pub(super) struct Multis {
    places: Vec<Option<Multi>>,
    live: usize,
}

impl Multi {
    pub(super) fn key(&self, index: u16) -> &[u8] {
        let index = usize::from(index);
        let start = match index.checked_sub(1) {
            Some(before) => self.ends[before] as usize,
            None => 0,
        };
        &self.keys[start..self.ends[index] as usize]
    }

    /// Whether keys without a server may be left out.
    pub(super) fn may_miss(&self, error: Error) -> bool {
        self.misses && error == Error::Unavailable
    }

    pub(super) fn fail(&mut self, error: Error) {
        self.failed.get_or_insert(error);
        self.pending.clear();
    }

    /// The partition of a key.
    fn partition(&self, index: u16, map: &Map) -> u16 {
        let hash = self.routes.get(usize::from(index));
        hash.map_or(0, |hash| map.partition_of(*hash))
    }

    /// Hashes the keys, if the map needs the hashes and no earlier map did.
    fn learn_routes(&mut self, map: &Map) {
        if map.partitions() > 1 && self.routes.is_empty() {
            let keys = (0..self.count()).map(|index| self.key(index));
            self.routes = keys.map(route).collect();
        }
    }

    fn count(&self) -> u16 {
        u16::try_from(self.ends.len()).expect("a get has at most 65 535 keys")
    }

    /// Takes pending keys of one partition: one, or as many as a request may have.
    pub(super) fn take_group(&mut self, map: &Map) -> Option<(u16, Vec<u16>)> {
        let first = *self.pending.first()?;
        self.learn_routes(map);
        let partition = self.partition(first, map);
        let is_in = |multi: &Self, index: &u16| multi.partition(*index, map) == partition;
        let (mut group, mut asked) = (Vec::new(), Keys::size([].into_iter()));
        let pending = std::mem::take(&mut self.pending);
        for index in pending {
            let with_it = asked + Keys::size_of(self.key(index));
            let has_room = group.is_empty() || group.len() < MAX_KEYS && with_it <= self.most_asked;
            if has_room && is_in(self, &index) {
                group.push(index);
                asked = with_it;
            } else {
                self.pending.push(index);
            }
        }
        Some((partition, group))
    }
}

impl Multis {
    pub(super) fn live(&self) -> usize {
        self.live
    }

    pub(super) fn insert(&mut self, multi: Multi) -> u32 {
        self.live += 1;
        let free = self.places.iter().position(Option::is_none);
        let place = free.unwrap_or_else(|| {
            self.places.push(None);
            self.places.len() - 1
        });
        self.places[place] = Some(multi);
        u32::try_from(place).expect("memory ends before that")
    }

    pub(super) fn get_mut(&mut self, place: u32) -> &mut Multi {
        let multi = self.places[place as usize].as_mut();
        multi.expect("a get stays until its calls have ended")
    }

    pub(super) fn remove(&mut self, place: u32) -> Multi {
        self.live -= 1;
        let multi = self.places[place as usize].take();
        multi.expect("a get stays until its calls have ended")
    }

    /// The places of gets with pending keys.
    pub(super) fn pending(&self) -> Vec<u32> {
        let places = (0..).zip(&self.places);
        let is_pending = |multi: &Multi| !multi.pending.is_empty();
        places
            .filter(|(_, multi)| multi.as_ref().is_some_and(is_pending))
            .map(|(place, _)| place)
            .collect()
    }

    /// Whether a get is completely answered or has failed, and none of its calls is in flight.
    pub(super) fn is_over(&self, place: u32) -> bool {
        let get = self.places.get(place as usize).and_then(Option::as_ref);
        get.is_some_and(|get| get.calls == 0 && get.pending.is_empty())
    }
}

#[cfg(test)]
mod tests;
