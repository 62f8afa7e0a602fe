//! The servers in the program's list, and their addresses. `HOST:PORT` is one server with that
//! name, even if it has several addresses. Each address of the name in `dns+HOST:PORT` is a
//! separate server.
//!
//! A separate thread looks names up, one look-up at a time, because the system's resolver may block
//! for seconds.

use std::io;
use std::net::{SocketAddr, ToSocketAddrs};
use std::sync::mpsc::{Receiver, TryRecvError, channel};
use std::thread;

/// The prefix of a name whose addresses are all servers.
pub(crate) const EACH: &str = "dns+";

#[derive(Clone, Debug)]
struct ServerName {
    /// The name with its port.
    name: String,
    /// Whether each address is a server.
    is_many: bool,
    addresses: Vec<SocketAddr>,
}

/// The addresses of each entry; an entry whose look-up has failed has an error.
type Found = Vec<io::Result<Vec<SocketAddr>>>;

#[derive(Debug)]
pub(crate) struct Directory {
    entries: Vec<ServerName>,
    look_up: Option<Receiver<Found>>,
}

impl Directory {
    /// Reads a list, and looks up its names.
    ///
    /// # Errors
    /// The list is empty, no entry has an address, or the servers of a `dns+` name are not known.
    pub(crate) fn open<'a>(list: impl IntoIterator<Item = &'a str>) -> io::Result<Self> {
        let entries = list.into_iter().map(|text| match text.strip_prefix(EACH) {
            Some(name) => ServerName::new(name, true),
            None => ServerName::new(text, false),
        });
        let mut directory = Self {
            entries: entries.collect(),
            look_up: None,
        };
        let found = look_up(&directory.names());
        let errors = directory.take(found);
        if directory.entries.is_empty() {
            let text = "the list has no server";
            return Err(io::Error::new(io::ErrorKind::InvalidInput, text));
        }
        // If the servers of one name were missing, their keys would go to the others.
        let has_none = directory.entries.iter().all(|it| it.addresses.is_empty());
        let is_fatal = |at: usize| has_none || directory.entries[at].is_many;
        match errors.into_iter().find(|(at, _)| is_fatal(*at)) {
            Some((_, error)) => Err(error),
            None => Ok(directory),
        }
    }

    /// Whether an entry may have other addresses later.
    pub(crate) fn may_change(&self) -> bool {
        let is_literal = |entry: &ServerName| entry.name.parse::<SocketAddr>().is_ok();
        !self.entries.iter().all(is_literal)
    }

    /// The servers.
    pub(crate) fn servers(&self) -> Vec<String> {
        let servers = self.entries.iter().flat_map(|entry| match entry.is_many {
            true => entry.addresses.iter().map(ToString::to_string).collect(),
            false => vec![entry.name.clone()],
        });
        servers.collect()
    }

    /// The addresses of a server.
    pub(crate) fn addresses(&self, server: &str) -> Vec<SocketAddr> {
        let one = self
            .entries
            .iter()
            .find(|it| !it.is_many && it.name == server);
        match (one, server.parse()) {
            (Some(entry), _) => entry.addresses.clone(),
            (None, address) => address.into_iter().collect(),
        }
    }

    /// Sets the addresses of an entry, like a look-up that has found them.
    #[cfg(all(test, feature = "hub"))]
    pub(crate) fn set(&mut self, entry: usize, addresses: Vec<SocketAddr>) {
        self.entries[entry].addresses = addresses;
    }

    /// Begins to look up all names, unless a look-up is under way.
    pub(crate) fn begin(&mut self) {
        if self.is_busy() {
            return;
        }
        let names = self.names();
        let (tell, found) = channel();
        let look = move || {
            // The receiver is gone if the program has dropped its connections.
            let _ = tell.send(look_up(&names));
        };
        let thread = thread::Builder::new().name("dunlin-kv-names".into());
        // If no thread can be started, the sender is dropped at once, so the look-up fails.
        let _ = thread.spawn(look);
        self.look_up = Some(found);
    }

    pub(crate) const fn is_busy(&self) -> bool {
        self.look_up.is_some()
    }

    /// Takes the end of a look-up: false if no name was found. `None` if none has ended.
    pub(crate) fn poll(&mut self) -> Option<bool> {
        let found = match self.look_up.as_ref()?.try_recv() {
            Err(TryRecvError::Empty) => return None,
            Err(TryRecvError::Disconnected) => None,
            Ok(found) => Some(found),
        };
        self.look_up = None;
        let found = found.unwrap_or_default();
        let is_any = found.iter().any(Result::is_ok);
        self.take(found);
        Some(is_any)
    }

    fn names(&self) -> Vec<String> {
        self.entries
            .iter()
            .map(|entry| entry.name.clone())
            .collect()
    }

    /// Takes the addresses that were found; an entry without any keeps its earlier ones. Returns
    /// the errors, with the indices of their entries.
    fn take(&mut self, found: Found) -> Vec<(usize, io::Error)> {
        let mut errors = Vec::new();
        for ((at, entry), found) in self.entries.iter_mut().enumerate().zip(found) {
            match found {
                Ok(addresses) => entry.addresses = addresses,
                Err(error) => {
                    let text = format!("`{}`: {error}", entry.name);
                    errors.push((at, io::Error::new(error.kind(), text)));
                }
            }
        }
        errors
    }
}

impl ServerName {
    fn new(name: &str, is_many: bool) -> Self {
        Self {
            name: name.to_owned(),
            is_many,
            addresses: Vec::new(),
        }
    }
}

fn look_up(names: &[String]) -> Found {
    let one = |name: &String| {
        let mut addresses: Vec<SocketAddr> = name.to_socket_addrs()?.collect();
        addresses.sort_unstable();
        addresses.dedup();
        match addresses.is_empty() {
            true => Err(io::Error::new(io::ErrorKind::NotFound, "it has no address")),
            false => Ok(addresses),
        }
    };
    names.iter().map(one).collect()
}

#[cfg(test)]
mod tests;
