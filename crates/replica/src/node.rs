//! A node: Raft, its log and the items, without input and output (TiKV's `raft`, unmodified).
//!
//! Messages, ticks and operations come in by methods; [`Node::run`] lets Raft work on all of them
//! and returns messages and answers. So the appends of one burst travel as one message to each
//! follower, and a client's answer leaves in the run that sees the majority's answers. Writes are
//! answered when they are applied; followers apply them a run later (`applying.rs`). Gets are
//! answered from the items once a majority has confirmed that this node still leads (ReadIndex,
//! Raft dissertation §6.4), without a log entry.
//!
//! Applied entries are removed from the log after a while (`tend.rs`). The image of the items is
//! made only when a follower lacks dropped entries and, with a disk, also when the disk's log
//! should become shorter. It is made in slices (`drawing.rs`), and its receiver reads it in slices
//! (`restoring.rs`).
//!
//! With a disk, a run hands out the entries and promises to save, and goes on. Messages that may
//! not leave before these are saved wait (`journal.rs`).
//!
//! Election timeouts come from the caller's generator. Raft draws its own from the system, which a
//! seed could not repeat, so `run` replaces them (`Pace`).
//!
//! A message that contradicts the log, with which Raft would panic, is dropped (`incoming.rs`): any
//! process can send one. So a panic of Raft means that the log or a promise is lost or wrong.
//! Nothing here catches it, and no handler runs Raft, because endpoints catch handlers' panics.
//! Called by `replica`.

mod applying;
mod arriving;
mod committed;
mod drawing;
mod dropping;
mod electing;
mod guard;
mod image;
mod incoming;
pub(crate) mod items;
mod journal;
mod late;
mod lease;
mod members;
mod news;
mod output;
mod pace;
mod patience;
mod persist;
mod planted;
mod restoring;
mod tend;
mod usual;
mod waiting;

use dunlin_core::{Nanos, Rng};
use raft::eraftpb::Entry;
use raft::{Config, RawNode, SnapshotStatus, StateRole};
use slog::{Discard, Logger, o};

use crate::log::Log;
use crate::machine::Machine;
use crate::options::Options;
use crate::wire::change::entry_with;
use crate::wire::{Events, Page, Request, Role};
use arriving::Arriving;
use committed::Committed;
pub(crate) use drawing::DROPPED;
use drawing::Drawing;
use dropping::Dropping;
pub use image::{Image, Restored};
use journal::Journal;
use late::LateAnswers;
use lease::Lease;
use members::Orders;
use news::{News, committed_since, has_news};
pub use output::Output;
use pace::Pace;
use planted::{lease_of, plant};
use waiting::Waiting;

/// A node. Type `A` identifies its operations.
pub struct Node<A> {
    raft: RawNode<Log>,
    machine: Machine,
    waiting: Waiting<A>,
    committed: Committed,
    pace: Pace,
    /// `None`: the log is only in memory.
    journal: Option<Journal>,
    /// The next run drops as many entries as it can.
    is_to_shorten: bool,
    /// The entries that are being dropped.
    dropping: Option<Dropping>,
    drawing: Drawing,
    /// A snapshot that is arriving.
    arriving: Option<Arriving>,
    /// A snapshot that was offered to Raft in this run.
    arrived: Option<Arriving>,
    orders: Orders,
    /// The number of roster changes after which the members were last found to be settled.
    settled: Option<u64>,
    lease: Lease,
    late: LateAnswers,
    /// For this number of ticks, this node answers no candidate, because it may have confirmed a
    /// leader's lease before it restarted.
    mute_ticks: usize,
    restores: u64,
    contradictions: u64,
    /// Writes of this node itself. The next run proposes them before those of clients.
    own: Vec<Vec<u8>>,
    /// An empty list, whose memory the next entries use.
    entries: Vec<Entry>,
    options: Options,
}

impl<A> Node<A> {
    /// Starts a node.
    ///
    /// # Panics
    /// If the options are out of range, or the image does not name this node.
    #[must_use]
    pub fn new(id: u64, image: Image, options: Options) -> Self {
        let (mut log, mut machine) = image.open();
        log.limit_messages(options.append_bytes);
        plant(&mut machine, &options);
        let config = Config {
            id,
            applied: machine.applied(),
            election_tick: Options::ELECTION_TICKS,
            heartbeat_tick: options.heartbeat_ticks(),
            max_size_per_msg: options.append_bytes,
            max_inflight_msgs: options.appends,
            check_quorum: true,
            pre_vote: true,
            // `news` keeps no account for these limits; `Options` has others.
            max_uncommitted_size: u64::MAX,
            max_committed_size_per_ready: u64::MAX,
            // Followers learn of a commit from the next append or heartbeat. A separate message for
            // each commit, with its answer, would double the messages of a put.
            skip_bcast_commit: true,
            ..Config::default()
        };
        let logger = Logger::root(Discard, o!());
        let mute_ticks = match options.lease_reads && !log.is_new() {
            // The first tick may come at once.
            true => Options::ELECTION_TICKS + 1,
            false => 0,
        };
        let mut raft = RawNode::new(&config, log, &logger).expect("the options are in range");
        // The log limits messages itself. Raft's limit would compute the encoded size of each
        // entry.
        raft.raft.max_msg_size = u64::MAX;
        Self {
            mute_ticks,
            raft,
            committed: Committed::from(machine.applied()),
            machine,
            waiting: Waiting::new(options.operations),
            pace: Pace::default(),
            journal: None,
            is_to_shorten: false,
            dropping: None,
            drawing: Drawing::default(),
            arriving: None,
            arrived: None,
            orders: Orders::default(),
            settled: None,
            lease: lease_of(&options),
            late: LateAnswers::default(),
            restores: 0,
            contradictions: 0,
            own: Vec::new(),
            entries: Vec::new(),
            options,
        }
    }

    /// Lets a tick pass.
    pub fn on_tick(&mut self) {
        self.lease.on_tick(self.options.tick());
        self.mute_ticks = self.mute_ticks.saturating_sub(1);
        self.take_late();
        self.tick();
    }

    /// Sets the time, from a clock that never stops while the process lives.
    pub fn on_time(&mut self, now: Nanos) {
        self.lease.on_time(now);
    }

    /// Notes that messages to another node may have been lost.
    pub fn on_unreachable(&mut self, id: u64) {
        // Raft repeats the entries that the node has not confirmed.
        self.take_late();
        self.raft.report_unreachable(id);
    }

    /// Notes that another node has received a whole snapshot, or that a part of it was lost.
    pub fn on_snapshot_sent(&mut self, id: u64, is_whole: bool) {
        let status = match is_whole {
            true => SnapshotStatus::Finish,
            false => SnapshotStatus::Failure,
        };
        self.raft.report_snapshot(id, status);
    }

    /// The log and the items, with which a node can start again.
    #[must_use]
    pub fn image(&self) -> Image {
        Image::new(self.log().clone(), &self.machine)
    }

    /// Takes a write, as the bytes of its request; the next run proposes it.
    pub fn on_write(&mut self, request: impl AsRef<[u8]>, asker: A) {
        match self.is_full() {
            true => self.waiting.on_full(asker),
            false => self.waiting.on_write(request.as_ref(), asker),
        }
    }

    /// Takes the log's time, in milliseconds, for an entry before the writes that have arrived
    /// since the last run. A node that does not lead ignores it.
    pub fn on_clock(&mut self, time: u64) {
        self.own.push(Request::clock(time).to_bytes());
    }

    /// Takes a read: its key, or other bytes that describe it.
    pub fn on_get(&mut self, key: Vec<u8>, asker: A) {
        self.waiting.on_get(key, asker);
    }

    /// Lets Raft work on all input.
    pub fn run(&mut self, rng: &mut Rng, out: &mut Output<A>) {
        self.committed.on_run();
        self.go_on_arriving();
        self.on_change(rng, out);
        self.propose();
        self.change_members();
        self.ask();
        while has_news(&self.raft.raft, self.committed.last()) {
            self.take(out);
            self.ask();
            self.on_change(rng, out);
        }
        self.apply_earlier(out);
        if self.arrived.is_some() {
            self.drop_arrived();
        }
        if let Some(journal) = &mut self.journal {
            journal.take_free(&mut out.messages);
        }
        self.waiting.answer_gets(self.machine.applied(), out);
        self.waiting.refuse(out);
        self.tend_log(out);
    }

    /// Whether this node leads.
    #[must_use]
    pub fn leads(&self) -> bool {
        self.raft.raft.state == StateRole::Leader
    }

    /// If this node leads: the last entry of another node's log that is known to match this node's
    /// log.
    #[must_use]
    pub fn matched(&self, id: u64) -> Option<u64> {
        let raft = &self.raft.raft;
        let progress = raft.prs().get(id).filter(|_| self.leads());
        progress.map(|it| it.matched)
    }

    /// The leader's number; 0 if this node knows none.
    #[must_use]
    pub fn leader(&self) -> u64 {
        self.raft.raft.leader_id
    }

    /// The term.
    #[must_use]
    pub fn term(&self) -> u64 {
        self.raft.raft.term
    }

    /// The role of this node.
    #[must_use]
    pub fn role(&self) -> Role {
        match self.raft.raft.state {
            StateRole::Leader => Role::Leader,
            StateRole::Follower => Role::Follower,
            StateRole::Candidate | StateRole::PreCandidate => Role::Candidate,
        }
    }

    /// The last entry that is known to be committed.
    #[must_use]
    pub fn committed(&self) -> u64 {
        self.raft.raft.raft_log.committed
    }

    /// The last entry that the items contain.
    #[must_use]
    pub fn applied(&self) -> u64 {
        self.machine.applied()
    }

    /// The item of a key: its version and value.
    #[must_use]
    pub fn item(&self, key: &[u8]) -> Option<(u64, &[u8])> {
        self.machine.item(key)
    }

    /// Reads a page of items: keys that begin with a prefix and come after `after`.
    pub(crate) fn page(&self, prefix: &[u8], limit: u32, after: &[u8]) -> Page {
        self.machine.page(prefix, limit, after)
    }

    /// Changes of keys with a prefix, by entries from an index on. The error is the first index
    /// from which all changes are known.
    pub(crate) fn events(&self, prefix: &[u8], from: u64) -> Result<Events, u64> {
        self.machine.events(prefix, from)
    }

    /// The log's time in milliseconds as of the last applied entry, and the time at which the next
    /// item expires.
    #[must_use]
    pub fn times(&self) -> (u64, Option<u64>) {
        (self.machine.time(), self.machine.next_expiry())
    }

    /// A digest of the items and the records of clients. Replicas that have applied the same
    /// entries have the same digest. Only for checks, because it reads all items and records.
    #[must_use]
    pub fn digest(&self) -> u64 {
        self.machine.digest()
    }

    /// The number of keys that have an item.
    #[must_use]
    pub fn keys(&self) -> usize {
        self.machine.keys()
    }

    /// The number of leaders' snapshots that this node has taken.
    #[must_use]
    pub const fn restores(&self) -> u64 {
        self.restores
    }

    /// The number of messages that were dropped because they contradict the log. Either another
    /// process has sent them, or the log has lost entries.
    #[must_use]
    pub const fn contradictions(&self) -> u64 {
        self.contradictions
    }

    /// The log.
    #[must_use]
    pub fn log(&self) -> &Log {
        self.raft.store()
    }

    /// Draws a new timeout if Raft has drawn one. Answers all operations if this node does not
    /// lead, or else those of an earlier term.
    #[inline]
    fn on_change(&mut self, rng: &mut Rng, out: &mut Output<A>) {
        let is_idle = self.leads() || self.waiting.is_idle();
        if !is_idle || !self.pace.is_kept(&self.raft.raft) {
            self.follow_change(rng, out);
        }
    }

    fn follow_change(&mut self, rng: &mut Rng, out: &mut Output<A>) {
        let has_changed = self.pace.on_step(&mut self.raft.raft, rng);
        if has_changed {
            self.lease.end();
        }
        match self.leads() {
            true if has_changed => self.waiting.on_won(out),
            true => {}
            false => self.waiting.on_lost(out),
        }
    }

    /// Proposes all waiting writes as one message, so that Raft appends them together, or as
    /// several messages if the writes are long: Raft sends each follower one message for each
    /// proposal.
    fn propose(&mut self) {
        let mut own = self.own.len();
        if own + self.waiting.requests() == 0 {
            return;
        }
        let mut entries = std::mem::take(&mut self.entries);
        if own > 0 {
            entries.extend(self.own.drain(..).map(|it| entry_with(&it)));
        }
        self.waiting.take_requests(&mut entries);
        let mut rest = match self.leads() {
            true => &mut entries[..],
            false => &mut [],
        };
        while !rest.is_empty() {
            let together = self.count_together(rest);
            let (writes, later) = rest.split_at_mut(together);
            let count = writes.len() - std::mem::take(&mut own).min(writes.len());
            let last = self.raft.raft.raft_log.last_index() + (writes.len() - count) as u64;
            match self.append(writes) {
                true => self.waiting.on_appended(last, count),
                false => self.waiting.on_dropped(count),
            }
            rest = later;
        }
        entries.clear();
        self.entries = entries;
    }

    /// The number of leading entries that fit into one message.
    fn count_together(&self, entries: &[Entry]) -> usize {
        let mut bytes = 0;
        let mut fits = |entry: &Entry| {
            bytes += entry.data.len() as u64;
            bytes <= self.options.append_bytes
        };
        let more = entries.iter().position(|it| !fits(it));
        more.map_or(entries.len(), |count| count.max(1))
    }

    /// Asks for the index at which the waiting gets may be answered, if there are any.
    #[inline]
    fn ask(&mut self) {
        if self.waiting.has_gets() {
            self.ask_majority();
        }
    }

    /// Asks for that index. A leader knows it only after it has committed an entry of its term;
    /// before that, Raft would drop the question.
    #[inline(never)]
    fn ask_majority(&mut self) {
        if !self.leads() || !self.raft.raft.commit_to_current_term() {
            return;
        }
        #[cfg(feature = "mutants")]
        if self.options.shows(crate::options::Mutant::StaleRead) {
            let applied = self.machine.applied();
            return self.waiting.confirm_all(applied);
        }
        if self.options.lease_reads && self.lease.holds(self.term()) {
            let committed = self.committed();
            return self.waiting.confirm_all(committed);
        }
        if let Some(number) = self.waiting.ask() {
            self.lease.on_asked(number);
            self.raft.read_index(number.to_le_bytes().to_vec());
        }
    }

    /// Takes what Raft has made, and applies what it has committed.
    fn take(&mut self, out: &mut Output<A>) {
        let news = News::take(&mut self.raft.raft);
        for state in self.raft.raft.read_states.drain(..) {
            self.lease
                .on_confirmed(&state.request_ctx, self.options.tick());
            self.waiting.on_confirmed(&state.request_ctx, state.index);
        }
        let snapshot = self.raft.snap().cloned();
        let items = snapshot.map(|it| self.restore(&it));
        let since = self.committed.last();
        if let Some(last) = committed_since(&self.raft.raft, since) {
            self.on_committed(last, out);
        }
        match self.journal.is_some() {
            true => self.save(news, items, out),
            false => self.keep(news, out),
        }
        self.note_applied();
    }
}

#[cfg(test)]
mod tests;
