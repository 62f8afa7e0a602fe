//! The endpoint's counters: plain additions on the data path, and a named reason for every drop.

/// The events at an endpoint since its start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Frames that the transport delivered.
    pub rx_frames: u64,
    /// Packets found in those frames, valid or not.
    pub rx_packets: u64,
    /// Packets given to the transport.
    pub tx_packets: u64,
    /// Packets that took the common path. The field stands between the two counters of sent
    /// packets: a compiler would add to neighbours with one operation, which takes more
    /// instructions.
    pub rx_plain: u64,
    /// Packets that were staged in a lane.
    pub tx_staged: u64,
    /// Packets that are short enough for the lane but were queued: the lane was full, or they
    /// followed longer packets, or they left again.
    pub tx_unstaged: u64,
    /// Packets that looked ordinary but took the general path: their session, slot, call or request
    /// was in an unusual state.
    pub rx_declined: u64,
    /// Requests that this side issued and that got a slot.
    pub requests_sent: u64,
    /// Requests that this side accepted for the first time.
    pub requests_received: u64,
    /// Sent requests that have more than one packet.
    pub large_sent: u64,
    /// Calls that ended, with or without a response.
    pub completions: u64,
    /// Packets of requests that were sent again, and packets of responses that were asked for
    /// again.
    pub retransmissions: u64,
    /// Probes of requests that the server has accepted.
    pub probes: u64,
    /// CANCEL packets, first and later ones.
    pub cancels: u64,
    /// Credit returns sent: for duplicates, slow handlers and probes.
    pub credit_returns: u64,
    /// Responses sent again because the client asked again.
    pub responses_resent: u64,
    /// Handlers and continuations that panicked. Futures count if they panicked on the arrival of a
    /// packet.
    pub handler_panics: u64,
    /// Requests that ended because their handler gave no answer.
    pub unanswered: u64,
    /// Requests that were refused because this side was draining.
    pub turned_away: u64,
    /// Calls that waited for a slot or a credit.
    pub stalls: u64,
    /// Packets that waited in the timing wheel.
    pub paced: u64,
    /// Answers that reported a congestion mark, or were marked themselves.
    pub congestion_marks: u64,
    /// Round-trip samples taken.
    pub rtt_samples: u64,
    /// Round-trip samples that were dropped because this endpoint had not run meanwhile.
    pub rtt_away: u64,
    /// Laws of the endpoint that were found broken, which ended its sessions.
    pub broken_laws: u64,
    /// Questions to peers, over the control plane, about calls without progress (rule C11).
    pub inquiries: u64,
    /// Dropped packets, by reason.
    pub drops: Drops,
}

impl Counters {
    /// Names of the counters that depend on the path that packets take. Two runs with the same
    /// behaviour may differ in these.
    pub const OF_PATHS: &[&str] = &["tx_staged", "tx_unstaged", "rx_plain", "rx_declined"];

    /// Every counter with its name, in order.
    pub const fn named(&self) -> [(&'static str, u64); 26] {
        let Self {
            rx_frames,
            rx_packets,
            tx_packets,
            tx_staged,
            tx_unstaged,
            rx_plain,
            rx_declined,
            requests_sent,
            requests_received,
            large_sent,
            completions,
            retransmissions,
            probes,
            cancels,
            credit_returns,
            responses_resent,
            handler_panics,
            unanswered,
            turned_away,
            stalls,
            paced,
            congestion_marks,
            rtt_samples,
            rtt_away,
            broken_laws,
            inquiries,
            drops: _,
        } = *self;
        [
            ("rx_frames", rx_frames),
            ("rx_packets", rx_packets),
            ("tx_packets", tx_packets),
            ("tx_staged", tx_staged),
            ("tx_unstaged", tx_unstaged),
            ("rx_plain", rx_plain),
            ("rx_declined", rx_declined),
            ("requests_sent", requests_sent),
            ("requests_received", requests_received),
            ("large_sent", large_sent),
            ("completions", completions),
            ("retransmissions", retransmissions),
            ("probes", probes),
            ("cancels", cancels),
            ("credit_returns", credit_returns),
            ("responses_resent", responses_resent),
            ("handler_panics", handler_panics),
            ("unanswered", unanswered),
            ("turned_away", turned_away),
            ("stalls", stalls),
            ("paced", paced),
            ("congestion_marks", congestion_marks),
            ("rtt_samples", rtt_samples),
            ("rtt_away", rtt_away),
            ("broken_laws", broken_laws),
            ("inquiries", inquiries),
        ]
    }
}

/// Names every reason for a drop once: its variant, its counter, and what it means.
macro_rules! drops {
    ($($(#[$doc:meta])* $field:ident = $reason:ident,)*) => {
        /// Packets that were dropped without an answer (rule W12), by reason.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub struct Drops {
            $($(#[$doc])* pub $field: u64,)*
        }

        /// Why a packet is dropped.
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        pub(crate) enum DropReason {
            $($(#[$doc])* $reason,)*
        }

        impl Drops {
            /// Every counter with its name, in order.
            pub const fn named(&self) -> [(&'static str, u64); [$(stringify!($field)),*].len()] {
                [$((stringify!($field), self.$field)),*]
            }

            /// All drops together.
            pub const fn total(&self) -> u64 {
                0 $(+ self.$field)*
            }

            /// Counts one drop.
            #[inline]
            pub(crate) const fn count(&mut self, reason: DropReason) {
                match reason {
                    $(DropReason::$reason => self.$field += 1,)*
                }
            }
        }
    };
}

drops! {
    /// Shorter than header and extension.
    short = Short,
    /// Another version.
    version = Version,
    /// Unknown packet type.
    kind = Kind,
    /// Unknown flag.
    flags = Flags,
    /// A field that must be 0 was not, or a count was above its limit.
    field = Field,
    /// There is no session with this number, or it is not yet connected.
    session = Session,
    /// Wrong token.
    token = Token,
    /// More or less data than the header states, or more than the session's limit.
    size = Size,
    /// No packet with this number in the message.
    packet_number = PacketNumber,
    /// The request ended earlier: its number is older than the slot's latest.
    stale = Stale,
    /// The slot has not reached this request number.
    future = Future,
    /// The slot's handler still runs, and the packet is for the next request.
    busy = Busy,
    /// An answer that matches no pending request.
    unexpected = Unexpected,
    /// Data in shared memory that its sender withdrew before the receiver copied it.
    revoked = Revoked,
}
