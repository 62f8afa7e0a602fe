//! The engine by itself: puts through three `RawNode`s of TiKV's `raft` in memory, on one thread,
//! with neither network nor codec. A put is over when the node that leads has applied it.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use raft::eraftpb::{Entry, Message};
use raft::storage::MemStorage;
use raft::{Config, RawNode, Ready};
use slog::{Discard, Logger, o};

use super::client::{HEAD, KEY, VALUE, key_of};
use crate::harness::rtt::Recorder;
use crate::harness::ticks;
use dunlin::Rng;

/// Puts between two looks at the clock. At each look, all nodes drop old entries.
const BLOCK: u64 = 256;

/// A put must be over after this number of messages.
const MOST_MESSAGES: u32 = 1000;

/// A node and its items.
struct Node {
    raft: RawNode<MemStorage>,
    items: BTreeMap<Vec<u8>, Vec<u8>>,
    applied: u64,
}

/// The median time of a put, in ns; 0 if there is no time to measure it.
///
/// # Errors
/// A node refuses something.
pub(super) fn median(span: Duration) -> anyhow::Result<f64> {
    if span.is_zero() {
        return Ok(0.0);
    }
    let mut nodes = [1, 2, 3].map(Node::new);
    nodes[0].raft.campaign()?;
    settle(&mut nodes)?;
    let mut recorder = Recorder::warming_up();
    let mut rng = Rng::new(1);
    let begin = Instant::now();
    while begin.elapsed() < span || recorder.count() == 0 {
        for _ in 0..BLOCK {
            let mut entry = vec![0; HEAD + KEY + VALUE];
            entry[HEAD..HEAD + KEY].copy_from_slice(&key_of(&mut rng));
            let wanted = nodes[0].raft.raft.raft_log.last_index() + 1;
            let begin = ticks::now();
            nodes[0].raft.propose(Vec::new(), entry)?;
            run(&mut nodes, |nodes| nodes[0].applied >= wanted)?;
            recorder.record(ticks::now().wrapping_sub(begin));
            settle(&mut nodes)?;
        }
        for node in &mut nodes {
            node.raft.mut_store().wl().compact(node.applied)?;
        }
    }
    Ok(recorder.quantile(0.5))
}

/// Lets the nodes work until nothing is in flight.
fn settle(nodes: &mut [Node; 3]) -> anyhow::Result<()> {
    run(nodes, |nodes| {
        nodes.iter().all(|node| !node.raft.has_ready())
    })
}

/// Lets the nodes work in turn until `is_over`.
fn run(nodes: &mut [Node; 3], is_over: impl Fn(&[Node; 3]) -> bool) -> anyhow::Result<()> {
    for _ in 0..MOST_MESSAGES {
        for at in 0..nodes.len() {
            let messages = nodes[at].work()?;
            for message in messages {
                let to = usize::try_from(message.to)
                    .ok()
                    .and_then(|to| to.checked_sub(1));
                let to = to.and_then(|to| nodes.get_mut(to));
                to.context("a message for no node")?.raft.step(message)?;
            }
            if is_over(nodes) {
                return Ok(());
            }
        }
    }
    ensure!(is_over(nodes), "a put through Raft alone does not end");
    Ok(())
}

impl Node {
    fn new(id: u64) -> Self {
        let storage = MemStorage::new_with_conf_state((vec![1, 2, 3], Vec::new()));
        let config = Config {
            id,
            election_tick: 30,
            heartbeat_tick: 6,
            max_inflight_msgs: 8,
            ..Config::default()
        };
        let logger = Logger::root(Discard, o!());
        let raft = RawNode::new(&config, storage, &logger).expect("the options are in range");
        Self {
            raft,
            items: BTreeMap::new(),
            applied: 0,
        }
    }

    /// Does the work that Raft asks for, and returns messages for others.
    fn work(&mut self) -> anyhow::Result<Vec<Message>> {
        let mut messages = Vec::new();
        while self.raft.has_ready() {
            let ready = self.raft.ready();
            self.take(ready, &mut messages)?;
        }
        Ok(messages)
    }

    fn take(&mut self, mut ready: Ready, messages: &mut Vec<Message>) -> anyhow::Result<()> {
        messages.append(&mut ready.take_messages());
        self.apply(ready.take_committed_entries());
        let store = self.raft.mut_store();
        store.wl().append(ready.entries())?;
        if let Some(promises) = ready.hs() {
            store.wl().set_hardstate(promises.clone());
        }
        messages.append(&mut ready.take_persisted_messages());
        let mut light = self.raft.advance(ready);
        if let Some(index) = light.commit_index() {
            self.raft.mut_store().wl().mut_hard_state().commit = index;
        }
        messages.append(&mut light.take_messages());
        self.apply(light.take_committed_entries());
        self.raft.advance_apply();
        Ok(())
    }

    fn apply(&mut self, entries: Vec<Entry>) {
        for entry in entries {
            self.applied = entry.index;
            if let Some((key, value)) = entry
                .data
                .get(HEAD..)
                .and_then(|data| data.split_at_checked(KEY))
            {
                self.items.insert(key.to_vec(), value.to_vec());
            }
        }
    }
}

#[cfg(test)]
mod tests;
