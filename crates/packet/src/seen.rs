//! Recognizes frames whose headers are those of the last accepted one, so that most frames need one
//! comparison and a sum.
//!
//! Invariant: [`Seen`] accepts no frame that [`parse`] refuses. Used by transports, one value for
//! each home.

use super::parse::{Datagram, Refused, Written, parse};
use super::sum::Sum;
use super::{ETHERNET, Home, IPV4, PROTOCOL_UDP, TYPE_IPV4, UDP};

/// The headers of the last plain frame that was accepted, up to the length of UDP. Frames of one
/// peer with one length have the same ones, so the next frame is likely to need one comparison.
///
/// It belongs to one endpoint: what was accepted for one home may not be for another.
#[derive(Clone, Copy, Debug, Default)]
pub struct Seen {
    head: Head,
    /// The sum of the pseudo header.
    pseudo: Sum,
    /// Bytes of the frame without padding.
    end: usize,
    found: Option<Datagram>,
}

/// The bytes of the headers before the checksum of UDP.
#[derive(Clone, Copy, Debug)]
struct Head([u8; ETHERNET + IPV4 + UDP - 2]);

impl Default for Head {
    fn default() -> Self {
        Self([0; ETHERNET + IPV4 + UDP - 2])
    }
}

impl Seen {
    /// Reads the frame that came to `home`, as [`parse`].
    ///
    /// # Errors
    /// See [`Refused`].
    #[inline]
    pub fn parse(&mut self, frame: &[u8], home: &Home) -> Result<Datagram, Refused> {
        if let Some(found) = self.again(frame) {
            return Ok(found);
        }
        let found = parse(frame, home)?;
        self.note(frame, &found);
        Ok(found)
    }

    /// The datagram of a frame with the same headers, if its checksum is right.
    #[inline]
    fn again(&self, frame: &[u8]) -> Option<Datagram> {
        const START: usize = ETHERNET + IPV4;
        let found = self.found?;
        let frame = frame.get(..self.end)?;
        let (head, _) = frame.split_first_chunk::<{ START + UDP - 2 }>()?;
        if *head != self.head.0 {
            return None;
        }
        let datagram = frame.get(START..found.start + found.len)?;
        let mut sum = self.pseudo;
        sum.add(datagram);
        let is_right = sum.folded() == 0xFFFF && datagram.get(6..UDP)? != [0, 0];
        is_right.then_some(found)
    }

    /// Keeps the headers of a plain frame.
    #[cold]
    fn note(&mut self, frame: &[u8], found: &Datagram) {
        const START: usize = ETHERNET + IPV4;
        let head = frame.first_chunk();
        let is_plain = frame.get(12..14) == Some(&TYPE_IPV4.to_be_bytes());
        let (true, Some(head), Written::Whole) = (is_plain, head, found.sum) else {
            return;
        };
        let [high, low] = [head[START + 4], head[START + 5]];
        self.pseudo = Sum::default();
        self.pseudo.add(&head[START - 8..START]);
        self.pseudo.add(&[0, PROTOCOL_UDP, high, low]);
        self.head = Head(*head);
        self.end = ETHERNET + usize::from(u16::from_be_bytes([head[16], head[17]]));
        self.found = Some(*found);
    }
}
