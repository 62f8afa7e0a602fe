//! Counters of frames, by their fate. Counted by `path`.

/// Counts of all frames of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NetCounters {
    /// Frames that left the memory of their hosts, including those that the NIC then dropped.
    pub sent: u64,
    /// Frames that reached an RX queue, including second copies and hostile ones.
    pub delivered: u64,
    /// Bytes of the delivered frames that came from msgbufs.
    pub delivered_bytes: u64,
    /// Second copies.
    pub duplicated: u64,
    /// Frames delayed so that later ones could overtake them.
    pub reordered: u64,
    /// Frames whose damage no checksum noticed.
    pub damaged: u64,
    /// Frames that an attacker put on the wire.
    pub hostile: u64,
    /// Frames lost at the loss rate or in a burst of losses.
    pub lost: u64,
    /// Frames dropped for a wrong checksum.
    pub checksum: u64,
    /// Frames dropped at a cable that is down or a direction that is blocked.
    pub cut: u64,
    /// Frames dropped by a switch whose memory was full, or whose queue had used up its share of
    /// the memory.
    pub queue_full: u64,
    /// Frames dropped by a NIC whose memory was full.
    pub nic_full: u64,
    /// Frames dropped by a full RX queue.
    pub rx_full: u64,
    /// Frames for a port where no process listens, for a host without its cable, or for a peer that
    /// is gone.
    pub no_process: u64,
}

impl NetCounters {
    /// Counts since `earlier`.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        Self {
            sent: self.sent - earlier.sent,
            delivered: self.delivered - earlier.delivered,
            delivered_bytes: self.delivered_bytes - earlier.delivered_bytes,
            duplicated: self.duplicated - earlier.duplicated,
            reordered: self.reordered - earlier.reordered,
            damaged: self.damaged - earlier.damaged,
            hostile: self.hostile - earlier.hostile,
            lost: self.lost - earlier.lost,
            checksum: self.checksum - earlier.checksum,
            cut: self.cut - earlier.cut,
            queue_full: self.queue_full - earlier.queue_full,
            nic_full: self.nic_full - earlier.nic_full,
            rx_full: self.rx_full - earlier.rx_full,
            no_process: self.no_process - earlier.no_process,
        }
    }
}
