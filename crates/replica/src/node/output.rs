//! The messages, answers and work that a run of a node returns.

use raft::eraftpb::Message;

use crate::wire::Answer;
use crate::work::Work;

/// The result of a run.
#[derive(Debug)]
pub struct Output<A> {
    /// Messages for other nodes.
    pub messages: Vec<Message>,
    /// Operations that have ended, each with its answer. [`Answer::Moved`] has no address, because
    /// the node knows none.
    pub answers: Vec<(A, Answer)>,
    /// Reads that have ended, each with its request bytes. The caller takes the answer from
    /// [`Node::item`](super::Node::item) before the next run, so no value is copied before its
    /// answer is written.
    pub gets: Vec<(A, Vec<u8>)>,
    /// Work for the disk, in order. Nothing in the other fields needs to wait for it. Empty if the
    /// log is only in memory.
    pub work: Vec<Work>,
}

impl<A> Default for Output<A> {
    fn default() -> Self {
        Self {
            messages: Vec::new(),
            answers: Vec::new(),
            gets: Vec::new(),
            work: Vec::new(),
        }
    }
}
