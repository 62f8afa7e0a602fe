//! A device alone: bursts of packets, without endpoints, neighbours and checks. The baselines of
//! `dunlin bench` measure it.
//!
//! Invariant: the thread of `keeper` does not know the device, so only the caller uses its queues.

use std::convert::Infallible;
use std::io;

use crate::device::{BATCH, Parts, Received, TxPackets};
use crate::open::{device_of, site_of};

/// A device that one thread uses.
#[derive(Debug)]
pub struct Bare {
    parts: Parts,
    shown: Received,
    /// Packets to send, and empty ones.
    packets: TxPackets,
}

impl Bare {
    /// Opens a device, which no endpoint of this process can use after that. The text has the form
    /// of [`Site`](crate::Site), but its addresses have no effect.
    ///
    /// # Errors
    /// As [`Dpdk::open`](crate::Dpdk::open).
    pub fn open(device: &str) -> io::Result<Self> {
        let parts = device_of(&site_of(device)?)?;
        Ok(Self {
            packets: parts.pool.tx_packets(),
            parts,
            shown: Received::default(),
        })
    }

    /// Shows up to `most` received packets to `take`. Returns their number, at most 32.
    #[inline]
    pub fn receive(&mut self, most: u32, mut take: impl FnMut(&[u8])) -> u32 {
        let most = usize::try_from(most).map_or(BATCH, |most| most.min(BATCH));
        let count = self.parts.rx.receive(&mut self.shown, most);
        self.shown.sift(
            |bytes| {
                take(bytes);
                Ok::<_, Infallible>((bytes, false))
            },
            |_, never| match never {},
        );
        self.parts.pool.free(&mut self.shown);
        u32::try_from(count).expect("at most 32")
    }

    /// Lets `write` fill a packet of `len` bytes, at most the device's longest frame, which leaves
    /// with the next [`Self::send`]. False if there is no empty packet, or too many packets wait.
    #[inline]
    pub fn push(&mut self, len: usize, write: impl FnOnce(&mut [u8])) -> bool {
        if self.packets.is_full() && !self.send() {
            return false;
        }
        self.parts.pool.refill(&mut self.packets, 1);
        let Some(mut packet) = self.packets.take_empty() else {
            return false;
        };
        packet.truncate(len);
        write(packet.bytes_mut());
        self.packets.push(packet);
        true
    }

    /// Hands the packets to the device. False if it does not take all of them; the others wait.
    #[inline]
    pub fn send(&mut self) -> bool {
        if self.packets.len() > 0 {
            self.parts.tx.send(&mut self.packets, None);
        }
        self.packets.len() == 0
    }
}
