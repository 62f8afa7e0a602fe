//! The bytes of a state, which a snapshot carries: items in the order of their keys, then clients.
//!
//! Invariant: a state and the one that is read from its bytes answer every later entry alike.

use super::Machine;
use super::clients::Clients;
use super::history::History;
use super::items::{Item, Items};
use crate::wire::cursor::{Cursor, put_count, put_counted, put_words};
use crate::wire::{MAX_KEY, MAX_VALUE, Malformed, VERSION};

impl Machine {
    /// The bytes of the state.
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
        let mut image = vec![VERSION, 0, 0, 0, 0, 0, 0, 0];
        put_words(&mut image, &[self.applied, self.time]);
        put_count(&mut image, self.items.len());
        for (key, item) in self.items.iter() {
            put_words(&mut image, &[item.version, item.expires]);
            put_counted(&mut image, key);
            put_counted(&mut image, &item.value);
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
        let items = take_items(&mut cursor)?;
        let clients = self.clients.take(&mut cursor)?;
        cursor.end()?;
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
