//! The fixed header in front of every packet's data (rules W1 to W12, design §4).
//!
//! Little-endian, 24 bytes, then an extension whose length depends only on the header, then data
//! whose length depends on the header and the session's data size per packet.

use crate::extension::{
    ACK_VECTOR_LEN, CHALLENGE_LEN, EXTENT_WORDS_BITS, MAX_BITMAP_BITS, has_place,
};
use crate::{PktNum, ReqNum, ReqType, Residence, SessionNum, Token};

#[cfg(test)]
mod tests;

/// Bytes of the fixed header.
pub const HEADER_LEN: usize = 24;

/// Version of the packet format. Packets of other versions are dropped and counted (rule W2).
pub const VERSION: u8 = 1;

/// Bits of the cumulative number in the `size` field of a CR or RFR.
const CUMULATIVE_BITS: u32 = 24;
const CUMULATIVE_MASK: u32 = (1 << CUMULATIVE_BITS) - 1;

const _: () = assert!(CUMULATIVE_MASK == crate::control::MAX_PACKETS);

/// The first byte of a REQ and of a RESP.
const PLAIN_REQ: u8 = VERSION << 4 | PacketType::Req as u8;
const PLAIN_RESP: u8 = VERSION << 4 | PacketType::Resp as u8;

/// The first word of a REQ without flags, with 0 as its request type and its session.
pub const PLAIN_REQUEST: u64 = PLAIN_REQ as u64;

/// The first half of the first word of a RESP without flags and without a residence. The other half
/// holds the session.
pub const PLAIN_RESPONSE: u64 = PLAIN_RESP as u64 | (Residence::NO_SAMPLE.0 as u64) << 16;

/// The first 16 bits of the first word of a RESP without flags. The next 16 hold the residence.
pub const TIMED_RESPONSE: u64 = PLAIN_RESP as u64;

/// The purpose of a packet (rule W3).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum PacketType {
    /// A packet of a request, client to server.
    Req = 0,
    /// Credit return: the server has a request packet, and has no response to send yet.
    Cr = 1,
    /// Request for response: the client asks for response packets, or probes for the first.
    Rfr = 2,
    /// A packet of a response.
    Resp = 3,
    /// The request ended without a response; the header carries the error code.
    Err = 4,
    /// The client no longer wants the response.
    Cancel = 5,
    /// Eight bytes that the receiver returns over the control connection, to prove that packets
    /// reach it at this address (rule C13). Either side may send it.
    Challenge = 6,
}

impl PacketType {
    const fn from_bits(bits: u8) -> Option<Self> {
        Some(match bits {
            0 => Self::Req,
            1 => Self::Cr,
            2 => Self::Rfr,
            3 => Self::Resp,
            4 => Self::Err,
            5 => Self::Cancel,
            6 => Self::Challenge,
            _ => return None,
        })
    }

    /// True for the types that a server side receives: REQ, RFR and CANCEL.
    #[inline]
    pub const fn is_for_server(self) -> bool {
        matches!(self, Self::Req | Self::Rfr | Self::Cancel)
    }
}

/// The flag byte. Unknown bits make a packet invalid, so that later versions can define them.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Flags(pub u8);

impl Flags {
    /// No flag.
    pub const NONE: Self = Self(0);
    /// The packet that this one answers was marked "congestion experienced" on its way.
    pub const ECN_ECHO: Self = Self(1);
    /// The packet was sent before: no round-trip sample may be taken from the answer.
    pub const RETRANSMISSION: Self = Self(2);
    /// Reserved for encrypted packets; not accepted yet.
    pub const ENCRYPTED: Self = Self(4);
    /// An acknowledgement vector lies between header and data.
    pub const ACK_VECTOR: Self = Self(8);

    /// REQ: the client takes a round-trip sample from the answer, so the answer must carry the
    /// residence of the request. Without the flag, the server need not measure it (rule S10).
    pub const SAMPLE: Self = Self(16);

    /// The bit of [`Self::SAMPLE`] in a REQ of a request of several packets. There it has another
    /// meaning, because CRs carry the residence anyway: the next packet of the request follows
    /// immediately, so the server may return the credits of both together (rule S7). A server that
    /// does not know this meaning returns them one by one.
    pub const FOLLOWED: Self = Self::SAMPLE;

    /// The flags that a CR, RFR or CHALLENGE may have: they cannot have an acknowledgement vector,
    /// because their own extension takes its place (rules W7 and C13).
    const WITH_BITMAP: Self = Self::ECN_ECHO.with(Self::RETRANSMISSION);
    /// The flags that every other packet may have.
    const KNOWN: Self = Self::WITH_BITMAP.with(Self::ACK_VECTOR);
    /// The flags that a REQ may have.
    const OF_REQ: Self = Self::KNOWN.with(Self::SAMPLE);
    /// The flags of a REQ that has no extension.
    const PLAIN_REQ: Self = Self::WITH_BITMAP.with(Self::SAMPLE);

    /// The flags of both sets.
    #[inline]
    #[must_use]
    pub const fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// True if every flag of `other` is set.
    #[inline]
    pub const fn has(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }
}

/// A validated header. The meaning of `aux` and `size` depends on the type; the accessors name it.
///
/// The fields lie in memory as on the wire, so that encoding and decoding are plain copies on
/// little-endian machines.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(C)]
pub struct Header {
    /// The purpose of the packet.
    pub kind: PacketType,
    /// The flag byte.
    pub flags: Flags,
    /// REQ: request type. CR, RESP and ERR: residence. RFR: number of requested packets. CANCEL and
    /// CHALLENGE: 0.
    pub aux: u16,
    /// The receiver's number for the session.
    pub session: SessionNum,
    /// The receiver's token for the session.
    pub token: Token,
    /// REQ and RESP: bytes of the whole message. ERR: error code. CR and RFR: a cumulative packet
    /// number in the low 24 bits, and the extent of the bitmap above. CANCEL and CHALLENGE: 0.
    pub size: u32,
    /// REQ and RESP: index of this packet. CR: index of the packet that triggered it. RFR: index of
    /// the first requested packet. ERR, CANCEL and CHALLENGE: 0.
    pub pkt: PktNum,
    /// Number of the request; CHALLENGE: 0.
    pub req: ReqNum,
}

const _: () = assert!(size_of::<Header>() == HEADER_LEN);

/// Why 24 bytes are not a header. Every reason has its own drop counter (rule W12).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum HeaderError {
    /// Fewer bytes than the header and its extension have.
    Short,
    /// Another version of the format.
    Version,
    /// Not a packet type of this version.
    Type,
    /// A flag that this version does not know, or one that the type may not have.
    Flags,
    /// A field that must be 0 is not, or a count exceeds its limit.
    Field,
}

impl core::fmt::Display for HeaderError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(match self {
            Self::Short => "the packet is shorter than its header says",
            Self::Version => "the packet has another version of the format",
            Self::Type => "the packet type is unknown",
            Self::Flags => "a flag is unknown or does not fit the packet type",
            Self::Field => "a field that must be 0 is not, or a count is above its limit",
        })
    }
}

impl core::error::Error for HeaderError {}

/// The session number of a packet whose header has not been validated, for prefetching.
#[inline]
pub fn peek_session(bytes: &[u8]) -> Option<SessionNum> {
    let raw: &[u8; 4] = bytes.get(4..8)?.try_into().ok()?;
    Some(SessionNum(u32::from_le_bytes(*raw)))
}

/// Type and request number of a packet whose header has not been validated, for prefetching.
#[inline]
pub fn peek_request(bytes: &[u8]) -> Option<(PacketType, ReqNum)> {
    let raw = bytes.first_chunk::<HEADER_LEN>()?;
    let kind = PacketType::from_bits(raw[0] & 0xF)?;
    Some((kind, ReqNum(word(raw, 20))))
}

impl Header {
    /// The request type of a REQ.
    #[inline]
    pub const fn req_type(&self) -> ReqType {
        ReqType(self.aux)
    }

    /// The residence in a CR, RESP or ERR.
    #[inline]
    pub const fn residence(&self) -> Residence {
        Residence(self.aux)
    }

    /// The cumulative packet number of a CR or RFR: all packets below it have arrived.
    #[inline]
    pub const fn cumulative(&self) -> PktNum {
        PktNum(self.size & CUMULATIVE_MASK)
    }

    /// Number of bitmap words after a CR or RFR, from 0 to 4.
    #[inline]
    pub const fn bitmap_words(&self) -> u32 {
        self.bitmap_extent() & ((1 << EXTENT_WORDS_BITS) - 1)
    }

    /// Number of bitmap words, and of the first word after the cumulative number, for
    /// [`Bitmap::decode`](crate::Bitmap::decode).
    #[inline]
    pub const fn bitmap_extent(&self) -> u32 {
        self.size >> CUMULATIVE_BITS
    }

    /// Bytes between the header and the data: of a bitmap (rule W7), a challenge (rule C13) or an
    /// acknowledgement vector (rule W10).
    #[inline]
    pub const fn extension_len(&self) -> usize {
        let words = match self.kind {
            PacketType::Cr | PacketType::Rfr => self.bitmap_words() as usize * 8,
            PacketType::Challenge => CHALLENGE_LEN,
            _ => 0,
        };
        let acks = if self.flags.has(Flags::ACK_VECTOR) {
            ACK_VECTOR_LEN
        } else {
            0
        };
        words + acks
    }

    /// Bytes of data in this packet, in a session with `data_size` bytes per packet (rule W8).
    ///
    /// `None` if the packet number does not exist in a message of this size.
    #[inline]
    pub const fn data_len(&self, data_size: u32) -> Option<u32> {
        if !self.carries_data() {
            return Some(0);
        }
        if self.pkt.0 == 0 {
            return Some(if self.size < data_size {
                self.size
            } else {
                data_size
            });
        }
        let left = match self.pkt.0.checked_mul(data_size) {
            Some(before) if before < self.size => self.size - before,
            _ => return None,
        };
        Some(if left < data_size { left } else { data_size })
    }

    /// Bytes of the whole packet, in a session with `data_size` bytes per packet. The next packet
    /// of the same frame begins there (rule W11).
    ///
    /// `None` if the packet number does not exist in a message of this size.
    #[inline]
    pub const fn packet_len(&self, data_size: u32) -> Option<usize> {
        match self.data_len(data_size) {
            Some(data) => Some(HEADER_LEN + self.extension_len() + data as usize),
            None => None,
        }
    }

    /// The `size` field of a CR or RFR: all packets below `cumulative` have arrived, and a bitmap
    /// of this extent follows, 0 for none (rule W7; [`Bitmap::extent`](crate::Bitmap::extent)).
    ///
    /// `cumulative` must be below 2²⁴; a session's limits guarantee it.
    #[inline]
    pub const fn arrivals(cumulative: PktNum, extent: u32) -> u32 {
        debug_assert!(cumulative.0 <= CUMULATIVE_MASK && has_place(extent));
        extent << CUMULATIVE_BITS | cumulative.0 & CUMULATIVE_MASK
    }

    /// The header as bytes.
    #[inline]
    pub fn encode(&self) -> [u8; HEADER_LEN] {
        // There are only three stores, so that code which copies the header immediately afterwards
        // need not wait for others.
        let first = u64::from(VERSION << 4 | self.kind as u8)
            | u64::from(self.flags.0) << 8
            | u64::from(self.aux) << 16
            | u64::from(self.session.0) << 32;
        let second = u64::from(self.token.0) | u64::from(self.size) << 32;
        let third = u64::from(self.pkt.0) | u64::from(self.req.0) << 32;
        let mut out = [0; HEADER_LEN];
        out[..8].copy_from_slice(&first.to_le_bytes());
        out[8..16].copy_from_slice(&second.to_le_bytes());
        out[16..].copy_from_slice(&third.to_le_bytes());
        out
    }

    /// Reads and validates the header at the start of `bytes` and the presence of its extension.
    ///
    /// # Errors
    /// The first reason why this is not a packet of this version (rule W12).
    #[inline]
    pub fn decode(bytes: &[u8]) -> Result<Self, HeaderError> {
        let Some(raw) = bytes.first_chunk::<HEADER_LEN>() else {
            return Err(HeaderError::Short);
        };
        // Nearly every packet is a REQ or RESP without extension. It passes with two comparisons
        // and without a jump table.
        let flags = Flags(raw[1]);
        match raw[0] {
            PLAIN_REQ if Flags::PLAIN_REQ.has(flags) => Ok(Self::read(raw, PacketType::Req)),
            PLAIN_RESP if Flags::WITH_BITMAP.has(flags) => Ok(Self::read(raw, PacketType::Resp)),
            _ => Self::decode_other(raw, bytes.len()),
        }
    }

    /// Decodes a packet that is not plain; `available` is the number of bytes, beginning with
    /// `raw`.
    #[inline(never)]
    fn decode_other(raw: &[u8; HEADER_LEN], available: usize) -> Result<Self, HeaderError> {
        if raw[0] >> 4 != VERSION {
            return Err(HeaderError::Version);
        }
        let Some(kind) = PacketType::from_bits(raw[0] & 0xF) else {
            return Err(HeaderError::Type);
        };
        let header = Self::read(raw, kind);
        header.check_fields()?;
        if available < HEADER_LEN + header.extension_len() {
            return Err(HeaderError::Short);
        }
        Ok(header)
    }

    #[inline]
    fn read(raw: &[u8; HEADER_LEN], kind: PacketType) -> Self {
        Self {
            kind,
            flags: Flags(raw[1]),
            aux: u16::from_le_bytes([raw[2], raw[3]]),
            session: SessionNum(word(raw, 4)),
            token: Token(word(raw, 8)),
            size: word(raw, 12),
            pkt: PktNum(word(raw, 16)),
            req: ReqNum(word(raw, 20)),
        }
    }

    #[inline]
    const fn carries_data(&self) -> bool {
        matches!(self.kind, PacketType::Req | PacketType::Resp)
    }

    /// The checks that need no session (rule W6).
    fn check_fields(&self) -> Result<(), HeaderError> {
        let (flags, fields_fit) = match self.kind {
            PacketType::Req => (Flags::OF_REQ, true),
            PacketType::Resp => (Flags::KNOWN, true),
            PacketType::Cr => (Flags::WITH_BITMAP, has_place(self.bitmap_extent())),
            PacketType::Rfr => (
                Flags::WITH_BITMAP,
                has_place(self.bitmap_extent()) && u32::from(self.aux) <= MAX_BITMAP_BITS,
            ),
            PacketType::Err => (Flags::KNOWN, self.pkt.0 == 0),
            PacketType::Cancel => (
                Flags::KNOWN,
                self.pkt.0 == 0 && self.size == 0 && self.aux == 0,
            ),
            PacketType::Challenge => (
                Flags::WITH_BITMAP,
                self.pkt.0 == 0 && self.size == 0 && self.aux == 0 && self.req.0 == 0,
            ),
        };
        if !flags.has(self.flags) {
            return Err(HeaderError::Flags);
        }
        if fields_fit {
            Ok(())
        } else {
            Err(HeaderError::Field)
        }
    }
}

#[inline]
fn word(raw: &[u8; HEADER_LEN], at: usize) -> u32 {
    u32::from_le_bytes([raw[at], raw[at + 1], raw[at + 2], raw[at + 3]])
}
