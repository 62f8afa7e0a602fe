//! Frames in a form for Wireshark: a pcap file with times in nanoseconds. The simulator's frames
//! have no headers of lower layers, so each gets an Ethernet, an IP and a UDP header with its
//! sender and its receiver: endpoint 258 has the address 10.0.1.2. A frame with a congestion mark
//! has it in the IP header.

use std::cell::Cell;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::rc::Rc;

use dunlin_sim::world::net::{self, Captured};

use crate::commands::headers;

/// Times are in nanoseconds.
const MAGIC: u32 = 0xa1b2_3c4d;
/// The most bytes of a frame that are kept: more than any frame has.
const LONGEST: u32 = 65_535;

/// A file to which frames are written.
pub(crate) struct Capture {
    out: BufWriter<File>,
    failed: Rc<Cell<bool>>,
}

impl Capture {
    /// # Errors
    /// The file cannot be written.
    pub(super) fn begin(file: File) -> anyhow::Result<Self> {
        let mut out = BufWriter::new(file);
        let mut header = Vec::new();
        header.extend_from_slice(&MAGIC.to_le_bytes());
        header.extend_from_slice(&[2, 0, 4, 0]);
        header.extend_from_slice(&[0; 8]);
        header.extend_from_slice(&LONGEST.to_le_bytes());
        header.extend_from_slice(&u32::from(headers::ETHERNET).to_le_bytes());
        out.write_all(&header)?;
        let failed = Rc::default();
        Ok(Self { out, failed })
    }

    /// A flag that becomes true when a frame could not be written.
    pub(super) fn failed(&self) -> Rc<Cell<bool>> {
        Rc::clone(&self.failed)
    }

    /// A function that the network calls for each frame.
    pub(super) fn into_tap(mut self) -> net::Capture {
        net::Capture::new(move |frame| {
            if self.out.write_all(&record(frame)).is_err() {
                self.failed.set(true);
            }
        })
    }
}

fn record(frame: &Captured<'_>) -> Vec<u8> {
    let len = headers::LEN + frame.bytes.len();
    let mut out = Vec::with_capacity(16 + len);
    let (seconds, nanos) = (frame.at.0 / 1_000_000_000, frame.at.0 % 1_000_000_000);
    for word in [seconds, nanos, len as u64, len as u64] {
        out.extend_from_slice(&u32::try_from(word).unwrap_or(u32::MAX).to_le_bytes());
    }
    let [from, to] = [frame.from.0, frame.to.0].map(address);
    let headers = headers::of(from, to, frame.bytes.len(), frame.congestion);
    out.extend_from_slice(&headers);
    out.extend_from_slice(frame.bytes);
    out
}

/// The address of an endpoint: 10.0.0.0 plus its number.
fn address(port: usize) -> [u8; 4] {
    let [_, a, b, c] = u32::try_from(port).unwrap_or(u32::MAX).to_be_bytes();
    [10, a, b, c]
}

#[cfg(test)]
mod tests;
