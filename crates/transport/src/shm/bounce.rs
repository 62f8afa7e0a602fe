//! Copies of data that lies in memory which no other process can map, such as the user's own.
//!
//! Invariant: the last [`COPIES`] copies stay valid. A sender never learns when a receiver is done
//! with a copy. A receiver that lags by more copies finds that its copy was withdrawn, and the
//! packet counts as lost. Called by `tx`.

use std::collections::VecDeque;

use dunlin_msgbuf::{BufRef, MsgBuf, Pool, PoolConfig};

/// Number of copies that are kept: more than a session has credits by default.
const COPIES: usize = 64;

/// The copies, and the pool from which they come. Nothing is allocated before the first copy.
#[derive(Debug, Default)]
pub(super) struct Bounce {
    pool: Option<Pool>,
    copies: VecDeque<MsgBuf>,
    count: u64,
}

impl Bounce {
    /// Copies the bytes into memory that can be shared. `None` if there is no memory.
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

    /// The number of copies made since the last call.
    #[inline]
    pub(super) fn take_count(&mut self) -> u64 {
        std::mem::take(&mut self.count)
    }
}
