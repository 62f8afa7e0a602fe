//! Slots and pages without items.

use std::collections::BTreeMap;

use super::{CHUNK, Classes, MAX_SLOT, slot_sizes};
use crate::index::Place;
use crate::memory::{Region, STEP};

#[test]
fn classes_grow_by_an_eighth_or_so_up_to_half_a_page() {
    let sizes = slot_sizes();
    assert!(sizes.is_sorted());
    assert_eq!(sizes.last(), Some(&MAX_SLOT));
    for pair in sizes.windows(2) {
        let step = pair[1] - pair[0];
        assert!(
            step == 8 || pair[1] >= 1024 || step * 4 <= pair[1],
            "{pair:?}"
        );
    }
    let classes = Classes::new();
    for size in 1..=MAX_SLOT {
        let slot = sizes[classes.class(size)];
        assert!(
            slot >= size && CHUNK / slot >= 2,
            "{size} has a slot of {slot}"
        );
        let smaller = sizes[..classes.class(size)].last();
        assert!(smaller.is_none_or(|smaller| *smaller < size), "{size}");
    }
}

/// Items as a table keeps them: an item may move when another one is removed.
struct Slots {
    memory: Region,
    classes: Classes,
    /// The name and size of the item at each place.
    items: BTreeMap<usize, (u64, usize)>,
}

impl Slots {
    fn add(&mut self, name: u64, size: usize, limit: usize) -> bool {
        let Some(place) = self.classes.take(&mut self.memory, size, limit) else {
            return false;
        };
        self.memory.set_word(place.byte(), name);
        assert!(self.items.insert(place.byte(), (name, size)).is_none());
        true
    }

    fn remove(&mut self, at: usize) {
        let (_, size) = self.items.remove(&at).unwrap();
        if let Some(moved) = self.classes.free(&mut self.memory, Place::at(at), size) {
            let item = self
                .items
                .remove(&moved.from.byte())
                .expect("an item has moved");
            self.items.insert(moved.to.byte(), item);
        }
    }

    fn check(&self) {
        for (at, (name, _)) in &self.items {
            assert_eq!(self.memory.word(*at), *name, "at {at}");
        }
    }
}

fn slots(memory: usize) -> Slots {
    Slots {
        memory: Region::new(memory).unwrap(),
        classes: Classes::new(),
        items: BTreeMap::new(),
    }
}

#[test]
fn no_class_keeps_more_than_one_page_that_it_does_not_need() {
    let mut slots = slots(2 << 20);
    let sizes = [24, 72, 96, 300, 1000, 8000];
    for (name, size) in (0..600).zip(sizes.into_iter().cycle()) {
        assert!(slots.add(name, size, 2 << 20));
    }
    let mut at = 0;
    while slots.items.len() > 60 {
        let places: Vec<usize> = slots.items.keys().copied().collect();
        at = (at + 7919) % places.len();
        slots.remove(places[at]);
        slots.check();
        let needed: usize = sizes
            .iter()
            .map(|size| {
                let held = slots.items.values().filter(|item| item.1 == *size).count();
                let slot = slot_sizes()[slots.classes.class(*size)];
                held.div_ceil(CHUNK / slot)
            })
            .sum();
        assert_eq!(slots.classes.bytes(), needed * STEP);
    }
    for at in slots.items.keys().copied().collect::<Vec<_>>() {
        if slots.items.contains_key(&at) {
            slots.remove(at);
        }
    }
    while let Some(at) = slots.items.keys().next().copied() {
        slots.remove(at);
    }
    assert_eq!((slots.classes.bytes(), slots.classes.top()), (0, 0));
}

#[test]
fn pages_are_taken_up_to_the_limit_and_reused() {
    let mut slots = slots(16 * STEP);
    let limit = 10 * STEP;
    let pages: Vec<u32> =
        std::iter::from_fn(|| slots.classes.take_page(&mut slots.memory, limit)).collect();
    assert_eq!(pages.len(), 10);
    assert!(!slots.add(1, 100, limit), "all memory is used");
    slots.classes.free_page(&mut slots.memory, pages[4]);
    assert_eq!(slots.classes.top(), limit, "the topmost page is in use");
    assert!(slots.add(1, 100, limit));
    assert!(slots.add(2, 100, limit), "the page has room");
    for page in pages.iter().rev().filter(|page| **page != pages[4]) {
        slots.classes.free_page(&mut slots.memory, *page);
    }
    assert_eq!(
        slots.classes.top(),
        5 * STEP,
        "free pages at the top are the index's"
    );
    assert_eq!(slots.classes.bytes(), STEP);
    slots.check();
}
