//! Entries by handle. A new entry takes the place that was freed last, so a machine whose number of
//! entries has stopped growing does not allocate any longer.
//!
//! Invariant: a handle finds the entry for which it was made, or none.

use std::marker::PhantomData;

use crate::handle::Handle;

#[derive(Clone, Debug)]
struct Numbered<T> {
    generation: u32,
    thing: Option<T>,
}

#[derive(Clone, Debug)]
pub(crate) struct Slab<H, T> {
    places: Vec<Numbered<T>>,
    free: Vec<u32>,
    handles: PhantomData<fn() -> H>,
}

impl<H: Handle, T> Slab<H, T> {
    pub(crate) const fn new() -> Self {
        Self {
            places: Vec::new(),
            free: Vec::new(),
            handles: PhantomData,
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.places.len() - self.free.len()
    }

    pub(crate) fn insert(&mut self, thing: T) -> H {
        if let Some(index) = self.free.pop() {
            let place = &mut self.places[index as usize];
            place.thing = Some(thing);
            return H::from_parts(index, place.generation);
        }
        let count = self.places.len();
        if count == self.places.capacity() {
            // A process may have thousands of channels, most of which have one address, one link
            // and one call at a time. A vector would begin with room for four entries.
            self.places.reserve_exact(count.max(1));
        }
        let index = u32::try_from(count).expect("limits are below 2³²");
        self.places.push(Numbered {
            generation: 0,
            thing: Some(thing),
        });
        // This room is reserved now, so that no removal allocates.
        self.free.reserve(self.places.len());
        H::from_parts(index, 0)
    }

    pub(crate) fn get(&self, handle: H) -> Option<&T> {
        let (index, generation) = handle.parts();
        let place = self.places.get(index as usize)?;
        (place.generation == generation).then_some(place.thing.as_ref())?
    }

    pub(crate) fn get_mut(&mut self, handle: H) -> Option<&mut T> {
        let (index, generation) = handle.parts();
        let place = self.places.get_mut(index as usize)?;
        (place.generation == generation).then_some(place.thing.as_mut())?
    }

    pub(crate) fn remove(&mut self, handle: H) -> Option<T> {
        let (index, generation) = handle.parts();
        let place = self.places.get_mut(index as usize)?;
        if place.generation != generation {
            return None;
        }
        let thing = place.thing.take()?;
        place.generation = place.generation.wrapping_add(1);
        self.free.push(index);
        Some(thing)
    }

    /// The handle of the entry at `index`.
    pub(crate) fn at(&self, index: u32) -> Option<H> {
        let place = self.places.get(index as usize)?;
        place.thing.as_ref()?;
        Some(H::from_parts(index, place.generation))
    }

    /// All handles, in the order of their indexes.
    pub(crate) fn handles(&self) -> impl Iterator<Item = H> + '_ {
        let count = u32::try_from(self.places.len()).expect("limits are below 2³²");
        (0..count).filter_map(|index| self.at(index))
    }
}

#[cfg(test)]
mod tests;
