//! Data by reference: the sender's regions that the receiver of a channel has mapped.
//!
//! Before the first packet that names a region, the sender sends the region's descriptor over the
//! wake-up line. The receiver reads the line when it meets an unknown region. When a region of the
//! sender is gone, the sender reports its end before it announces the next region or sleeps, and
//! the receiver unmaps the region.
//!
//! Invariants: a sender puts a name into a ring only after it has announced the region; each side
//! holds at most [`MOST`] regions of the other. Called by `tx` and `rx`.

use std::os::fd::{OwnedFd, RawFd};
use std::sync::atomic::{AtomicU64, Ordering};

use dunlin_msgbuf::{BufRef, Extent, PeerBytes, PeerRegion, RegionId, regions};

use super::ffi::{self, Received};

/// The most regions of one side that the other side maps.
const MOST: usize = 1024;

/// The most messages that are taken from a line at once.
const MESSAGES: u32 = 512;

/// First byte of a message about a new region. A message that begins with 1 only wakes.
const NEW: u8 = 2;
const GONE: u8 = 3;

/// Bytes of a message about the end of a region: kind, region.
const GONE_LEN: usize = 1 + 4;

/// Bytes of the longest message: kind, region, extent.
const LEN: usize = GONE_LEN + 3 * 8;

/// The regions that a sender has announced to its peer.
#[derive(Debug, Default)]
pub(super) struct Told {
    regions: Vec<RegionId>,
    last: RegionId,
}

/// The regions of its peer that a receiver knows.
#[derive(Debug)]
pub(super) struct Known {
    regions: Vec<(RegionId, PeerRegion, Share)>,
    limit: MapLimit,
}

/// Bytes of peers' memory that may be mapped.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct MapLimit {
    /// Bytes of one peer.
    pub(super) peer: u64,
    /// Bytes of all peers of all endpoints of this process.
    pub(super) process: u64,
}

/// Bytes that all endpoints of this process have mapped.
static MAPPED: AtomicU64 = AtomicU64::new(0);

/// A part of the memory that this process may map. Dropping it gives the part back.
#[derive(Debug)]
struct Share(u64);

impl Share {
    fn take(bytes: u64, limit: u64) -> Option<Self> {
        let more = |all: u64| all.checked_add(bytes).filter(|all| *all <= limit);
        let taken = MAPPED.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more);
        taken.ok().map(|_| Self(bytes))
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        MAPPED.fetch_sub(self.0, Ordering::Relaxed);
    }
}

impl Told {
    /// True if the peer can find the bytes: the sender has announced their region before, or
    /// announces it now.
    #[inline]
    pub(super) fn tell(&mut self, line: RawFd, data: BufRef) -> bool {
        let region = data.region();
        if region == self.last {
            return true;
        }
        let found = self.regions.contains(&region) || self.tell_new(line, region);
        if found {
            self.last = region;
        }
        found
    }

    #[cold]
    fn tell_new(&mut self, line: RawFd, region: RegionId) -> bool {
        self.forget_dead(line);
        let info = regions::info(region);
        let Some((fd, extent)) = info.and_then(|info| info.fd.zip(info.extent)) else {
            return false;
        };
        if self.regions.len() == MOST {
            return false;
        }
        let told = ffi::tell(line, &encode(NEW, region, extent), Some(&fd));
        if told {
            self.regions.push(region);
        }
        told
    }

    /// Tells the peer which regions are gone.
    #[cold]
    pub(super) fn forget_dead(&mut self, line: RawFd) {
        self.regions.retain(|&region| {
            regions::is_alive(region) || {
                // If the line is full, the message is sent later.
                !ffi::tell(
                    line,
                    &encode(GONE, region, Extent::default())[..GONE_LEN],
                    None,
                )
            }
        });
        if !regions::is_alive(self.last) {
            self.last = RegionId::NONE;
        }
    }
}

impl Known {
    /// The state for a peer that has announced no region.
    pub(super) const fn new(limit: MapLimit) -> Self {
        Self {
            regions: Vec::new(),
            limit,
        }
    }

    /// Bytes of the peer's memory that are mapped.
    pub(super) fn mapped(&self) -> u64 {
        self.regions.iter().map(|(.., share)| share.0).sum()
    }

    /// The bytes, if their region is known and they lie inside.
    #[inline]
    pub(super) fn find(&self, name: BufRef) -> Option<PeerBytes<'_>> {
        let is_it = |(id, ..): &&(RegionId, PeerRegion, Share)| *id == name.region();
        let (_, region, _) = self.regions.iter().find(is_it)?;
        region.find(name)
    }

    /// Reads the peer's messages from the line. False if the peer's end is gone.
    #[cold]
    pub(super) fn listen(&mut self, line: RawFd) -> bool {
        for _ in 0..MESSAGES {
            let mut message = [0; LEN];
            match ffi::receive(line, &mut message) {
                Received::Nothing => return true,
                Received::Gone => return false,
                Received::Message(len, fd) => self.learn(&message[..len.min(LEN)], fd),
            }
        }
        true
    }

    /// Handles one message. It ignores a message that it does not understand, and a region that it
    /// cannot map: packets that name such a region are dropped, and the peer is asked to send their
    /// data in the ring.
    fn learn(&mut self, message: &[u8], fd: Option<OwnedFd>) {
        match (decode(message), fd) {
            (Some((NEW, id, extent)), Some(fd)) if self.regions.len() < MOST => {
                self.forget(id);
                if let Some((region, share)) = self.map(&fd, extent) {
                    self.regions.push((id, region, share));
                }
            }
            (Some((GONE, id, _)), None) => self.forget(id),
            _ => {}
        }
    }

    /// Maps a region, if the limits allow it and the kernel does.
    fn map(&self, fd: &OwnedFd, extent: Extent) -> Option<(PeerRegion, Share)> {
        let bytes = extent.mapped as u64;
        let all = self.mapped().checked_add(bytes)?;
        if all > self.limit.peer {
            return None;
        }
        let share = Share::take(bytes, self.limit.process)?;
        let region = PeerRegion::map(fd, extent).ok()?;
        Some((region, share))
    }

    fn forget(&mut self, id: RegionId) {
        self.regions.retain(|(known, ..)| *known != id);
    }
}

fn encode(kind: u8, region: RegionId, extent: Extent) -> [u8; LEN] {
    let mut message = [0; LEN];
    message[0] = kind;
    message[1..5].copy_from_slice(&region.0.to_le_bytes());
    let sizes = [extent.mapped, extent.bytes, extent.generations];
    for (place, size) in message[5..].as_chunks_mut().0.iter_mut().zip(sizes) {
        *place = (size as u64).to_le_bytes();
    }
    message
}

fn decode(message: &[u8]) -> Option<(u8, RegionId, Extent)> {
    let (&kind, rest) = message.split_first()?;
    let (id, sizes) = rest.split_first_chunk()?;
    let id = RegionId(u32::from_le_bytes(*id));
    if kind == GONE && sizes.is_empty() {
        return Some((kind, id, Extent::default()));
    }
    let (sizes, []) = sizes.as_chunks() else {
        return None;
    };
    let [mapped, bytes, generations] = sizes else {
        return None;
    };
    let size = |bytes: &[u8; 8]| usize::try_from(u64::from_le_bytes(*bytes)).ok();
    let extent = Extent {
        mapped: size(mapped)?,
        bytes: size(bytes)?,
        generations: size(generations)?,
    };
    Some((kind, id, extent))
}

#[cfg(test)]
mod tests;
