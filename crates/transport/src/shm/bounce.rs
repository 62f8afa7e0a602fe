//! Copies of data that lies in memory which no other process can map: of the user's, for example.
//!
//! Invariant: the last [`COPIES`] copies hold what was copied. Nothing says when a receiver is done
//! with one; if it is behind by more than that, it finds that an older copy was taken back, and the
//! packet counts as lost. Called by `tx`.

use std::collections::VecDeque;

use dunlin_msgbuf::{BufRef, MsgBuf, Pool, PoolConfig};

/// Copies that are kept: more than a session has credits by default.
const COPIES: usize = 64;

/// Copies, and where they come from. Nothing is allocated before it is needed.
#[derive(Debug, Default)]
pub(super) struct Bounce {
    pool: Option<Pool>,
    copies: VecDeque<MsgBuf>,
    count: u64,
}

impl Bounce {
    /// Copies the bytes to where they can be shared. `None` if there is no memory.
    #[cold]
    pub(super) fn copy(&mut self, bytes: &[u8]) -> Option<BufRef> {
        if self.pool.is_none() {
            self.pool = Pool::new(PoolConfig::default()).ok();
        }
        let pool = self.pool.as_mut()?;
        if self.copies.len() == COPIES
            && let Some(oldest) = self.copies.pop_front()
        {
            pool.recycle(oldest);
        }
        let mut copy = pool.alloc(bytes.len()).ok()?;
        copy.data_mut().copy_from_slice(bytes);
        let name = copy.lend();
        self.copies.push_back(copy);
        self.count += 1;
        Some(name)
    }

    /// How many were made since this was asked last.
    #[inline]
    pub(super) fn take_count(&mut self) -> u64 {
        std::mem::take(&mut self.count)
    }
}
