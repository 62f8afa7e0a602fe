//! Objects that are held until the transport is done with them: responses that the transport still
//! reads, and completions of calls whose requests it still reads (rule S12).
//!
//! Invariant: no entry leaves `endings` or `lingering` before the transport is done with it.

use std::collections::VecDeque;

use dunlin_msgbuf::{MsgBuf, Pool};

use crate::call::Done;
use crate::transport::TxSeq;

/// A call that has ended while the transport may still read its request (rule S12).
#[derive(Debug)]
struct Ending {
    done: Done,
    tx_end: TxSeq,
}

/// The held objects.
#[derive(Debug, Default)]
pub(crate) struct Held {
    /// The position up to which the transport is done.
    done: TxSeq,
    endings: VecDeque<Ending>,
    /// Responses that wait for the transport before they go back to the pool.
    lingering: VecDeque<(TxSeq, MsgBuf)>,
}

impl Held {
    /// Notes the position up to which the transport is done.
    #[inline]
    pub(crate) fn on_done(&mut self, done: TxSeq) {
        self.done = done;
    }

    /// Whether the transport is done with all packets up to this position.
    #[inline]
    pub(crate) fn is_done(&self, tx_end: TxSeq) -> bool {
        tx_end <= self.done
    }

    /// Whether an object waits for the transport.
    pub(crate) fn is_waiting(&self) -> bool {
        !(self.endings.is_empty() && self.lingering.is_empty())
    }

    /// Keeps a completion for the loop to deliver, once the transport is done with the request.
    pub(crate) fn end(&mut self, done: Done, tx_end: TxSeq) {
        self.endings.push_back(Ending { done, tx_end });
    }

    /// Puts the waiting completions in reverse order.
    #[cfg(feature = "mutants")]
    pub(crate) fn reverse_endings(&mut self) {
        self.endings.make_contiguous().reverse();
    }

    /// The number of waiting completions.
    pub(crate) fn ending_count(&self) -> usize {
        self.endings.len()
    }

    /// The next completion, if the transport has released its request. Otherwise, the completion
    /// goes to the end of the queue.
    pub(crate) fn pop_ending(&mut self) -> Option<Done> {
        let mut ending = self.endings.pop_front()?;
        if !self.is_done(ending.tx_end) {
            self.endings.push_back(ending);
            return None;
        }
        ending.done.request.revoke();
        Some(ending.done)
    }

    /// Gives a response buffer back to the pool once the transport is done with it (rule S12). True
    /// if the buffer must wait.
    pub(crate) fn recycle(&mut self, mut buf: MsgBuf, tx_end: TxSeq, pool: &mut Pool) -> bool {
        if self.is_done(tx_end) {
            buf.revoke();
            pool.recycle(buf);
            return false;
        }
        self.lingering.push_back((tx_end, buf));
        true
    }

    /// Gives back the lingering buffers that the transport has released, up to the first one that
    /// it has not. The queue is nearly in order of release.
    pub(crate) fn recycle_lingering(&mut self, pool: &mut Pool) {
        let done = self.done;
        while let Some((_, mut buf)) = self.lingering.pop_front_if(|(end, _)| *end <= done) {
            buf.revoke();
            pool.recycle(buf);
        }
    }
}

#[cfg(test)]
mod tests;
