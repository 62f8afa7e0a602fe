//! One time for each index, and the earliest of them: a binary heap whose entries know their
//! places, so that a time is moved or removed without a search, and no stale entry stays in it.
//!
//! Indexes that are due at the same time come in the order of their numbers, so a seed always gives
//! the same run.

use dunlin_core::Nanos;

const NOWHERE: u32 = u32::MAX;

#[derive(Clone, Debug)]
pub(crate) struct Timers {
    heap: Vec<(Nanos, u32)>,
    /// The place of each index in the heap.
    places: Vec<u32>,
}

impl Timers {
    pub(crate) const fn new() -> Self {
        Self {
            heap: Vec::new(),
            places: Vec::new(),
        }
    }

    /// The earliest time.
    pub(crate) fn next(&self) -> Option<Nanos> {
        self.heap.first().map(|(at, _)| *at)
    }

    /// Removes an index that is due.
    pub(crate) fn due(&mut self, now: Nanos) -> Option<u32> {
        let &(at, index) = self.heap.first()?;
        if at > now {
            return None;
        }
        self.set(index, None);
        Some(index)
    }

    /// Gives `index` another time, or none.
    pub(crate) fn set(&mut self, index: u32, at: Option<Nanos>) {
        let slot = index as usize;
        if slot >= self.places.len() {
            self.places.resize(slot + 1, NOWHERE);
            self.heap.reserve(self.places.len());
        }
        match (self.places[slot], at) {
            (NOWHERE, None) => {}
            (NOWHERE, Some(at)) => {
                self.heap.push((at, index));
                self.settle(self.heap.len() - 1);
            }
            (place, Some(at)) => {
                self.heap[place as usize].0 = at;
                self.settle(place as usize);
            }
            (place, None) => {
                self.places[slot] = NOWHERE;
                self.heap.swap_remove(place as usize);
                if (place as usize) < self.heap.len() {
                    self.settle(place as usize);
                }
            }
        }
    }

    /// Moves the entry at `place` to where it belongs.
    fn settle(&mut self, mut place: usize) {
        while place > 0 && self.heap[place] < self.heap[(place - 1) / 2] {
            self.heap.swap(place, (place - 1) / 2);
            self.note(place);
            place = (place - 1) / 2;
        }
        loop {
            let children = 2 * place + 1..self.heap.len().min(2 * place + 3);
            let least = children.min_by_key(|child| self.heap[*child]);
            match least {
                Some(child) if self.heap[child] < self.heap[place] => {
                    self.heap.swap(place, child);
                    self.note(place);
                    place = child;
                }
                _ => break,
            }
        }
        self.note(place);
    }

    fn note(&mut self, place: usize) {
        let index = self.heap[place].1;
        self.places[index as usize] = u32::try_from(place).expect("as few as indexes");
    }
}

#[cfg(test)]
mod tests;
