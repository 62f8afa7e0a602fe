//! Statistics of an endpoint: counters and measured times. The parts of the endpoint report events;
//! users, insight and the simulator read the results. Statistics never change the endpoint's
//! behaviour.

use crate::observe::counters::{Counters, DropReason};
use crate::observe::histogram::Histograms;
use crate::time::Nanos;

/// Counters and histograms of one endpoint.
#[derive(Debug, Default)]
pub(crate) struct Stats {
    counters: Counters,
    histograms: Box<Histograms>,
    rtts: RttLog,
    burst: Burst,
}

/// The calls that the common path has ended since a burst began. Calls that end in one burst were
/// often sent in one burst. They all took the same time, so they are recorded together.
#[derive(Debug, Default)]
struct Burst {
    /// When the latest calls were first sent.
    first_sent: Nanos,
    /// The number of the latest calls, which were all first sent at that time.
    last: u64,
    /// The number of calls before these.
    before: u64,
}

/// Reading.
impl Stats {
    #[inline]
    pub(crate) fn counters(&self) -> &Counters {
        &self.counters
    }

    pub(crate) fn histograms(&self) -> &Histograms {
        &self.histograms
    }

    /// Passes on the round trips since the last call. From now on, further ones are kept.
    pub(crate) fn take_rtts(&mut self, each: impl FnMut(Nanos)) {
        self.rtts.take(each);
    }
}

/// Packets.
impl Stats {
    #[inline]
    pub(crate) fn on_frames(&mut self, frames: usize) {
        self.counters.rx_frames += frames as u64;
    }

    #[inline]
    pub(crate) fn on_packet(&mut self) {
        self.counters.rx_packets += 1;
    }

    /// Counts packets of a large request.
    pub(crate) fn on_packets(&mut self, count: u32) {
        self.counters.rx_packets += u64::from(count);
    }

    /// Counts packets of a burst that took the common path, and those that were declined there. A
    /// packet of the common path ends a call, or is an accepted request. `came`: when the burst was
    /// taken.
    #[inline]
    pub(crate) fn on_plain(&mut self, packets: u64, declined: u64, came: Nanos) {
        if self.burst.last != 0 {
            self.end_run(came);
        }
        let ended = std::mem::take(&mut self.burst.before);
        self.counters.completions += ended;
        self.counters.requests_received += packets - ended;
        self.counters.rx_packets += packets;
        self.counters.rx_plain += packets;
        self.counters.rx_declined += declined;
    }

    /// Records the end of a call on the common path. `first_sent`: when the call was first sent;
    /// `came`: when the burst was taken. [`Self::on_plain`] counts the call.
    #[inline(always)]
    pub(crate) fn on_plain_answer(&mut self, first_sent: Nanos, came: impl FnOnce() -> Nanos) {
        if self.burst.first_sent != first_sent {
            self.begin_run(first_sent, came());
        }
        self.burst.last += 1;
    }

    /// Counts the only packet of a burst, which took the common path. `ended`: the duration of the
    /// call that it ended; `None` if the packet is a request.
    #[inline(always)]
    pub(crate) fn on_lone(&mut self, ended: Option<Nanos>) {
        match ended {
            Some(took) => {
                self.on_answered(took);
                self.on_completion();
            }
            None => self.on_request_accepted(),
        }
        self.counters.rx_packets += 1;
        self.counters.rx_plain += 1;
    }

    /// Records the times of the latest calls, because the next ones were first sent at another
    /// time.
    #[inline(never)]
    fn begin_run(&mut self, first_sent: Nanos, came: Nanos) {
        if self.burst.last != 0 {
            self.end_run(came);
        }
        self.burst.first_sent = first_sent;
    }

    /// Records the times of the burst's latest calls.
    #[inline]
    fn end_run(&mut self, came: Nanos) {
        let Burst {
            first_sent, last, ..
        } = self.burst;
        self.histograms
            .call
            .record_many(came.since(first_sent), last);
        self.burst.before += last;
        self.burst.last = 0;
    }

    /// Counts the packets of a burst, the staged ones among them, and the calls whose requests are
    /// sent for the first time.
    #[inline]
    pub(crate) fn on_transmit(&mut self, packets: usize, staged: usize, requests: usize) {
        self.counters.tx_packets += packets as u64;
        self.counters.tx_staged += staged as u64;
        self.counters.requests_sent += requests as u64;
    }

    /// Counts packets of a burst that were queued although short enough for the lane.
    pub(crate) fn on_unstaged(&mut self, packets: u64) {
        self.counters.tx_unstaged += packets;
    }

    /// A packet is dropped without an answer (rule W12).
    #[inline]
    pub(crate) fn on_drop(&mut self, reason: DropReason) {
        self.counters.drops.count(reason);
    }

    /// A packet waits in the timing wheel.
    pub(crate) fn on_paced(&mut self) {
        self.counters.paced += 1;
    }

    /// The client sends `packets` packets again, or asks for them again.
    pub(crate) fn on_retransmission(&mut self, packets: u32) {
        self.counters.retransmissions += u64::from(packets);
    }
}

/// Calls of this side.
impl Stats {
    pub(crate) fn on_large_sent(&mut self) {
        self.counters.large_sent += 1;
    }

    /// A call waits for a slot or a credit.
    pub(crate) fn on_stall(&mut self) {
        self.counters.stalls += 1;
    }

    pub(crate) fn on_probe(&mut self) {
        self.counters.probes += 1;
    }

    pub(crate) fn on_inquiry(&mut self) {
        self.counters.inquiries += 1;
    }

    pub(crate) fn on_cancel(&mut self) {
        self.counters.cancels += 1;
    }

    /// The server has answered a call whose user still waits. `took` is the time since the call was
    /// first sent.
    #[inline]
    pub(crate) fn on_answered(&mut self, took: Nanos) {
        self.histograms.call.record(took);
    }

    /// The user gets the end of a call.
    #[inline]
    pub(crate) fn on_completion(&mut self) {
        self.counters.completions += 1;
    }
}

/// Requests of the peers.
impl Stats {
    #[inline]
    pub(crate) fn on_request_accepted(&mut self) {
        self.counters.requests_received += 1;
    }

    pub(crate) fn on_credit_return(&mut self) {
        self.counters.credit_returns += 1;
    }

    pub(crate) fn on_response_resent(&mut self) {
        self.counters.responses_resent += 1;
    }

    /// A request is refused because this side drains.
    pub(crate) fn on_turned_away(&mut self) {
        self.counters.turned_away += 1;
    }

    pub(crate) fn on_unanswered(&mut self) {
        self.counters.unanswered += 1;
    }

    pub(crate) fn on_broken_law(&mut self) {
        self.counters.broken_laws += 1;
    }

    pub(crate) fn on_panic(&mut self) {
        self.counters.handler_panics += 1;
    }

    /// Records `answers` answers whose requests all stayed in the server for this time.
    #[inline]
    pub(crate) fn on_residence(&mut self, stay: Nanos, answers: usize) {
        self.histograms.residence.record_many(stay, answers as u64);
    }
}

/// Round trips.
impl Stats {
    /// The round trip of a request with one packet was measured.
    #[inline]
    pub(crate) fn on_rtt(&mut self, rtt: Nanos) {
        self.on_rtt_of_part(rtt);
        self.histograms.rtt.record(rtt);
    }

    /// The round trip of a packet of a large message was measured.
    pub(crate) fn on_rtt_of_part(&mut self, rtt: Nanos) {
        self.counters.rtt_samples += 1;
        self.rtts.note(rtt);
    }

    /// A round trip does not count, because this endpoint had not run meanwhile (rule S10).
    pub(crate) fn on_rtt_away(&mut self) {
        self.counters.rtt_away += 1;
    }

    /// Counts an answer that reported a congestion mark, or was marked itself.
    #[inline]
    pub(crate) fn on_congestion_mark(&mut self) {
        self.counters.congestion_marks += 1;
    }
}

/// Measured round trips. They are kept from the first call of [`Self::take`] on.
#[derive(Debug, Default)]
struct RttLog(Option<Vec<Nanos>>);

impl RttLog {
    /// A round trip was measured.
    #[inline]
    fn note(&mut self, rtt: Nanos) {
        if let Some(samples) = &mut self.0 {
            samples.push(rtt);
        }
    }

    /// Passes on the kept round trips. From now on, further ones are kept.
    fn take(&mut self, each: impl FnMut(Nanos)) {
        self.0.get_or_insert_default().drain(..).for_each(each);
    }
}

#[cfg(test)]
mod tests;
