//! The endpoint's counters: plain adds on the data path, one named reason for every drop.

/// What happened at an endpoint since its start. All are numbers of events.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Frames that the transport delivered.
    pub rx_frames: u64,
    /// Packets found in them, valid or not.
    pub rx_packets: u64,
    /// Packets given to the transport.
    pub tx_packets: u64,
    /// Requests that this side issued and that got a slot.
    pub requests_sent: u64,
    /// Requests that this side accepted for the first time.
    pub requests_received: u64,
    /// Those of them that have more than one packet.
    pub large_sent: u64,
    /// Calls that ended, in whatever way.
    pub completions: u64,
    /// Packets of requests sent again, and packets of responses asked for again.
    pub retransmissions: u64,
    /// Probes of requests that the server has accepted.
    pub probes: u64,
    /// CANCEL packets, first and later ones.
    pub cancels: u64,
    /// Credit returns sent: for duplicates, slow handlers and probes.
    pub credit_returns: u64,
    /// Responses sent again because the client asked again.
    pub responses_resent: u64,
    /// Handlers that panicked.
    pub handler_panics: u64,
    /// Requests that ended because their handler gave no answer.
    pub unanswered: u64,
    /// Calls that waited for a slot or a credit.
    pub stalls: u64,
    /// Packets that waited in the timing wheel.
    pub paced: u64,
    /// Answers that told of congestion marks, or bore one.
    pub congestion_marks: u64,
    /// Round-trip samples taken.
    pub rtt_samples: u64,
    /// Round-trip samples dropped because this endpoint had been away.
    pub rtt_away: u64,
    /// What was dropped, by reason.
    pub drops: Drops,
}

impl Counters {
    /// Every field with its name, in the order above.
    pub const fn named(&self) -> [(&'static str, u64); 19] {
        let Self {
            rx_frames,
            rx_packets,
            tx_packets,
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
            stalls,
            paced,
            congestion_marks,
            rtt_samples,
            rtt_away,
            drops: _,
        } = *self;
        [
            ("rx_frames", rx_frames),
            ("rx_packets", rx_packets),
            ("tx_packets", tx_packets),
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
            ("stalls", stalls),
            ("paced", paced),
            ("congestion_marks", congestion_marks),
            ("rtt_samples", rtt_samples),
            ("rtt_away", rtt_away),
        ]
    }
}

/// Packets that were dropped and not answered (rule W12), by reason.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Drops {
    /// Shorter than header and extension.
    pub short: u64,
    /// Another version.
    pub version: u64,
    /// Unknown packet type.
    pub kind: u64,
    /// Unknown flag.
    pub flags: u64,
    /// A field that must be 0 was not, or a count was above its limit.
    pub field: u64,
    /// No session with this number, or not yet connected.
    pub session: u64,
    /// Wrong token.
    pub token: u64,
    /// More data than the header says, less, or more than the session's limit.
    pub size: u64,
    /// No packet with this number in the message.
    pub packet_number: u64,
    /// A request that was over before: older than the slot's last.
    pub stale: u64,
    /// A request number that the slot has not reached.
    pub future: u64,
    /// The slot's handler still runs, and the packet is for the next request.
    pub busy: u64,
    /// An answer that fits no pending request.
    pub unexpected: u64,
    /// Data in shared memory that its sender took back before it was copied.
    pub revoked: u64,
}

impl Drops {
    /// Every field with its name, in the order above.
    pub const fn named(&self) -> [(&'static str, u64); 14] {
        let Self {
            short,
            version,
            kind,
            flags,
            field,
            session,
            token,
            size,
            packet_number,
            stale,
            future,
            busy,
            unexpected,
            revoked,
        } = *self;
        [
            ("short", short),
            ("version", version),
            ("kind", kind),
            ("flags", flags),
            ("field", field),
            ("session", session),
            ("token", token),
            ("size", size),
            ("packet_number", packet_number),
            ("stale", stale),
            ("future", future),
            ("busy", busy),
            ("unexpected", unexpected),
            ("revoked", revoked),
        ]
    }

    /// All drops together.
    pub const fn total(&self) -> u64 {
        self.short
            + self.version
            + self.kind
            + self.flags
            + self.field
            + self.session
            + self.token
            + self.size
            + self.packet_number
            + self.stale
            + self.future
            + self.busy
            + self.unexpected
            + self.revoked
    }
}
