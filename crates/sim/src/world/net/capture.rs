//! Calls a function of the program with each frame when it arrives. Called by `path`.

use std::fmt;

use dunlin_core::Nanos;

use crate::world::net::PortId;
use crate::world::net::frames::Frame;

/// A frame that has arrived.
#[derive(Clone, Copy, Debug)]
pub struct Captured<'a> {
    /// The time of its arrival.
    pub at: Nanos,
    /// Its sender.
    pub from: PortId,
    /// Its receiver.
    pub to: PortId,
    /// The bytes that an endpoint sees.
    pub bytes: &'a [u8],
    /// Whether the frame has a congestion mark.
    pub congestion: bool,
}

/// The function that sees each frame when it arrives.
pub struct Capture(Box<dyn FnMut(&Captured<'_>)>);

impl Capture {
    /// Makes a capture that calls `see` with every frame that arrives.
    pub fn new(see: impl FnMut(&Captured<'_>) + 'static) -> Self {
        Self(Box::new(see))
    }

    pub(super) fn show(&mut self, frame: &Frame, at: Nanos) {
        self.0(&Captured {
            at,
            from: frame.from,
            to: frame.to,
            bytes: &frame.bytes,
            congestion: frame.congestion,
        });
    }
}

impl fmt::Debug for Capture {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Capture")
    }
}
