//! The times of look-ups: regularly, and soon after a loss. A look-up may have several sources. The
//! next look-up begins only after one of these has ended, so if all hang, no other look-up begins.

use dunlin_core::Nanos;

use crate::config::Config;

#[derive(Clone, Debug)]
pub(crate) struct Lookups {
    every: Option<Nanos>,
    pause: Nanos,
    next: Nanos,
    last: Option<Nanos>,
    is_under_way: bool,
    /// A server was lost during the look-up, so the answer may be older than the loss.
    is_lost: bool,
    /// A look-up has found addresses.
    is_known: bool,
    /// The pause before the next look-up, as long as none has found addresses.
    retry: Nanos,
}

/// The first pause, which doubles up to [`LAST_RETRY`].
const FIRST_RETRY: Nanos = Nanos::from_millis(100);
const LAST_RETRY: Nanos = Nanos::from_secs(1);

impl Lookups {
    pub(crate) fn new(config: &Config, now: Nanos) -> Self {
        Self {
            every: config.lookup,
            pause: config.lookup_pause,
            next: now,
            last: None,
            is_under_way: false,
            is_lost: false,
            is_known: false,
            retry: FIRST_RETRY,
        }
    }

    pub(crate) fn next_wakeup(&self) -> Option<Nanos> {
        self.every?;
        (!self.is_under_way).then_some(self.next)
    }

    /// True if a look-up must begin now.
    pub(crate) fn begin(&mut self, now: Nanos) -> bool {
        let is_due = self.next_wakeup().is_some_and(|next| next <= now);
        if is_due {
            self.is_under_way = true;
            self.last = Some(now);
        }
        is_due
    }

    /// Notes the loss of a server, whose name may have another address now.
    pub(crate) fn on_loss(&mut self, now: Nanos) {
        self.is_lost = self.is_under_way;
        let soonest = self.last.map_or(now, |last| last + self.pause);
        self.next = self.next.min(soonest.max(now));
    }

    /// Notes that the look-up has ended with success. If several sources are looked up at once, the
    /// first one to end decides when the next look-up comes.
    pub(crate) fn on_end(&mut self, now: Nanos) {
        self.is_known = true;
        if !std::mem::take(&mut self.is_under_way) {
            return;
        }
        self.next = now + self.every.unwrap_or(Nanos::MAX);
        if self.is_lost {
            self.on_loss(now);
        }
    }

    /// Notes that the look-up has failed. If none has found addresses yet, the next one comes soon.
    pub(crate) fn on_failure(&mut self, now: Nanos) {
        let (is_known, retry) = (self.is_known, self.retry);
        self.on_end(now);
        if !is_known {
            self.is_known = false;
            self.next = self.next.min(now + retry);
            self.retry = retry.times(2).min(LAST_RETRY);
        }
    }
}

#[cfg(test)]
mod tests;
