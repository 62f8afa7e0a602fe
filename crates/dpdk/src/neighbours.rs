//! The Ethernet addresses of the neighbours on the link: when to ask for one, when to forget one,
//! and the packets that wait for an answer.
//!
//! Only an answer to an open question sets an address. A neighbour is asked again within
//! [`FRESH_MS`], when it gets a new use, and when it mentions another address; after [`ASKS`]
//! questions in a row without an answer, the address is forgotten. A neighbour without a known
//! address is asked [`FIRST_ASKS`] times, and then only while packets wait for it. At most [`HELD`]
//! packets wait for one neighbour. There is also a limit for all neighbours together: the questions
//! need packets too, and must get them during an outage.
//!
//! Pure: time comes as milliseconds, and packets are of any type. Owned by `port`.

use std::collections::{BTreeMap, btree_map};
use std::net::IpAddr;

use dunlin_packet::Mac;

/// Longest time from an answer to the next question. For some neighbours it is up to [`SPREAD_MS`]
/// shorter, so that neighbours that answered together are not all asked together.
const FRESH_MS: u64 = 30_000;
const SPREAD_MS: u64 = 5_000;
/// Time between two questions while the address is unknown. It begins with [`SOON_MS`] and doubles
/// with each question, up to [`LATER_MS`].
const SOON_MS: u64 = 50;
const LATER_MS: u64 = 1_000;
/// Questions for an unknown neighbour for which no packet waits.
const FIRST_ASKS: u32 = 6;
/// Number of questions without an answer after which a known address is forgotten.
const ASKS: u32 = 3;
/// The most packets that wait for one neighbour.
pub(crate) const HELD: usize = 32;
/// Time for which packets wait.
const HELD_MS: u64 = 3_000;

/// The neighbours, and packets of type `P` that wait for them.
#[derive(Debug)]
pub(crate) struct Neighbours<P> {
    entries: BTreeMap<IpAddr, NeighbourEntry<P>>,
    /// Number of packets that wait, and its limit.
    held: usize,
    most_held: usize,
    now_ms: u64,
}

#[derive(Debug)]
struct NeighbourEntry<P> {
    mac: Option<Mac>,
    /// Number of peers whose packets go to it.
    uses: u32,
    /// When the last answer came.
    answered_ms: u64,
    /// Number of questions since that answer, and the time of the last one.
    asks: u32,
    asked_ms: u64,
    /// Whether it has mentioned another address since the last question.
    is_doubted: bool,
    held: Vec<P>,
    held_ms: u64,
}

/// The results of the passing of time.
#[derive(Debug)]
pub(crate) struct Due<P> {
    /// Neighbours to ask for, each with the address that gets the question, or `None` for all.
    pub(crate) questions: Vec<(IpAddr, Option<Mac>)>,
    /// Packets that have waited too long.
    pub(crate) lost: Vec<P>,
    /// Whether the address of a neighbour is no longer known.
    pub(crate) changed: bool,
}

/// The results of an answer.
#[derive(PartialEq, Eq, Debug)]
pub(crate) struct Answered<P> {
    /// Whether the address was not known, or differs.
    pub(crate) changed: bool,
    /// Packets that have waited for it.
    pub(crate) held: Vec<P>,
}

/// The outcome of an attempt to keep a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Hold<P> {
    /// It waits.
    Waits,
    /// It need not wait: the neighbour has answered meanwhile.
    Known(Mac, P),
    /// It cannot wait: as many packets wait already as may, or the neighbour has no uses.
    Full(P),
}

impl<P> Neighbours<P> {
    /// A table without neighbours, in which at most `most_held` packets wait at a time.
    pub(crate) fn new(most_held: usize) -> Self {
        Self {
            entries: BTreeMap::new(),
            held: 0,
            most_held,
            now_ms: 0,
        }
    }

    /// Sets the time, before the first use.
    pub(crate) fn begin(&mut self, now_ms: u64) {
        self.now_ms = now_ms;
    }

    /// Adds one use of a neighbour. True if the caller must ask for it now: it is new, or the last
    /// question is old and the neighbour may have been replaced since.
    #[must_use]
    pub(crate) fn add(&mut self, ip: IpAddr) -> bool {
        let now_ms = self.now_ms;
        match self.entries.entry(ip) {
            btree_map::Entry::Occupied(mut entry) => {
                entry.get_mut().uses += 1;
                entry.get_mut().ask_again(now_ms)
            }
            btree_map::Entry::Vacant(place) => {
                place.insert(NeighbourEntry {
                    mac: None,
                    uses: 1,
                    answered_ms: now_ms,
                    asks: 1,
                    asked_ms: now_ms,
                    is_doubted: false,
                    held: Vec::new(),
                    held_ms: now_ms,
                });
                true
            }
        }
    }

    /// Removes one use. A known address is kept until it is old.
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
            Some(NeighbourEntry { mac: Some(mac), .. }) => Hold::Known(*mac, packet),
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

    /// Notes an answer. `None` if nothing was asked; then the answer changes nothing.
    pub(crate) fn on_answer(&mut self, ip: IpAddr, mac: Mac) -> Option<Answered<P>> {
        let entry = self.entries.get_mut(&ip)?;
        if entry.asks == 0 {
            return None;
        }
        let changed = entry.mac.replace(mac) != Some(mac);
        entry.answered_ms = self.now_ms;
        entry.asks = 0;
        self.held -= entry.held.len();
        Some(Answered {
            changed,
            held: std::mem::take(&mut entry.held),
        })
    }

    /// Notes the address that a neighbour mentions without a question. True if the caller must ask,
    /// because it differs from the known one: a process that restarts has another address.
    #[must_use]
    pub(crate) fn on_hint(&mut self, ip: IpAddr, mac: Mac) -> bool {
        let now_ms = self.now_ms;
        let Some(entry) = self.entries.get_mut(&ip) else {
            return false;
        };
        if entry.mac == Some(mac) {
            return false;
        }
        // If it was asked just now, the next look at the time asks again.
        entry.is_doubted = true;
        let is_due = entry.is_due(now_ms);
        if is_due {
            entry.note_question(now_ms);
        }
        is_due
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
            let is_old = now_ms - entry.answered_ms >= fresh_ms(*ip);
            if entry.uses == 0 && (is_old || entry.mac.is_none()) {
                due.lost.append(&mut entry.held);
                due.changed |= entry.mac.is_some();
                return false;
            }
            if entry.mac.is_some() && entry.asks > ASKS {
                entry.mac = None;
                due.changed = true;
            }
            if entry.is_open(is_old) && entry.is_due(now_ms) {
                // The first question goes to the neighbour alone, so that the others need not read
                // it. Without an answer to that, the address may have changed.
                let is_first = entry.asks == 0 && !entry.is_doubted;
                due.questions.push((*ip, entry.mac.filter(|_| is_first)));
                entry.note_question(now_ms);
            }
            true
        });
        self.held -= due.lost.len();
        due
    }
}

impl<P> NeighbourEntry<P> {
    /// Notes a question.
    fn note_question(&mut self, now_ms: u64) {
        self.asks = self.asks.saturating_add(1);
        self.asked_ms = now_ms;
        self.is_doubted = false;
    }

    /// Returns whether the caller must ask again: not if it asked just now. Notes the question.
    fn ask_again(&mut self, now_ms: u64) -> bool {
        let is_due = now_ms - self.asked_ms >= SOON_MS;
        if is_due {
            self.note_question(now_ms);
        }
        is_due
    }

    /// Whether a question is needed.
    fn is_open(&self, is_old: bool) -> bool {
        match self.mac {
            Some(_) => is_old || self.is_doubted || self.asks > 0,
            None => self.asks < FIRST_ASKS || !self.held.is_empty(),
        }
    }

    /// Whether it is time for a question.
    fn is_due(&self, now_ms: u64) -> bool {
        let pause = match (self.mac, self.asks) {
            (Some(_), 0) if !self.is_doubted => 0,
            (None, asks @ 1..) => LATER_MS.min(SOON_MS << (asks - 1).min(5)),
            _ => LATER_MS,
        };
        now_ms - self.asked_ms >= pause
    }
}

/// The time from an answer of this neighbour to the next question.
fn fresh_ms(ip: IpAddr) -> u64 {
    let low = match ip {
        IpAddr::V4(ip) => u64::from(ip.to_bits()),
        IpAddr::V6(ip) => u64::from(ip.segments()[7]),
    };
    // Neighbours often have consecutive addresses; 1237 and the spread have no common divisor.
    FRESH_MS - low.wrapping_mul(1_237) % SPREAD_MS
}

#[cfg(test)]
mod tests;
