//! A replicated store as a [`Disk`]: servers on several hosts share it, so their safety does not
//! depend on the disk of one host.
//!
//! The file of an epoch is three items: its name in a list, and its two slots. One transaction
//! makes them, so of two servers that start together, one wins. A server writes a slot only if the
//! slot still has the version of this server's last write, so a server whose file was removed
//! writes nothing more.
//!
//! If no leader answers, it is unknown whether a write of a slot has happened, or will. The next
//! write first repeats it, with the version that the slot had before: the store does at most one of
//! the two, whichever comes first. A cluster whose answers to writes cannot be read looks the same;
//! the machine bounds the number of repetitions.
//!
//! A store does not know which process is alive, so no epoch ever counts as free. A new server
//! makes the next epoch, and waits until its predecessor's lease has ended.
//!
//! A separate thread has the connection, because an endpoint stays on its thread.

use std::io;
use std::sync::mpsc::{self, Sender};
use std::thread;

use dunlin_nexus::Open;
use dunlin_replica::{Compare, Connection, Error, Found, Write};

use super::{Disk, Unchanged};
use crate::state::SLOT;

/// The most names of epochs in an answer. Old epochs are removed, so there are only a few.
const PAGE: u32 = 1000;

/// The most names that a list may have.
const MOST_NAMES: usize = 1 << 16;

/// The calls to a replicated store, as made by [`Connection`]. Tests without a real store use
/// another implementation.
pub trait StoreCalls {
    /// See [`Connection::get`].
    ///
    /// # Errors
    /// The store does not answer.
    fn get(&mut self, key: &[u8]) -> Result<Option<(u64, Vec<u8>)>, Error>;

    /// See [`Connection::range`].
    ///
    /// # Errors
    /// The store does not answer.
    fn range(
        &mut self,
        prefix: &[u8],
        after: &[u8],
        limit: u32,
    ) -> Result<(Vec<Found>, bool), Error>;

    /// See [`Connection::compare_and_set`].
    ///
    /// # Errors
    /// The store does not answer. After [`Error::Unknown`] the write may happen.
    fn compare_and_set(
        &mut self,
        key: &[u8],
        version: u64,
        value: &[u8],
    ) -> Result<Result<u64, u64>, Error>;

    /// See [`Connection::transact`].
    ///
    /// # Errors
    /// The store does not answer. After [`Error::Unknown`] the writes may happen, all or none.
    fn transact(
        &mut self,
        compares: &[Compare<'_>],
        writes: &[Write<'_>],
    ) -> Result<Result<u64, u64>, Error>;
}

impl<T: Open> StoreCalls for Connection<T> {
    fn get(&mut self, key: &[u8]) -> Result<Option<(u64, Vec<u8>)>, Error> {
        Self::get(self, key)
    }

    fn range(
        &mut self,
        prefix: &[u8],
        after: &[u8],
        limit: u32,
    ) -> Result<(Vec<Found>, bool), Error> {
        Self::range(self, prefix, after, limit)
    }

    fn compare_and_set(
        &mut self,
        key: &[u8],
        version: u64,
        value: &[u8],
    ) -> Result<Result<u64, u64>, Error> {
        Self::compare_and_set(self, key, version, value)
    }

    fn transact(
        &mut self,
        compares: &[Compare<'_>],
        writes: &[Write<'_>],
    ) -> Result<Result<u64, u64>, Error> {
        Self::transact(self, compares, writes)
    }
}

type Call<S> = Box<dyn FnOnce(&mut S) + Send>;

/// The files of a sequencer in a replicated store.
pub struct Replicated<S> {
    calls: Sender<Call<S>>,
    name: String,
    own: Option<Own>,
}

/// The file that this process has made.
#[derive(Debug)]
struct Own {
    epoch: u32,
    /// The versions of its slots, as far as this process knows.
    versions: [u64; 2],
    /// The slot and the bytes of a write whose outcome is unknown.
    doubt: Option<(usize, Vec<u8>)>,
}

impl<S> std::fmt::Debug for Replicated<S> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Replicated")
            .field("name", &self.name)
            .field("own", &self.own)
            .finish_non_exhaustive()
    }
}

impl<S: StoreCalls + 'static> Replicated<S> {
    /// Starts the thread, in which `open` makes the connection. Servers that follow each other use
    /// the same name; all keys in the store begin with it.
    ///
    /// # Errors
    /// The system cannot start a thread, or `open` fails.
    pub fn start<E: std::fmt::Display>(
        name: &str,
        open: impl FnOnce() -> Result<S, E> + Send + 'static,
    ) -> io::Result<Self> {
        let (calls, work) = mpsc::channel::<Call<S>>();
        let (opened, is_open) = mpsc::channel();
        let builder = thread::Builder::new().name("dunlin-store".to_owned());
        builder.spawn(move || {
            let mut connection = match open() {
                Ok(connection) => connection,
                Err(error) => {
                    // The thread that opens the files waits for this message.
                    let _ = opened.send(Err(io::Error::other(error.to_string())));
                    return;
                }
            };
            let _ = opened.send(Ok(()));
            for call in work {
                call(&mut connection);
            }
        })?;
        is_open.recv().map_err(|_| ended())??;
        Ok(Self {
            calls,
            name: name.to_owned(),
            own: None,
        })
    }

    /// Makes the thread do a call, and waits for its result.
    fn ask<R: Send + 'static>(
        &self,
        call: impl FnOnce(&mut S) -> Result<R, Error> + Send + 'static,
    ) -> io::Result<R> {
        let (done, result) = mpsc::channel();
        let call: Call<S> = Box::new(move |connection| {
            // The caller waits for the result.
            let _ = done.send(call(connection));
        });
        self.calls.send(call).map_err(|_| ended())?;
        result.recv().map_err(|_| ended())?.map_err(failed)
    }

    /// Writes a slot, or repeats the write of a slot whose outcome is unknown.
    fn put(&mut self, slot: usize, bytes: Vec<u8>, is_repeated: bool) -> io::Result<()> {
        let Some(Own {
            epoch, versions, ..
        }) = self.own
        else {
            return Err(io::ErrorKind::NotFound.into());
        };
        let [first, second] = self.slots(epoch);
        let key = if slot == 0 { first } else { second };
        let (version, sent) = (versions[slot], bytes.clone());
        let written = self.ask(move |store| {
            let written = store.compare_and_set(&key, version, &sent);
            let is_late = is_repeated && matches!(written, Ok(Err(_)));
            Ok(match is_late {
                true => find(store, &key, &sent),
                false => written.map(Result::ok),
            })
        })?;
        let own = self.own.as_mut().expect("it was there");
        match written {
            Ok(Some(version)) => {
                own.versions[slot] = version;
                own.doubt = None;
                Ok(())
            }
            Ok(None) => Err(io::ErrorKind::NotFound.into()),
            Err(Error::Unknown) => {
                own.doubt = Some((slot, bytes));
                let unknown = Unchanged(text(Error::Unknown));
                Err(io::Error::new(io::ErrorKind::TimedOut, unknown))
            }
            Err(error) => Err(failed(error)),
        }
    }

    /// The prefix of the names in the list.
    fn list(&self) -> String {
        format!("{}/epochs/", self.name)
    }

    fn listed(&self, epoch: u32) -> Vec<u8> {
        format!("{}{epoch:010}", self.list()).into_bytes()
    }

    fn slots(&self, epoch: u32) -> [Vec<u8>; 2] {
        [0, 1].map(|slot| format!("{}/slots/{epoch:010}/{slot}", self.name).into_bytes())
    }
}

impl<S: StoreCalls + 'static> Disk for Replicated<S> {
    fn epochs(&mut self) -> io::Result<Vec<u32>> {
        let list = self.list();
        let prefix = list.clone().into_bytes();
        let keys = self.ask(move |store| {
            let mut keys = Vec::<Vec<u8>>::new();
            loop {
                let after = keys.last().cloned().unwrap_or_default();
                let (items, more) = store.range(&prefix, &after, PAGE)?;
                keys.extend(items.into_iter().map(|item| item.key));
                if !more {
                    return Ok(keys);
                }
                // Otherwise, an answer that brings nothing new would be asked for again and again.
                let is_new = keys.last().is_some_and(|last| *last > after);
                if !is_new || keys.len() > MOST_NAMES {
                    return Err(Error::Incompatible);
                }
            }
        })?;
        let epoch = |key: &Vec<u8>| {
            let name = std::str::from_utf8(key).ok()?;
            name.strip_prefix(&list)?.parse().ok()
        };
        Ok(keys.iter().filter_map(epoch).collect())
    }

    fn read(&mut self, epoch: u32) -> io::Result<Vec<u8>> {
        let slots = self.slots(epoch);
        let slots = self.ask(move |store| Ok([store.get(&slots[0])?, store.get(&slots[1])?]))?;
        let [Some((_, first)), Some((_, second))] = slots else {
            return Err(io::ErrorKind::NotFound.into());
        };
        Ok([first, second].concat())
    }

    /// False for every epoch: a store does not know which process is alive.
    fn lock(&mut self, _epoch: u32) -> io::Result<bool> {
        Ok(false)
    }

    fn make(&mut self, epoch: u32, content: &[u8]) -> io::Result<bool> {
        let (listed, slots, content) = (self.listed(epoch), self.slots(epoch), content.to_vec());
        let made = self.ask(move |store| {
            let (first, second) = content.split_at(SLOT.min(content.len()));
            let free = Compare {
                key: &listed,
                version: 0,
            };
            let writes = [(&listed, &b""[..]), (&slots[0], first), (&slots[1], second)];
            let writes = writes.map(|(key, value)| Write::Put {
                key,
                value,
                lifetime: 0,
            });
            store.transact(&[free], &writes)
        })?;
        if let Ok(version) = made {
            self.own = Some(Own {
                epoch,
                versions: [version; 2],
                doubt: None,
            });
        }
        Ok(made.is_ok())
    }

    fn write(&mut self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        let slot = usize::from(offset != 0);
        debug_assert_eq!((offset, bytes.len()), ((slot * SLOT) as u64, SLOT));
        let doubt = self.own.as_ref().and_then(|own| own.doubt.clone());
        if let Some((slot, bytes)) = doubt {
            self.put(slot, bytes, true)?;
        }
        self.put(slot, bytes.to_vec(), false)
    }

    /// Does nothing: a write is answered only when a majority has it.
    fn sync(&mut self) -> io::Result<()> {
        Ok(())
    }

    fn remove(&mut self, epoch: u32) -> io::Result<()> {
        let (listed, slots) = (self.listed(epoch), self.slots(epoch));
        let removed = self.ask(move |store| {
            let keys = [&listed, &slots[0], &slots[1]];
            store.transact(&[], &keys.map(|key| Write::Delete { key }))
        })?;
        removed
            .map(drop)
            .map_err(|_| io::ErrorKind::NotFound.into())
    }
}

/// The version of a slot if it has these bytes. Only the process that made the file writes slots.
/// So if it has them, the first write of these bytes was late, and made its repetition fail.
fn find<S: StoreCalls>(store: &mut S, key: &[u8], bytes: &[u8]) -> Result<Option<u64>, Error> {
    let found = store.get(key)?.filter(|(_, found)| found == bytes);
    Ok(found.map(|(version, _)| version))
}

fn text(error: Error) -> String {
    format!("the replicated store: {error}")
}

fn failed(error: Error) -> io::Error {
    match error {
        Error::Unavailable | Error::Full => io::Error::other(Unchanged(text(error))),
        Error::Incompatible => io::Error::new(io::ErrorKind::InvalidData, text(error)),
        _ => io::Error::other(text(error)),
    }
}

fn ended() -> io::Error {
    let text = "the thread with the connection to the replicated store has ended";
    io::Error::new(io::ErrorKind::BrokenPipe, text)
}

#[cfg(test)]
mod tests;
