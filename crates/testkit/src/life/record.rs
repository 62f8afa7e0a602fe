//! All events of a run that the two endpoints and their users can see, in order, for comparison
//! with another variant.
//!
//! Invariant: recording a run does not change it. Written by `host`, `ledger`, `net` and `world`;
//! read by `life`.

use std::fmt::{self, Write};
use std::sync::{Arc, Mutex, MutexGuard};

use dunlin_core::{Counters, Done, Nanos};
use dunlin_wire::{HEADER_LEN, Header};

/// Writes down facts if the run is recorded; clones write to the same record.
#[derive(Clone, Default, Debug)]
pub(super) struct Recorder(Option<Arc<Mutex<Record>>>);

#[derive(Default, Debug)]
struct Record {
    facts: Vec<Fact>,
    /// Counters and resources of each host, as they were last noted.
    standing: [Vec<(&'static str, u64)>; 2],
}

/// One thing that happened at a host.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Fact {
    /// The endpoint gave a packet to its transport.
    Sent(usize, Vec<u8>),
    /// A handler got a request.
    Ran(usize, Vec<u8>),
    /// A call ended: its tag, its result, and the bytes of its response.
    Ended(usize, u64, String, Vec<u8>),
    /// A fact as text: an event, or an answer of the endpoint.
    Told(usize, String),
    /// Counters or resources of the endpoint have changed.
    Stands(usize, Vec<(&'static str, u64)>),
}

impl Recorder {
    pub(super) fn on() -> Self {
        Self(Some(Arc::default()))
    }

    fn lock(&self) -> Option<MutexGuard<'_, Record>> {
        let record = self.0.as_ref()?;
        Some(record.lock().expect("no fact panics while it is noted"))
    }

    pub(super) fn note(&self, fact: impl FnOnce() -> Fact) {
        if let Some(mut record) = self.lock() {
            record.facts.push(fact());
        }
    }

    pub(super) fn note_end(&self, host: usize, done: &Done, now: Nanos) {
        self.note(|| {
            let response = match done.result {
                Ok(()) => done.response.data().to_vec(),
                // The buffer still holds the bytes of an earlier message.
                Err(_) => Vec::new(),
            };
            let how = format!("{:?} of {:?} at {now:?}", done.result, done.session);
            Fact::Ended(host, done.tag.0, how, response)
        });
    }

    /// Notes the counters and resources of a host, if they have changed.
    pub(super) fn note_standing(
        &self,
        host: usize,
        all: impl FnOnce() -> Vec<(&'static str, u64)>,
    ) {
        let Some(mut record) = self.lock() else {
            return;
        };
        let all = all();
        if record.standing[host] != all {
            record.standing[host].clone_from(&all);
            record.facts.push(Fact::Stands(host, all));
        }
    }

    /// Everything that was noted.
    pub(super) fn take(&self) -> Vec<Fact> {
        self.lock()
            .map_or(Vec::new(), |mut record| std::mem::take(&mut record.facts))
    }
}

/// All counters that variants share, by name.
pub(super) fn shared_counters(counters: &Counters) -> impl Iterator<Item = (&'static str, u64)> {
    let counted = counters.named().into_iter();
    counted
        .filter(|(name, _)| !Counters::OF_PATHS.contains(name))
        .chain(counters.drops.named())
}

/// Number of facts to show before the first different one.
const CONTEXT: usize = 12;

/// The first difference, with the facts before it; `None` if there is none.
pub(super) fn difference(first: &[Fact], second: &[Fact]) -> Option<String> {
    let same = first.iter().zip(second).take_while(|(a, b)| a == b).count();
    if same == first.len() && same == second.len() {
        return None;
    }
    // An attacker has answered a request that had not left: then it leaves without a header on one
    // of the paths (`docs/decisions/lanes.md`), and nothing after that need be equal.
    let facts = [first.get(same), second.get(same)];
    if facts.into_iter().flatten().any(Fact::is_headless) {
        return None;
    }
    let mut out = format!("the variants differ after {same} equal facts:\n");
    let mut say = |line: fmt::Arguments<'_>| {
        // A string takes every line.
        let _never_fails = out.write_fmt(line);
    };
    for fact in &first[same.saturating_sub(CONTEXT)..same] {
        say(format_args!("    {fact}\n"));
    }
    for (name, facts) in [("first", first), ("second", second)] {
        match facts.get(same) {
            Some(fact) => say(format_args!("  {name}: {fact}\n")),
            None => say(format_args!("  {name}: its run is over\n")),
        }
    }
    if let (Some(Fact::Stands(_, first)), Some(Fact::Stands(_, second))) =
        (first.get(same), second.get(same))
    {
        let pairs = first.iter().zip(second);
        for ((name, value), (_, other)) in pairs.filter(|(a, b)| a != b) {
            say(format_args!("  {name}: {value} | {other}\n"));
        }
    }
    Some(out)
}

impl Fact {
    /// Whether this is a packet without a header.
    fn is_headless(&self) -> bool {
        matches!(self, Self::Sent(_, bytes) if is_headless(bytes))
    }
}

/// Whether a packet has no header, because its message was gone before it left.
pub(super) fn is_headless(packet: &[u8]) -> bool {
    let header = packet.get(..HEADER_LEN);
    header.is_some_and(|header| header.iter().all(|byte| *byte == 0))
}

impl fmt::Display for Fact {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Sent(host, bytes) => match Header::decode(bytes) {
                Ok(header) => write!(f, "host {host} sends {} bytes, {header:?}", bytes.len()),
                Err(why) => write!(f, "host {host} sends no packet: {why}"),
            },
            Self::Ran(host, data) => write!(f, "host {host} runs a handler on {data:02x?}"),
            Self::Ended(host, tag, how, response) => {
                write!(f, "host {host} ends call {tag} with {how}, {response:02x?}")
            }
            Self::Told(host, what) => write!(f, "host {host}: {what}"),
            Self::Stands(host, _) => write!(f, "host {host} has counted something"),
        }
    }
}
