//! A hand-over between two threads and back, without a library: the lowest cost of any design in
//! which a thread other than the caller's sends. The threads sleep by `park` and wake each other by
//! `unpark`, which use a futex. Both run in the client's process, on its processor; the server does
//! nothing.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use super::Peer;
use crate::load::Load;
use crate::work;

/// Ends the other thread.
const END: u64 = u64::MAX;

/// The two threads.
pub(crate) struct Futex;

impl Peer for Futex {
    fn serve(&self, ready: &mut dyn FnMut(&str) -> anyhow::Result<()>) -> anyhow::Result<()> {
        ready("none")?;
        loop {
            thread::park();
        }
    }

    fn call(&self, _: &str, load: &mut Load) -> anyhow::Result<()> {
        let words = Arc::new([AtomicU64::new(0), AtomicU64::new(0)]);
        let (theirs, caller) = (Arc::clone(&words), thread::current());
        let other = thread::spawn(move || {
            for turn in 1.. {
                if wait(&theirs[0], turn) == END {
                    return;
                }
                theirs[1].store(turn, Ordering::Release);
                caller.unpark();
            }
        });
        let (mut request, mut response) = (vec![0; load.size()], vec![0; load.size()]);
        let mut turn = 0;
        let mut ended = Ok(());
        while let Some(number) = load.next(&mut request) {
            turn += 1;
            words[0].store(turn, Ordering::Release);
            other.thread().unpark();
            wait(&words[1], turn);
            // The threads hand over a word, whatever the size; the load checks an answer.
            work::answer(&request, &mut response);
            ended = load.end(number, &response);
            if ended.is_err() {
                break;
            }
        }
        words[0].store(END, Ordering::Release);
        other.thread().unpark();
        // It has no reason to panic.
        let _ = other.join();
        ended
    }

    /// A thread has one hand-over at a time.
    fn inflight(&self, _: usize, _: usize) -> usize {
        1
    }
}

/// Sleeps until the word is `turn` or later; returns it.
fn wait(word: &AtomicU64, turn: u64) -> u64 {
    loop {
        let now = word.load(Ordering::Acquire);
        if now >= turn {
            return now;
        }
        thread::park();
    }
}
