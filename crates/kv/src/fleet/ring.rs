//! The owner of a key is the listed server with the greatest weight, which is computed from the
//! server's name and the key's hash (Thaler and Ravishankar, "Using name-based mappings to increase
//! hit rates", 1998). A channel picks a server for a key by the same rule. When one of n servers
//! leaves the list, only its keys move, about one in n; when a server is added, only the keys that
//! it gets move. The order of the list does not matter.

use dunlin_channel::{seed_of, weight};

use super::types::ServerId;

/// The listed servers, as the owners of keys.
///
/// ```
/// use dunlin_kv::store::route;
/// use dunlin_kv::Ring;
///
/// let three = Ring::of(["a:31850", "b:31850", "c:31850"]);
/// let two = Ring::of(["c:31850", "a:31850"]);
/// let owner = three.owner(route(b"name")).unwrap();
/// if owner != "b:31850" {
///     assert_eq!(two.owner(route(b"name")), Some(owner));
/// }
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Ring<Id = ServerId> {
    /// Each server with the hash of its name.
    servers: Vec<(u64, Id)>,
}

impl<'a> Ring<&'a str> {
    /// Makes a ring of names.
    pub fn of(names: impl IntoIterator<Item = &'a str>) -> Self {
        Self::new(names.into_iter().map(|name| (name, name)))
    }
}

impl<Id: Copy> Ring<Id> {
    /// Makes a ring of servers, each with its name in the list.
    pub fn new<'a>(servers: impl IntoIterator<Item = (&'a str, Id)>) -> Self {
        let servers = servers.into_iter().map(|(name, id)| (seed_of(name), id));
        let mut servers: Vec<(u64, Id)> = servers.collect();
        // If two servers have equal weights, the order of the list must not decide.
        servers.sort_by_key(|(seed, _)| *seed);
        Self { servers }
    }

    /// The owner of a key whose [`route`](crate::store::route) is `hash`; `None`: no server is
    /// listed.
    #[inline]
    #[must_use]
    pub fn owner(&self, hash: u64) -> Option<Id> {
        match &self.servers[..] {
            [(_, only)] => Some(*only),
            servers => {
                let owner = servers.iter().max_by_key(|(seed, _)| weight(*seed, hash));
                owner.map(|(_, id)| *id)
            }
        }
    }
}

#[cfg(test)]
mod tests;
