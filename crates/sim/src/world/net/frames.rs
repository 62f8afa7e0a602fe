//! Frames in flight, in a table whose entries are reused.
//!
//! Invariant: every frame in flight has one event, at the time of its arrival. Called by `net` and
//! its parts.

use crate::world::net::PortId;

/// Names a frame in flight.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct FrameId(u32);

/// The far end of a cable.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum End {
    /// The switch of a rack, reached from a host: this is where faults strike.
    Ingress(u32),
    /// The switch of a rack, reached from a spine switch.
    Rack(u32),
    /// A spine switch.
    Spine(u32),
    /// A host's NIC.
    Nic,
}

/// A frame in flight.
#[derive(Clone, Debug)]
pub(super) struct Frame {
    pub(super) from: PortId,
    pub(super) to: PortId,
    pub(super) bytes: Vec<u8>,
    /// Bytes that it takes on a cable and in the memory of a switch.
    pub(super) size: u64,
    /// Bytes of it that are data of messages.
    pub(super) data: u32,
    pub(super) congestion: bool,
    /// The end of its present cable.
    pub(super) end: End,
}

/// All frames in flight.
#[derive(Debug, Default)]
pub(super) struct Frames {
    all: Vec<Frame>,
    free: Vec<FrameId>,
}

impl Frames {
    pub(super) fn insert(&mut self, frame: Frame) -> FrameId {
        if let Some(id) = self.free.pop() {
            self.all[id.0 as usize] = frame;
            return id;
        }
        self.all.push(frame);
        FrameId(u32::try_from(self.all.len() - 1).expect("fewer than 2^32 frames fit in memory"))
    }

    /// Removes a frame; another frame may get its id from now on.
    pub(super) fn remove(&mut self, id: FrameId) -> Frame {
        self.free.push(id);
        let frame = self.at_mut(id);
        let bytes = std::mem::take(&mut frame.bytes);
        Frame { bytes, ..*frame }
    }

    /// Prefetches the memory of a frame.
    #[inline]
    pub(super) fn prefetch(&self, id: FrameId) {
        dunlin_msgbuf::prefetch_lines(&self.all[id.0 as usize], 2);
    }

    #[inline]
    pub(super) fn at(&self, id: FrameId) -> &Frame {
        &self.all[id.0 as usize]
    }

    #[inline]
    pub(super) fn at_mut(&mut self, id: FrameId) -> &mut Frame {
        &mut self.all[id.0 as usize]
    }
}
