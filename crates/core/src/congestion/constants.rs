//! Every constant of every congestion control scheme, with its source. No other file of the crate
//! has a number that affects the rate at which a session sends.
//!
//! TIMELY: Mittal et al., SIGCOMM 2015, §4.3 and Table 1. Patched TIMELY: Zhu et al., CoNEXT 2016,
//! §4.3. DCQCN: Zhu et al., SIGCOMM 2015, §3.1 and §5. Swift: Kumar et al., SIGCOMM 2020, §3. eRPC:
//! Kalia et al., NSDI 2019, §5.2. Where a value is "ours", the comment says why the value in the
//! papers does not work.

use crate::time::Nanos;

/// No scheme goes below the line rate divided by this (design §7). At 25 Gbit/s that is a packet of
/// 1 KB every 1.3 ms, so 1000 senders at the least rate use only a quarter of the link.
pub(crate) const LEAST_RATE_DIVISOR: f64 = 4096.0;

/// The server side's estimate of its NIC's queue. All values are ours.
pub(crate) mod egress {
    use super::Nanos;

    /// A frame's bytes on the cable in addition to its packet: Ethernet with preamble and gap,
    /// IPv4, UDP.
    pub(crate) const FRAME_BYTES: u32 = 66;
    /// Packets of full size that may wait in the NIC. The NIC never idles if the endpoint looks
    /// again before they have left; more of them would delay the CRs that follow.
    pub(crate) const AHEAD_PACKETS: u64 = 2;
    /// The longest delay that the endpoint makes up for when it comes late. More would be a burst
    /// that fills the NIC.
    pub(crate) const MOST_LATE: Nanos = Nanos::from_micros(20);
}

/// Timely. `docs/decisions/congestion-control.md` compares these numbers with those of the paper
/// and of eRPC's code.
pub(crate) mod timely {
    use super::Nanos;

    /// T_low: the other thresholds are fractions or multiples of it. TIMELY §4.3 and eRPC §5.2.2:
    /// 50 µs.
    pub(crate) const T_LOW: Nanos = Nanos::from_micros(50);
    /// T_low is at least this multiple of the smallest round trip (design §7), for networks where a
    /// packet takes 50 µs even without a queue.
    pub(crate) const T_LOW_ROUND_TRIPS: u64 = 4;
    /// The gradient counts from this fraction of T_low on (numerator, denominator); below it the
    /// rate only grows. Ours: TIMELY and eRPC use T_low itself. With T_low, the queue of a full
    /// link settles just below it: half of the packets of fifty senders waited for 41 µs.
    pub(crate) const CROWDED_FROM: (u64, u64) = (18, 25);
    /// T_high as a multiple of T_low: above it the rate falls, whatever the gradient. TIMELY §4.3
    /// has 500 µs and 50 µs.
    pub(crate) const T_HIGH_IN_T_LOW: u64 = 10;
    /// δ: the additive step, as a fraction of the line rate: 3 Mbit/s of 25 Gbit/s. TIMELY §4.3 has
    /// 10 Mbit/s of 10 Gbit/s for each segment of 16 KB and more. Ours: one step per round trip,
    /// small enough for the gradient to undo the steps of a hundred senders.
    pub(crate) const STEP: f64 = 1.0 / 8000.0;
    /// β: multiplicative decrease. TIMELY §4.3: 0.8.
    pub(crate) const BETA: f64 = 0.8;
    /// α: weight of a new round-trip difference. Patched TIMELY analyses TIMELY with 0.875.
    pub(crate) const ALPHA: f64 = 0.875;
    /// N: after this many round trips in a row that did not rise, the increase is hyperactive.
    /// TIMELY §4.3: five.
    pub(crate) const HYPER_AFTER: u32 = 5;
    /// The hyperactive step, in ordinary steps. TIMELY §4.3: five.
    pub(crate) const HYPER_STEPS: f64 = 5.0;
    /// In an empty network the hyperactive step is at least this part of the rate. Ours: with δ
    /// alone, a session that one spike has reduced to a fifth of the line rate needs 1300 round
    /// trips to recover.
    pub(crate) const HYPER_PART: f64 = 1.0 / 16.0;
    /// The network counts as empty if the round trip is below this part of T_low. Ours: when the
    /// queue is about to reach T_low, only steps as small as δ keep the senders from exceeding it
    /// together.
    pub(crate) const EMPTY_BELOW: f64 = 0.4;
    /// A timeout takes this part of the rate. Ours: TIMELY assumes a network without loss.
    pub(crate) const TIMEOUT_CUT: f64 = 0.5;
}

/// Patched TIMELY, which applies between T_low, its reference round trip, and T_high. Outside this
/// range, Timely applies. The β of 0.8 above T_high is ours: with 0.008, thirty senders that begin
/// at line rate would need 100 round trips to slow down.
pub(crate) mod patched_timely {
    /// β. Patched TIMELY §4.3: 0.008. With δ = C / 8000, the round trip of n senders settles at
    /// T_low times 1 + n / 64.
    pub(crate) const BETA: f64 = 0.008;
    /// The weight of the step down is a half plus the gradient times this, limited to the range
    /// from 0 to 1. Patched TIMELY §4.3: 2.
    pub(crate) const SLOPE: f64 = 2.0;
}

/// DCQCN.
pub(crate) mod dcqcn {
    use super::Nanos;

    /// g: weight of a new mark in α. DCQCN §5.2: 1/256.
    pub(crate) const G: f64 = 1.0 / 256.0;
    /// At most one decrease in this time, because the paper's receiver sends at most one CNP per
    /// interval. DCQCN §3.1: 50 µs.
    pub(crate) const CNP_INTERVAL: Nanos = Nanos::from_micros(50);
    /// K: α falls after this time without a mark. DCQCN §3.1: longer than the interval; 55 µs.
    pub(crate) const ALPHA_TIMER: Nanos = Nanos::from_micros(55);
    /// T: the timer of the rate increase. DCQCN §5.2: 55 µs.
    pub(crate) const RATE_TIMER: Nanos = Nanos::from_micros(55);
    /// B: the byte counter of the rate increase. DCQCN §5.2: 10 MB.
    pub(crate) const BYTE_COUNTER: u64 = 10_000_000;
    /// F: steps of fast recovery. DCQCN §3.1: 5.
    pub(crate) const FAST_STEPS: u32 = 5;
    /// R_AI as a fraction of the line rate: 10 Mbit/s of 25 Gbit/s. DCQCN §5.2 has 40 Mbit/s of 40
    /// Gbit/s, for up to 20 senders; NICs have 5 Mbit/s by default. With that default, thirty
    /// senders use 0.78 of 10 Gb/s in the 20 ms after their first burst; with our value, 0.83.
    pub(crate) const STEP: f64 = 1.0 / 2500.0;
    /// R_HAI as a multiple of R_AI. DCQCN leaves it open; the factor of ten is QCN's (IEEE
    /// 802.1Qau).
    pub(crate) const HYPER_STEPS: f64 = 10.0;
    /// A timeout takes this part of the rate. Ours: DCQCN assumes a network without loss.
    pub(crate) const TIMEOUT_CUT: f64 = 0.5;
}

/// Swift. Unless a comment names a source, the numbers are ours, chosen with the sweep in
/// `crates/sim/src/scenario/sweep.rs`; `docs/decisions/congestion-control.md` has its results.
pub(crate) mod swift {
    use super::Nanos;

    /// The first window in packets. Until the first sign of a queue, each packet that arrives adds
    /// one. With a larger first window, the first packets of a hundred senders that begin together
    /// would not fit into a small switch.
    pub(crate) const FIRST_WINDOW: f64 = 1.0;
    /// The start is over when the queue reaches this fraction of the target: by the time the sender
    /// sees such a queue, twice as many packets are on their way.
    pub(crate) const START_UNTIL: f64 = 0.5;
    /// The smallest window in packets (design §7).
    pub(crate) const LEAST_WINDOW: f64 = 1.0 / 64.0;
    /// The target queue of n senders is this times n to the power of 3/4, in packets. It counts
    /// packets, not time, because 25 µs (Swift §5) at 100 Gb/s are more packets than a small switch
    /// holds. The power is near 1, so that a sender that waits in two queues keeps half of its
    /// share. It is not 1, because then the queue would be too short for two senders, or too long
    /// for thirty.
    pub(crate) const QUEUE: f64 = 3.2;
    /// Beyond this number of senders, the power is 1/4: a switch with 100 KB, shared as Choudhury
    /// and Hahne propose, has room for only 81 packets.
    pub(crate) const STEEP_UNTIL: f64 = 38.0;
    /// For a window w below one packet, the target queue is longer by this number of packets times
    /// 1/√w − 1 (Swift §3.2). This makes small windows equal.
    pub(crate) const SMALL_QUEUE: f64 = 45.0;
    /// If the round trip of the empty network was measured and not declared, a round trip indicates
    /// a queue only if it exceeds the smallest one by this. Swift §5: 25 µs.
    pub(crate) const SLACK: Nanos = Nanos::from_micros(25);
    /// In each round trip, the window moves this part of the way to the value at which the delay
    /// would be the target. The effect of a change becomes visible a round trip later, so the
    /// window oscillates if this is more than a half.
    pub(crate) const GAIN: f64 = 0.4;
    /// The gain for each answer to a window of nearly one packet. Many such windows share the
    /// queue, and with larger steps the queue would swing between empty and full: at 25 Gb/s with
    /// 100 KB, three times this gain loses 0.9 %. A smaller window gets fewer answers, so its gain
    /// is this one divided by the square root of the window. Otherwise, a thousand windows of 0.07
    /// to 0.23 packets would need more than 25 ms to become equal.
    pub(crate) const SMALL_GAIN: f64 = 0.03;
    /// The number of samples for which a window below one packet extrapolates its last two delays.
    /// It is small, because the difference of two delays is mostly noise.
    pub(crate) const FORESIGHT: f64 = 2.0;
    /// Largest part of the window that one step may take.
    pub(crate) const MOST_STEP: f64 = 0.5;
    /// The network counts as empty while the queue is less than this part of the target.
    pub(crate) const EMPTY_BELOW: f64 = 0.25;
    /// In an empty network, the window grows by at least this part in each round trip.
    pub(crate) const EMPTY_GAIN: f64 = 0.1;
    /// Windows of fewer packets than this grow more slowly. Otherwise, they would take bandwidth
    /// from windows below one packet, which notice a short queue less often.
    pub(crate) const EAGER_FROM: f64 = 4.0;
    /// If the delay is beyond this multiple of the target, a window below one packet decreases as
    /// in Swift §3.1.
    pub(crate) const FAR_ABOVE: f64 = 4.0;
    /// β: weight of the part of the delay above the target in a decrease. Swift §3.1: 0.8.
    pub(crate) const BETA: f64 = 0.8;
    /// max_mdf: most of the window that one decrease takes. Swift §3.1 has a half; but then random
    /// losses make the rates of 150 senders uneven: Jain's index is 0.82 at 10 Gb/s, and at least
    /// 0.95 with our value.
    pub(crate) const MOST_CUT: f64 = 0.3;
    /// A loss costs at least this fraction of [`MOST_CUT`], however short the queue is.
    pub(crate) const LEAST_LOSS_CUT: f64 = 0.1;
    /// This number of timeouts in a row brings the window to its minimum (Swift §3.1,
    /// RETX_RESET_THRESHOLD).
    pub(crate) const RESET_AFTER: u32 = 5;
    /// Added to the rounding of a window in each round trip. This is the fractional part of the
    /// golden ratio, whose multiples are spread evenly.
    pub(crate) const TURN: f64 = 0.618_033_988_749_895;
}
