//! The neighbours over whose Ethernet addresses packets leave: asked for, answered, held for, and
//! forgotten.
//!
//! An address is believed only from the answer to a question that waits for one. It is confirmed
//! every [`FRESH_MS`], for each new use, and when the neighbour mentions another one; a neighbour
//! that does not answer [`ASKS`] questions in a row is unknown again. Packets to an unknown
//! neighbour wait for its answer, up to [`HELD`] of them; those of all neighbours have a limit, too,
//! because an outage must leave packets to ask with.
//!
//! Pure: time comes as milliseconds, and packets are of any type. Owned by `port`.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry as Place;
use std::net::IpAddr;

use dunlin_packet::Mac;

/// Time after which an address is confirmed.
const FRESH_MS: u64 = 30_000;
/// Time between two questions while the neighbour is unknown, at first and later.
const SOON_MS: u64 = 50;
const LATER_MS: u64 = 1_000;
/// Number of questions that are asked soon after each other.
const SOON: u32 = 20;
/// Number of questions without an answer after which a known address is forgotten.
const ASKS: u32 = 3;
/// Most packets that wait for one neighbour.
pub(crate) const HELD: usize = 32;
/// Time for which packets wait.
const HELD_MS: u64 = 3_000;

/// The neighbours, and packets of type `P` that wait for them.
#[derive(Debug)]
pub(crate) struct Neighbours<P> {
    entries: BTreeMap<IpAddr, Entry<P>>,
    /// Packets that wait, and the most that may.
    held: usize,
    most_held: usize,
    now_ms: u64,
}

#[derive(Debug)]
struct Entry<P> {
    mac: Option<Mac>,
    /// Peers that are reached over it.
    uses: u32,
    /// When the last answer came.
    answered_ms: u64,
    /// Questions since then, and when the last one was asked.
    asks: u32,
    asked_ms: u64,
    held: Vec<P>,
    held_ms: u64,
}

/// The consequences of the passing of time.
#[derive(Debug)]
pub(crate) struct Due<P> {
    /// Neighbours to ask for.
    pub(crate) questions: Vec<IpAddr>,
    /// Packets that have waited too long.
    pub(crate) lost: Vec<P>,
    /// Whether the address of a neighbour is no longer known.
    pub(crate) changed: bool,
}

/// The outcome of an attempt to keep a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Hold<P> {
    /// It waits.
    Waits,
    /// It need not wait: the neighbour has answered meanwhile.
    Known(Mac, P),
    /// It cannot wait: enough packets do, or the neighbour has no uses.
    Full(P),
}

impl<P> Neighbours<P> {
    /// No neighbours yet, for which together up to `most_held` packets wait.
    pub(crate) fn new(most_held: usize) -> Self {
        Self {
            entries: BTreeMap::new(),
            held: 0,
            most_held,
            now_ms: 0,
        }
    }

    /// Adds one use of a neighbour. True if the caller must ask for it now: it is new, or was asked
    /// for some time ago and may have been replaced since.
    #[must_use]
    pub(crate) fn add(&mut self, ip: IpAddr) -> bool {
        let now_ms = self.now_ms;
        match self.entries.entry(ip) {
            Place::Occupied(mut entry) => {
                entry.get_mut().uses += 1;
                entry.get_mut().ask_again(now_ms)
            }
            Place::Vacant(place) => {
                place.insert(Entry {
                    mac: None,
                    uses: 1,
                    answered_ms: now_ms,
                    asks: 1,
                    asked_ms: now_ms,
                    held: Vec::new(),
                    held_ms: now_ms,
                });
                true
            }
        }
    }

    /// Takes one use away. A known address is kept until it is old.
    pub(crate) fn release(&mut self, ip: IpAddr) {
        if let Some(entry) = self.entries.get_mut(&ip) {
            entry.uses = entry.uses.saturating_sub(1);
        }
    }

    /// The Ethernet address of a neighbour, if it is known.
    pub(crate) fn find(&self, ip: IpAddr) -> Option<Mac> {
        self.entries.get(&ip)?.mac
    }

    /// Keeps a packet until the neighbour answers.
    pub(crate) fn hold(&mut self, ip: IpAddr, packet: P) -> Hold<P> {
        match self.entries.get_mut(&ip) {
            Some(Entry { mac: Some(mac), .. }) => Hold::Known(*mac, packet),
            Some(entry) if entry.held.len() < HELD && self.held < self.most_held => {
                self.held += 1;
                if entry.held.is_empty() {
                    entry.held_ms = self.now_ms;
                }
                entry.held.push(packet);
                Hold::Waits
            }
            _ => Hold::Full(packet),
        }
    }

    /// Notes an answer. Returns the packets that have waited for it; `None` if nothing was asked,
    /// and the answer changes nothing.
    pub(crate) fn on_answer(&mut self, ip: IpAddr, mac: Mac) -> Option<Vec<P>> {
        let entry = self.entries.get_mut(&ip)?;
        if entry.asks == 0 {
            return None;
        }
        entry.mac = Some(mac);
        entry.answered_ms = self.now_ms;
        entry.asks = 0;
        self.held -= entry.held.len();
        Some(std::mem::take(&mut entry.held))
    }

    /// Notes the address that a neighbour mentions without a question. True if the caller must ask,
    /// because it differs from the one that we know: a process that starts anew has another.
    #[must_use]
    pub(crate) fn on_hint(&mut self, ip: IpAddr, mac: Mac) -> bool {
        let now_ms = self.now_ms;
        let Some(entry) = self.entries.get_mut(&ip) else {
            return false;
        };
        entry.mac != Some(mac) && entry.ask_again(now_ms)
    }

    /// Notes the time, which never goes back.
    pub(crate) fn on_time(&mut self, now_ms: u64) -> Due<P> {
        self.now_ms = now_ms;
        let mut due = Due {
            questions: Vec::new(),
            lost: Vec::new(),
            changed: false,
        };
        self.entries.retain(|ip, entry| {
            if !entry.held.is_empty() && now_ms - entry.held_ms >= HELD_MS {
                due.lost.append(&mut entry.held);
            }
            let is_old = now_ms - entry.answered_ms >= FRESH_MS;
            if entry.uses == 0 && (is_old || entry.mac.is_none()) {
                due.lost.append(&mut entry.held);
                due.changed |= entry.mac.is_some();
                return false;
            }
            if entry.mac.is_some() && entry.asks > ASKS {
                entry.mac = None;
                due.changed = true;
            }
            let is_open = entry.mac.is_none() || is_old || entry.asks > 0;
            if is_open && entry.is_due(now_ms) {
                entry.note_question(now_ms);
                due.questions.push(*ip);
            }
            true
        });
        self.held -= due.lost.len();
        due
    }
}

impl<P> Entry<P> {
    /// Notes a question.
    fn note_question(&mut self, now_ms: u64) {
        self.asks = self.asks.saturating_add(1);
        self.asked_ms = now_ms;
    }

    /// Notes a question, unless there was one just now, and returns whether there is one.
    fn ask_again(&mut self, now_ms: u64) -> bool {
        let is_due = now_ms - self.asked_ms >= SOON_MS;
        if is_due {
            self.note_question(now_ms);
        }
        is_due
    }

    /// Whether it is time for a question.
    fn is_due(&self, now_ms: u64) -> bool {
        let pause = match (self.mac, self.asks) {
            (_, 0) => 0,
            (None, ..=SOON) => SOON_MS,
            _ => LATER_MS,
        };
        now_ms - self.asked_ms >= pause
    }
}

#[cfg(test)]
mod tests;
