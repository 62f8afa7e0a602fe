//! The counters of a transport: the same names for every transport, so that one report reads them
//! all.
//!
//! Each half fills its own fields and leaves the others 0; [`Counters::plus`] adds them up.

/// Plain numbers since the endpoint was opened. They wrap after centuries.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Counters {
    /// Packets handed to the ring or the kernel.
    pub tx_packets: u64,
    /// Frames made visible by `burst`.
    pub rx_packets: u64,
    /// Bytes of `tx_packets`, as the endpoint sees them. The two fields are not neighbours: a
    /// compiler would add to both with one operation, which takes more instructions.
    pub tx_bytes: u64,
    /// Bytes of `rx_packets`.
    pub rx_bytes: u64,
    /// Dropped because the peer's ring or the socket's queue was full.
    pub tx_dropped_full: u64,
    /// Dropped because the `BufRef` was revoked: a bug of the endpoint.
    pub tx_dropped_stale: u64,
    /// Dropped because the peer is not known, or has been removed.
    pub tx_dropped_peer: u64,
    /// Dropped because the packet is larger than the transport carries: a bug of the endpoint.
    pub tx_dropped_size: u64,
    /// Dropped because the device or the kernel reported an error.
    pub tx_dropped_error: u64,
    /// Frames lost because the receive queue overflowed, if the transport can know.
    pub rx_overflow: u64,
    /// Impossible contents (a ring's word or position, a frame's length): the packet was dropped,
    /// or the ring closed.
    pub rx_corrupt: u64,
    /// Packets by reference: the sender named their data, and the receiver copies it.
    pub tx_references: u64,
    /// Packets by reference whose data the sender copied first, because it lay in memory that
    /// cannot be shared.
    pub tx_copied: u64,
    /// Packets by reference that were dropped because their memory could not be mapped.
    pub rx_unmapped: u64,
    /// Bytes of peers' memory that are mapped now, for data by reference.
    pub rx_mapped_bytes: u64,
    /// Times that this endpoint woke a sleeping peer.
    pub wakeups_sent: u64,
    /// Times that a peer woke this endpoint.
    pub wakeups_received: u64,
    /// System calls that moved packets or wake-ups.
    pub syscalls: u64,
}

impl Counters {
    /// Every field with its name.
    pub const fn named(&self) -> [(&'static str, u64); 18] {
        let Self {
            tx_packets,
            tx_bytes,
            tx_dropped_full,
            tx_dropped_stale,
            tx_dropped_peer,
            tx_dropped_size,
            tx_dropped_error,
            rx_packets,
            rx_bytes,
            rx_overflow,
            rx_corrupt,
            tx_references,
            tx_copied,
            rx_unmapped,
            rx_mapped_bytes,
            wakeups_sent,
            wakeups_received,
            syscalls,
        } = *self;
        [
            ("tx_packets", tx_packets),
            ("tx_bytes", tx_bytes),
            ("tx_dropped_full", tx_dropped_full),
            ("tx_dropped_stale", tx_dropped_stale),
            ("tx_dropped_peer", tx_dropped_peer),
            ("tx_dropped_size", tx_dropped_size),
            ("tx_dropped_error", tx_dropped_error),
            ("rx_packets", rx_packets),
            ("rx_bytes", rx_bytes),
            ("rx_overflow", rx_overflow),
            ("rx_corrupt", rx_corrupt),
            ("tx_references", tx_references),
            ("tx_copied", tx_copied),
            ("rx_unmapped", rx_unmapped),
            ("rx_mapped_bytes", rx_mapped_bytes),
            ("wakeups_sent", wakeups_sent),
            ("wakeups_received", wakeups_received),
            ("syscalls", syscalls),
        ]
    }

    /// Both halves together.
    #[must_use]
    pub const fn plus(&self, other: &Self) -> Self {
        Self {
            tx_packets: self.tx_packets + other.tx_packets,
            tx_bytes: self.tx_bytes + other.tx_bytes,
            tx_dropped_full: self.tx_dropped_full + other.tx_dropped_full,
            tx_dropped_stale: self.tx_dropped_stale + other.tx_dropped_stale,
            tx_dropped_peer: self.tx_dropped_peer + other.tx_dropped_peer,
            tx_dropped_size: self.tx_dropped_size + other.tx_dropped_size,
            tx_dropped_error: self.tx_dropped_error + other.tx_dropped_error,
            rx_packets: self.rx_packets + other.rx_packets,
            rx_bytes: self.rx_bytes + other.rx_bytes,
            rx_overflow: self.rx_overflow + other.rx_overflow,
            rx_corrupt: self.rx_corrupt + other.rx_corrupt,
            tx_references: self.tx_references + other.tx_references,
            tx_copied: self.tx_copied + other.tx_copied,
            rx_unmapped: self.rx_unmapped + other.rx_unmapped,
            rx_mapped_bytes: self.rx_mapped_bytes + other.rx_mapped_bytes,
            wakeups_sent: self.wakeups_sent + other.wakeups_sent,
            wakeups_received: self.wakeups_received + other.wakeups_received,
            syscalls: self.syscalls + other.syscalls,
        }
    }
}
