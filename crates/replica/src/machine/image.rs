//! The bytes of a state, which a snapshot carries: items in the order of their keys, then clients.
//!
//! Invariant: a state and the one that is read from its bytes answer every later entry alike.
//!
//! An image of a state that goes on changing is made in slices, so that no entry waits for more
//! than one of them. It is of the state at its beginning (`frozen.rs`).

use super::Machine;
use super::clients::Clients;
use super::frozen::Budget;
use super::history::History;
use super::items::{Item, Items};
use crate::wire::cursor::{Cursor, put_count, put_words};
use crate::wire::{MAX_INDEX, MAX_KEY, MAX_VALUE, Malformed, VERSION};

/// An image that is being made.
#[derive(Clone, Debug)]
pub(super) struct Draft {
    bytes: Vec<u8>,
    /// Clients with a record at its beginning.
    clients: usize,
    has_items: bool,
}

impl Machine {
    /// Begins an image of the state as it is now, after the bytes of a head, in place of any other
    /// that is under way.
    pub(crate) fn begin_image(&mut self, head: Vec<u8>) {
        #[cfg(feature = "mutants")]
        let forgets = self.forgets_clients;
        #[cfg(not(feature = "mutants"))]
        let forgets = false;
        // A long image that grew would be moved.
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

    /// Makes the next slice of the image. `Some`: it is whole.
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

    /// Bytes of the image that is under way.
    #[cfg(test)]
    pub(crate) fn drawn(&self) -> Option<usize> {
        self.draft.as_ref().map(|draft| draft.bytes.len())
    }

    /// Gives up the image that is under way, and returns its bytes, because to free many takes
    /// long.
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
        super::mix(0, &self.image_with(&self.clients))
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

    /// Whether the bytes are the image of a state after the entry of this index.
    pub(crate) fn is_image(image: &[u8], index: u64) -> bool {
        let mut state = Self::new(0, 0);
        state.restore(image).is_ok() && state.applied == index
    }

    /// Becomes the state of an image.
    ///
    /// # Errors
    /// The bytes are not an image, or of another version. The state has not changed.
    pub(crate) fn restore(&mut self, image: &[u8]) -> Result<(), Malformed> {
        let mut cursor = Cursor(image);
        if cursor.u8()? != VERSION {
            return Err(Malformed);
        }
        cursor.zeros::<7>()?;
        let (applied, time) = (cursor.u64()?, cursor.u64()?);
        // Lifetimes are added to the time.
        if applied > MAX_INDEX || time > MAX_INDEX {
            return Err(Malformed);
        }
        let items = take_items(&mut cursor)?;
        let clients = self.clients.take(&mut cursor)?;
        cursor.end()?;
        self.draft = None;
        self.applied = applied;
        self.history = History::new(applied);
        self.time = time;
        self.items = items;
        self.clients = clients;
        Ok(())
    }
}

fn take_items(cursor: &mut Cursor<'_>) -> Result<Items, Malformed> {
    let mut items = Items::default();
    for _ in 0..cursor.count(24)? {
        let (version, expires) = (cursor.u64()?, cursor.u64()?);
        let key = cursor.counted()?;
        let value = cursor.counted()?;
        if !(1..=MAX_KEY).contains(&key.len()) || value.len() > MAX_VALUE {
            return Err(Malformed);
        }
        let value = value.to_vec();
        let item = Item {
            version,
            expires,
            value,
        };
        items.put(key, item);
    }
    Ok(items)
}
