//! The planted bug `late-end-of-lost`: after a server has failed, the client learns of the ends of
//! its attempts in time, but handles them late.

use dunlin_core::{Done, Nanos, RpcError};

/// How late.
const BY: Nanos = Nanos::from_millis(5);

/// Completions that are held back, each until its time.
#[derive(Default)]
pub(super) struct Late(Vec<(Nanos, Done)>);

impl Late {
    /// Holds back those completions in `ended` that report a failed server, and adds those that
    /// have waited long enough.
    pub(super) fn delay_lost(&mut self, ended: &mut Vec<Done>, now: Nanos) {
        let is_lost = |done: &Done| done.result.is_err_and(is_lost);
        let (lost, others): (Vec<_>, Vec<_>) = ended.drain(..).partition(is_lost);
        self.0.extend(lost.into_iter().map(|done| (now + BY, done)));
        *ended = others;
        let (due, waiting) = self.0.drain(..).partition(|(at, _)| *at <= now);
        self.0 = waiting;
        let due: Vec<(Nanos, Done)> = due;
        ended.extend(due.into_iter().map(|(_, done)| done));
    }
}

/// Whether a call ended because its server has failed or its session was closed.
pub(super) const fn is_lost(error: RpcError) -> bool {
    matches!(error, RpcError::PeerFailed(_) | RpcError::SessionClosed(..))
}
