//! Recognizes frames with the same headers as the last accepted one, so that most frames need one
//! comparison and a sum.
//!
//! Invariant: [`Seen`] accepts no frame that [`parse`] refuses. Used by transports, one value for
//! each home.

use super::layout::{ETHERNET, Home, IPV4, PROTOCOL_UDP, TYPE_IPV4, UDP};
use super::parse::{Datagram, Refused, Written, parse};
use super::sum::Sum;

/// The headers of the last accepted plain frame, up to the length of UDP. Frames of one peer with
/// one length have the same headers, so the next frame is likely to need one comparison.
///
/// It belongs to one endpoint: a frame that is accepted for one home may be refused for another.
#[derive(Clone, Copy, Debug)]
pub struct Seen {
    head: Head,
    /// The sum of the pseudo header.
    pseudo: Sum,
    /// Bytes of the frame without padding.
    end: usize,
    /// Bytes of its datagram.
    datagram: usize,
    /// Whether the datagram's length is [`SHORT`], and the frame ends with the datagram.
    is_short: bool,
    /// Whether the network marked that frame.
    congestion: bool,
    found: Option<Datagram>,
}

/// The payload of an accepted frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Payload {
    /// Where it begins in the frame.
    pub start: usize,
    /// Its length in bytes.
    pub len: usize,
    /// The network marked it "congestion experienced" (ECN).
    pub congestion: bool,
}

/// Where a plain frame's datagram begins.
const START: usize = ETHERNET + IPV4;

/// Bytes of a datagram that carries a packet of one line of a lane: a length that the compiler
/// knows.
const SHORT: usize = UDP + 56;

/// The bytes of the headers before the UDP checksum, in the pieces that are compared.
#[derive(Clone, Copy, Debug)]
struct Head([u8; 32], [u8; 8]);

const HEAD: usize = ETHERNET + IPV4 + UDP - 2;
const _: () = assert!(HEAD == 32 + 8);

impl Head {
    /// Whether a frame begins with these bytes.
    #[inline]
    fn is_of(&self, frame: &[u8; HEAD]) -> bool {
        frame.first_chunk() == Some(&self.0) && frame.last_chunk() == Some(&self.1)
    }
}

impl Default for Seen {
    fn default() -> Self {
        Self {
            head: Head([0; 32], [0; 8]),
            pseudo: Sum::default(),
            end: usize::MAX,
            datagram: 0,
            is_short: false,
            congestion: false,
            found: None,
        }
    }
}

impl Payload {
    /// Its place in the frame.
    #[inline]
    pub fn range(&self) -> std::ops::Range<usize> {
        self.start..self.start + self.len
    }
}

impl From<Datagram> for Payload {
    fn from(found: Datagram) -> Self {
        Self {
            start: found.start,
            len: found.len,
            congestion: found.congestion,
        }
    }
}

impl Seen {
    /// Reads a frame that came to `home`, like [`parse`].
    ///
    /// # Errors
    /// See [`Refused`].
    pub fn parse(&mut self, frame: &[u8], home: &Home) -> Result<Datagram, Refused> {
        if let (Some(_), Some(found)) = (self.again(frame), self.found) {
            return Ok(found);
        }
        let found = parse(frame, home)?;
        self.note(frame, &found);
        Ok(found)
    }

    /// The payload of a frame that [`Self::parse`] would accept, and whether the network marked it,
    /// if the frame has the headers of the last accepted one. `None` does not mean that the frame
    /// is invalid.
    ///
    /// ```
    /// use dunlin_packet::{Header, Home, Seen, Sum};
    /// let one = Home { address: "10.0.0.1:7".parse().unwrap(), vlan: 0, mac: [2; 6] };
    /// let two = Home { address: "10.0.0.2:8".parse().unwrap(), vlan: 0, mac: [4; 6] };
    /// let header = Header::new(&one, two.address, two.mac);
    /// let frame = |payload: &[u8; 6]| {
    ///     let mut frame = vec![0; header.bytes()];
    ///     frame.extend(payload);
    ///     header.write(&mut frame, payload.len(), Sum::of(payload));
    ///     frame
    /// };
    /// let mut seen = Seen::default();
    /// assert_eq!(seen.again(&frame(b"first.")), None);
    /// seen.parse(&frame(b"first."), &two).unwrap();
    /// let (second, mut third) = (frame(b"second"), frame(b"third."));
    /// assert_eq!(seen.again(&second), Some((&b"second"[..], false)));
    /// third[45] ^= 1;
    /// assert_eq!(seen.again(&third), None);
    /// ```
    #[inline]
    pub fn again<'a>(&self, frame: &'a [u8]) -> Option<(&'a [u8], bool)> {
        let payload = self.payload(frame)?;
        Some((payload, self.congestion))
    }

    /// Like [`Self::again`], without the mark.
    // This is inlined, so that loops over frames keep its numbers in registers.
    #[inline(always)]
    pub fn payload<'a>(&self, frame: &'a [u8]) -> Option<&'a [u8]> {
        if self.is_short {
            return self.short_payload(frame);
        }
        let head = frame.first_chunk::<HEAD>()?;
        // Before the first accepted frame, no frame is long enough.
        if !self.head.is_of(head) || frame.len() < self.end {
            return None;
        }
        let (datagram, mut sum) = (frame[START..].get(..self.datagram)?, self.pseudo);
        sum.add(datagram);
        payload_of(datagram, sum)
    }

    /// Like [`Self::payload`], for a datagram of length [`SHORT`].
    #[inline(always)]
    fn short_payload<'a>(&self, frame: &'a [u8]) -> Option<&'a [u8]> {
        let frame = frame.first_chunk::<{ START + SHORT }>()?;
        if !self.head.is_of(frame.first_chunk()?) {
            return None;
        }
        let short: &[u8; SHORT] = frame.last_chunk()?;
        payload_of(short, self.pseudo.with(short))
    }

    /// The last accepted plain frame, if there is one. Frames that [`Self::again`] recognizes have
    /// the same length, and the same mark.
    #[inline]
    pub fn last(&self) -> Option<Datagram> {
        self.found
    }

    /// Where the payload lies in all frames that [`Self::payload`] recognizes. `None` if there is
    /// no such frame, or if the network has marked it.
    #[inline]
    pub fn place(&self) -> Option<std::ops::Range<usize>> {
        let end = START + self.datagram;
        (self.datagram > 0 && !self.congestion).then_some(START + UDP..end)
    }

    /// Stores the headers of a plain frame.
    #[cold]
    fn note(&mut self, frame: &[u8], found: &Datagram) {
        let head = frame.first_chunk();
        let is_plain = frame.get(12..14) == Some(&TYPE_IPV4.to_be_bytes());
        let (true, Some(head), Written::Whole) = (is_plain, head, found.sum) else {
            return;
        };
        let head: &[u8; HEAD] = head;
        let (Some(first), Some(last)) = (head.first_chunk(), head.last_chunk()) else {
            return;
        };
        let [high, low] = [head[START + 4], head[START + 5]];
        self.pseudo = Sum::default();
        self.pseudo.add(&head[START - 8..START]);
        self.pseudo.add(&[0, PROTOCOL_UDP, high, low]);
        self.pseudo = self.pseudo.small();
        self.head = Head(*first, *last);
        self.end = ETHERNET + usize::from(u16::from_be_bytes([head[16], head[17]]));
        self.datagram = UDP + found.len;
        self.is_short = self.datagram == SHORT && self.end == START + SHORT;
        self.congestion = found.congestion;
        self.found = Some(*found);
    }
}

/// The payload of a datagram with this sum, if the datagram has a checksum and it is correct.
#[inline]
fn payload_of(datagram: &[u8], sum: Sum) -> Option<&[u8]> {
    let (header, payload) = datagram.split_first_chunk::<UDP>()?;
    if sum.is_right() && header[6..] != [0, 0] {
        return Some(payload);
    }
    None
}
