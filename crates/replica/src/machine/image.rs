//! The bytes of a state, which a snapshot carries: items in key order, then clients.
//!
//! Invariant: a state and the state that is read from its bytes answer every later entry alike.
//!
//! The image of a state that is still changing is made in slices, so no entry waits longer than one
//! slice takes. It shows the state as it was when the image was begun (`frozen.rs`).

use super::Machine;
use super::arrival::Arrival;
use super::clients::Clients;
use super::frozen::Budget;
use super::meaning::digest_of;
use super::ruin::Ruin;
use crate::wire::cursor::{put_count, put_words};
use crate::wire::{Malformed, VERSION};

/// An image that is being made.
#[derive(Clone, Debug)]
pub(super) struct Draft {
    bytes: Vec<u8>,
    /// The number of clients with a record when the image was begun.
    clients: usize,
    has_items: bool,
}

impl Machine {
    /// Begins an image of the present state, after the bytes of a head. Replaces any image under
    /// way.
    pub(crate) fn begin_image(&mut self, head: Vec<u8>) {
        #[cfg(feature = "mutants")]
        let forgets = self.forgets_clients;
        #[cfg(not(feature = "mutants"))]
        let forgets = false;
        // If a long image had to grow, it would be moved.
        let size = 32 + self.items.bytes() + self.clients.bytes();
        let mut bytes = Vec::with_capacity(head.len() + size);
        bytes.extend_from_slice(&head);
        self.put_head(&mut bytes);
        self.items.freeze();
        if !forgets {
            self.clients.freeze();
        }
        self.draft = Some(Draft {
            bytes,
            clients: if forgets { 0 } else { self.clients.len() },
            has_items: false,
        });
    }

    /// Makes the next slice of the image. `Some`: the image is complete.
    pub(crate) fn go_on(&mut self, mut budget: Budget) -> Option<Vec<u8>> {
        let mut draft = self.draft.take()?;
        if !draft.has_items {
            draft.has_items = self.items.read(&mut budget, &mut draft.bytes);
            if draft.has_items {
                put_count(&mut draft.bytes, draft.clients);
            }
        }
        if draft.has_items && self.clients.read(&mut budget, &mut draft.bytes) {
            return Some(draft.bytes);
        }
        self.draft = Some(draft);
        None
    }

    /// The bytes of the image under way so far.
    #[cfg(test)]
    pub(crate) fn drawn(&self) -> Option<usize> {
        self.draft.as_ref().map(|draft| draft.bytes.len())
    }

    /// Abandons the image under way. Returns its bytes, because freeing a large image takes long.
    pub(crate) fn give_up_image(&mut self) -> Option<Vec<u8>> {
        self.items.thaw();
        self.clients.thaw();
        self.draft.take().map(|draft| draft.bytes)
    }

    fn put_head(&self, image: &mut Vec<u8>) {
        image.extend_from_slice(&[VERSION, 0, 0, 0, 0, 0, 0, 0]);
        put_words(image, &[self.applied, self.time]);
        put_count(image, self.items.len());
    }

    /// The bytes of the state.
    #[cfg(any(feature = "disk", test))]
    pub(crate) fn to_image(&self) -> Vec<u8> {
        #[cfg(feature = "mutants")]
        if self.forgets_clients {
            return self.image_with(&Clients::new(0));
        }
        self.image_with(&self.clients)
    }

    /// A digest of the state.
    pub(crate) fn digest(&self) -> u64 {
        digest_of(&self.image_with(&self.clients))
    }

    fn image_with(&self, clients: &Clients) -> Vec<u8> {
        let mut image = Vec::new();
        self.put_head(&mut image);
        for (key, item) in self.items.iter() {
            item.put(key, &mut image);
        }
        clients.put(&mut image);
        image
    }

    /// Replaces the state by the state of an image.
    ///
    /// # Errors
    /// The bytes are not an image, or of another version. The state is unchanged.
    pub(crate) fn restore(&mut self, image: &[u8]) -> Result<(), Malformed> {
        let mut arrival = self.arrival();
        let mut budget = Budget::UNLIMITED;
        let taken = arrival.take(image, true, &mut budget)?;
        match taken == image.len() {
            true => {
                self.become_state(arrival);
                Ok(())
            }
            false => Err(Malformed),
        }
    }

    /// Makes the reader of a state, which is given an image part by part.
    pub(crate) const fn arrival(&self) -> Arrival {
        Arrival::new(self.clients.emptied())
    }

    /// Replaces the state by one that was read completely. Returns the remains of the previous
    /// state.
    pub(crate) fn become_state(&mut self, arrival: Arrival) -> Ruin {
        assert!(arrival.is_whole(), "a part of an image is no state");
        self.draft = None;
        (self.applied, self.time) = (arrival.applied(), arrival.time());
        self.history.begin_after(self.applied);
        let (items, clients) = arrival.into_parts();
        Ruin::new(
            std::mem::replace(&mut self.items, items),
            std::mem::replace(&mut self.clients, clients),
        )
    }
}
