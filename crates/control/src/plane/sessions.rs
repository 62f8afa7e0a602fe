//! The open sessions of a process, by name and by connection, so that the end of a connection
//! visits no sessions of other connections.
//!
//! An endpoint numbers its sessions from 0 and reuses numbers. So the table has pages of [`PAGE`]
//! numbers, which take 42 bytes a session; a tree with one entry for each session, and another tree
//! by connection, took 127.
//!
//! Invariants: an endpoint has no two open sessions with one number, because it reports the end of
//! the first before it reuses the number; the sessions over a connection are a doubly linked list
//! that begins in `first_over`; no page and no list is empty.

use std::collections::BTreeMap;

use dunlin_wire::control::{EndpointIndex, SessionRef};
use dunlin_wire::{SessionNum, Token};

use crate::types::{LinkId, SessionKey};

/// Numbers in a page.
const PAGE: u32 = 16;

/// The place of a session: its endpoint and its number.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct SessionAt(EndpointIndex, u32);

/// An open session.
#[derive(Clone, Copy, Debug)]
pub(super) struct Open {
    /// The connection over which the session was made, and with which it ends.
    pub(super) link: LinkId,
    /// The peer's name for the session.
    pub(super) remote: SessionRef,
    /// The endpoint has sent its peer an inquiry, and has not received the account.
    pub(super) inquires: bool,
}

/// An open session at its place.
#[derive(Clone, Copy, Debug)]
struct SessionEntry {
    token: Token,
    open: Open,
    /// The previous and the next session over the same connection.
    previous: Option<SessionAt>,
    next: Option<SessionAt>,
}

/// Sessions with consecutive numbers.
type Page = Box<[Option<SessionEntry>; PAGE as usize]>;

/// All open sessions.
#[derive(Debug, Default)]
pub(super) struct Sessions {
    /// The pages, by endpoint and by the first number of the page.
    pages: BTreeMap<(EndpointIndex, u32), Page>,
    first_over: BTreeMap<LinkId, SessionAt>,
    len: usize,
}

impl Open {
    pub(super) const fn new(link: LinkId, remote: SessionRef) -> Self {
        Self {
            link,
            remote,
            inquires: false,
        }
    }
}

impl Sessions {
    pub(super) const fn len(&self) -> usize {
        self.len
    }

    pub(super) fn get(&self, key: SessionKey) -> Option<&Open> {
        let entry = self.at(SessionAt::of(key))?;
        (entry.token == key.token).then_some(&entry.open)
    }

    pub(super) fn get_mut(&mut self, key: SessionKey) -> Option<&mut Open> {
        let entry = self.at_mut(SessionAt::of(key))?;
        (entry.token == key.token).then_some(&mut entry.open)
    }

    /// Enters a session. False if its endpoint already has an open session with this number.
    pub(super) fn insert(&mut self, key: SessionKey, open: Open) -> bool {
        let place = SessionAt::of(key);
        if self.at(place).is_some() {
            return false;
        }
        let next = self.first_over.insert(open.link, place);
        if let Some(next) = next.and_then(|next| self.at_mut(next)) {
            next.previous = Some(place);
        }
        let page = self.pages.entry(place.page()).or_default();
        page[place.in_page()] = Some(SessionEntry {
            token: key.token,
            open,
            previous: None,
            next,
        });
        self.len += 1;
        true
    }

    pub(super) fn remove(&mut self, key: SessionKey) -> Option<Open> {
        let place = SessionAt::of(key);
        let page = self.pages.get_mut(&place.page())?;
        let entry = page[place.in_page()].take_if(|entry| entry.token == key.token)?;
        if page.iter().all(Option::is_none) {
            self.pages.remove(&place.page());
        }
        let SessionEntry {
            open,
            previous,
            next,
            ..
        } = entry;
        if let Some(next) = next.and_then(|next| self.at_mut(next)) {
            next.previous = previous;
        }
        match (previous, next) {
            (Some(previous), _) => {
                if let Some(previous) = self.at_mut(previous) {
                    previous.next = next;
                }
            }
            (None, Some(next)) => drop(self.first_over.insert(open.link, next)),
            (None, None) => drop(self.first_over.remove(&open.link)),
        }
        self.len -= 1;
        Some(open)
    }

    /// The sessions over a connection, latest first.
    pub(super) fn over(&self, link: LinkId) -> impl Iterator<Item = (SessionKey, &Open)> {
        let mut next = self.first_over.get(&link).copied();
        std::iter::from_fn(move || {
            let place = next?;
            let entry = self.at(place)?;
            next = entry.next;
            Some((place.key(entry), &entry.open))
        })
    }

    /// The sessions of an endpoint.
    pub(super) fn of(&self, endpoint: EndpointIndex) -> impl Iterator<Item = SessionKey> {
        let pages = self.pages.range((endpoint, 0)..=(endpoint, u32::MAX));
        pages.flat_map(|((endpoint, first), page)| {
            let places = (*first..).zip(page.iter());
            places.filter_map(|(session, entry)| {
                Some(SessionAt(*endpoint, session).key(entry.as_ref()?))
            })
        })
    }

    fn at(&self, place: SessionAt) -> Option<&SessionEntry> {
        self.pages.get(&place.page())?[place.in_page()].as_ref()
    }

    fn at_mut(&mut self, place: SessionAt) -> Option<&mut SessionEntry> {
        self.pages.get_mut(&place.page())?[place.in_page()].as_mut()
    }
}

impl SessionAt {
    const fn of(key: SessionKey) -> Self {
        Self(key.endpoint, key.session.0)
    }

    const fn key(self, entry: &SessionEntry) -> SessionKey {
        SessionKey {
            endpoint: self.0,
            session: SessionNum(self.1),
            token: entry.token,
        }
    }

    const fn page(self) -> (EndpointIndex, u32) {
        (self.0, self.1 / PAGE * PAGE)
    }

    const fn in_page(self) -> usize {
        (self.1 % PAGE) as usize
    }
}
