//! Counts the packets of an endpoint whose data was copied into packets of the device, by cause.
//!
//! Only long packets whose data was copied are counted one by one. The number of the other copied
//! packets is the number of sent packets, less these and the packets whose data was lent. So short
//! packets cost nothing here. Owned by `leaving`.

/// Names of the counters: of packets that are not counted one by one, then of each [`Cause`].
pub(crate) const COPIES: [&str; 6] = [
    "tx_copied_off",
    "tx_copied_device",
    "tx_copied_short",
    "tx_copied_no_neighbour",
    "tx_copied_memory",
    "tx_copied_limit",
];

const CAUSES: usize = 3;
const OTHERS: usize = COPIES.len() - CAUSES;

/// Why the data of a packet was copied although it is long enough to be lent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub(crate) enum Cause {
    /// The packet does not leave through the device now: its neighbour has not answered, or its
    /// peer is an endpoint of the same device.
    NoNeighbour,
    /// The device cannot read the memory: it is the program's own, or another device's.
    Memory,
    /// The device has not given back enough of the earlier packets.
    Limit,
}

const _: () = assert!(Cause::Limit as usize + 1 == CAUSES);

/// Why an endpoint copies the data of other packets.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub(crate) enum Other {
    /// The option `lend` is not given.
    Off,
    /// The device cannot read msgbufs.
    Device,
    /// They are shorter than the option `lend` says.
    Short,
}

/// The counters.
#[derive(Debug)]
pub(crate) struct Copies {
    other: Other,
    long: [u64; CAUSES],
    lent: u64,
}

impl Copies {
    pub(crate) fn new(other: Other) -> Self {
        Self {
            other,
            long: [0; CAUSES],
            lent: 0,
        }
    }

    /// Notes a long packet whose data was copied.
    pub(crate) fn on_copied(&mut self, why: Cause) {
        self.long[why as usize] += 1;
    }

    /// Notes packets that have left with lent data.
    pub(crate) fn on_lent(&mut self, count: u64) {
        self.lent += count;
    }

    /// Shows the counters of an endpoint that has sent this number of packets.
    pub(crate) fn show(&self, sent: u64, show: &mut dyn FnMut(&'static str, u64)) {
        // A long packet is counted before it leaves, and it may be dropped instead.
        let known = self.lent + self.long.iter().sum::<u64>();
        let mut others = [0; OTHERS];
        others[self.other as usize] = sent.saturating_sub(known);
        let counts = others.into_iter().chain(self.long);
        COPIES
            .into_iter()
            .zip(counts)
            .for_each(|(name, count)| show(name, count));
    }
}

#[cfg(test)]
mod tests;
