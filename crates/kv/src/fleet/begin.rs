//! Beginning operations: each goes to the client of the server that owns its key.

use dunlin_core::{Cx, Nanos};
use dunlin_store::{MAX_KEY, Mode, route};

use super::jobs::{Get, Job};
use super::machine::Fleet;
use super::server::Server;
use super::types::{FleetEnd, ServerError, ServerId, WhenDown};
use crate::client::{Reply, Token};
use crate::error::Error;
use crate::wire::{Request, Whole};

impl Fleet {
    /// Begins an operation on one key. Without a `deadline`, the deadline of the
    /// clients' options applies. The operation's end comes from [`Self::next_end`].
    ///
    /// # Errors
    /// The operation is not begun: [`Error::BadKey`], [`Error::TooLong`] or [`Error::NoBuffer`].
    #[inline]
    pub fn begin(
        &mut self,
        request: &Request<'_>,
        token: Token,
        deadline: Option<Nanos>,
        cx: &mut Cx<'_>,
    ) -> Result<(), Error> {
        let is_get = matches!(request, Request::Get { .. });
        let hash = route(request.key());
        let server = self.ring.owner(hash);
        self.begin_one(server, token, is_get, cx, |client, token, cx| {
            client.begin_routed((request, hash), token, deadline, cx)
        })
    }

    /// Begins a request for a whole partition of a server.
    ///
    /// # Errors
    /// The operation is not begun: [`Error::NoBuffer`].
    pub fn begin_whole(
        &mut self,
        (server, partition): (ServerId, u16),
        whole: Whole,
        token: Token,
        deadline: Option<Nanos>,
        cx: &mut Cx<'_>,
    ) -> Result<(), Error> {
        self.begin_one(Some(server), token, false, cx, |client, token, cx| {
            client.begin_whole(partition, whole, token, deadline, cx)
        })
    }

    /// Begins a get of many keys, of any servers, which are all asked at the same time. Its end has
    /// the items in the order of the keys, or the error of one of the servers. With
    /// [`WhenDown::Miss`], keys of servers and partitions that are down count as missing, and the
    /// others are still found.
    ///
    /// # Errors
    /// The operation is not begun: [`Error::BadKey`], or [`Error::MessageTooLong`] for more than
    /// 65 535 keys.
    pub fn begin_multi(
        &mut self,
        keys: &[&[u8]],
        token: Token,
        deadline: Option<Nanos>,
        cx: &mut Cx<'_>,
    ) -> Result<(), Error> {
        u16::try_from(keys.len()).map_err(|_| Error::MessageTooLong)?;
        if keys.iter().any(|key| key.is_empty() || key.len() > MAX_KEY) {
            return Err(Error::BadKey);
        }
        let groups = self.groups(keys);
        let get = self.gets.insert(Get {
            token,
            items: vec![Ok(None); keys.len()],
            // One more, so that the get does not end before all of its servers were asked.
            left: groups.len() + 1,
            failed: None,
        });
        for (server, of_server, routes) in groups {
            let asked: Vec<&[u8]> = of_server.iter().map(|at| keys[usize::from(*at)]).collect();
            let job = Job::Part {
                get,
                keys: of_server,
            };
            let misses = self.misses(server);
            let begun = self.begin_at(server, job, cx, |client, token, cx| {
                client.begin_many((&asked, routes), misses, token, deadline, cx)
            });
            if let Err(error) = begun {
                self.on_part(get, Err(error.into()));
            }
        }
        self.on_part(get, Ok(()));
        Ok(())
    }

    /// Groups the indices and routing hashes of keys by the servers that own the keys.
    fn groups(&self, keys: &[&[u8]]) -> Vec<(Option<ServerId>, Vec<u16>, Vec<u64>)> {
        let mut groups: Vec<(Option<ServerId>, Vec<u16>, Vec<u64>)> = Vec::new();
        for (at, key) in (0..u16::MAX).zip(keys) {
            let hash = route(key);
            let owner = self.ring.owner(hash);
            match groups.iter_mut().find(|(server, ..)| *server == owner) {
                Some((_, group, hashes)) => {
                    group.push(at);
                    hashes.push(hash);
                }
                None => groups.push((owner, vec![at], vec![hash])),
            }
        }
        groups
    }

    fn begin_one(
        &mut self,
        server: Option<ServerId>,
        token: Token,
        is_get: bool,
        cx: &mut Cx<'_>,
        begin: impl FnOnce(&mut crate::Client, Token, &mut Cx<'_>) -> Result<(), Error>,
    ) -> Result<(), Error> {
        self.begin_at(server, Job::One { token, is_get }, cx, begin)
    }

    /// Begins a job at a server, or ends it at once if the server is down.
    #[inline]
    fn begin_at(
        &mut self,
        id: Option<ServerId>,
        job: Job,
        cx: &mut Cx<'_>,
        begin: impl FnOnce(&mut crate::Client, Token, &mut Cx<'_>) -> Result<(), Error>,
    ) -> Result<(), Error> {
        #[cfg(feature = "mutants")]
        let id = self.other_owner(id);
        let Some(server) = id.and_then(|id| self.servers.get(id)) else {
            self.end(None, job, Err(Error::Unavailable), true);
            return Ok(());
        };
        let id = server.id();
        if server.is_down() && !self.waits(job.is_get()) {
            self.end(Some(id), job, Err(Error::Unavailable), true);
            return Ok(());
        }
        let server = self.servers.get_mut(id).expect("it was there just now");
        let place = self.jobs.insert(job);
        let begun = begin(server.drive(), Token(place as u64), cx);
        if begun.is_err() {
            self.jobs.remove(place);
        } else {
            self.settle(id, cx);
        }
        begun
    }

    /// The server for an operation: its owner. With a planted bug, it is another server if the
    /// owner is down.
    #[cfg(feature = "mutants")]
    fn other_owner(&self, owner: Option<ServerId>) -> Option<ServerId> {
        let is_planted = self.options.client.mutant == Some(crate::Mutant::OtherOwner);
        let is_down = |id| self.servers.get(id).is_some_and(|it| it.is_down());
        match owner {
            Some(id) if is_planted && is_down(id) => {
                let mut others = self.servers().into_iter();
                others.find(|id| !is_down(*id)).or(owner)
            }
            owner => owner,
        }
    }

    /// Whether an operation waits for a server that is down.
    pub(super) fn waits(&self, is_get: bool) -> bool {
        match self.options.when_down {
            WhenDown::Fail => false,
            WhenDown::Miss => is_get && self.is_undecided(),
            WhenDown::Wait => true,
        }
    }

    /// Whether no server was ever reached, but one may be soon.
    fn is_undecided(&self) -> bool {
        let is_known = self.servers.iter().any(|(_, it)| it.mode().is_some());
        let is_hoped = || {
            self.servers
                .iter()
                .any(|(_, it)| it.is_listed() && !it.is_down())
        };
        !is_known && is_hoped()
    }

    /// Ends a job that no client has any more. `is_down`: its server or partition is down.
    pub(super) fn end(
        &mut self,
        server: Option<ServerId>,
        job: Job,
        result: Result<Reply, Error>,
        is_down: bool,
    ) {
        let is_unavailable = matches!(result, Err(Error::Unavailable)) && is_down;
        let is_miss = is_unavailable && job.is_get() && self.misses(server);
        let name = || server.and_then(|server| Some(self.servers.get(server)?.name().clone()));
        match (job, result) {
            (Job::One { token, .. }, _) if is_miss => self.push(token, Ok(Reply::Missing)),
            (Job::One { token, .. }, result) => {
                let result = result.map_err(|error| ServerError::new(name(), error));
                self.push(token, result);
            }
            (Job::Part { get, .. }, _) if is_miss => self.on_part(get, Ok(())),
            (Job::Part { get, keys }, Ok(Reply::Items(items))) => {
                if let Some(get) = self.gets.get_mut(get) {
                    for (at, item) in keys.into_iter().zip(items) {
                        get.items[usize::from(at)] = item;
                    }
                }
                self.on_part(get, Ok(()));
            }
            (Job::Part { get, .. }, result) => {
                let error = result.err().unwrap_or(Error::Incompatible);
                let error = ServerError::new(name(), error);
                self.on_part(get, Err(error));
            }
        }
    }

    /// Whether a get for a server that is down is a miss, as it is for a cache. A server that was
    /// never reached is assumed to have the mode of the others.
    fn misses(&self, server: Option<ServerId>) -> bool {
        let server = server.and_then(|server| self.servers.get(server));
        let own = server.and_then(Server::mode);
        let of_any = || self.servers.iter().find_map(|(_, server)| server.mode());
        self.options.when_down == WhenDown::Miss
            && server.is_some()
            && own.or_else(of_any) == Some(Mode::Cache)
    }

    /// Notes that a server has answered its part of a get, or has failed.
    fn on_part(&mut self, place: usize, result: Result<(), ServerError>) {
        let Some(get) = self.gets.get_mut(place) else {
            return;
        };
        get.left -= 1;
        if let Err(error) = result {
            get.failed.get_or_insert(error);
        }
        if get.left > 0 {
            return;
        }
        if let Some(get) = self.gets.remove(place) {
            let result = match get.failed {
                Some(error) => Err(error),
                None => Ok(Reply::Items(get.items)),
            };
            self.push(get.token, result);
        }
    }

    fn push(&mut self, token: Token, result: Result<Reply, ServerError>) {
        self.ends.push_back(FleetEnd { token, result });
    }
}
