//! The format of requests and responses, and the handlers that they are for.
//!
//! Every request that is not empty begins with its call's name. The bytes after its prefix, and all
//! bytes of its response, are computed from the name, so the caller recognises a response that
//! belongs to another request or to none. Called by `app`, `handlers` and `ledger`.

use dunlin_wire::ReqType;

/// Bytes of a request before its pattern.
pub(super) const PREFIX: usize = 16;
/// A response begins with its call's name xored with this, so that an echoed request is not a valid
/// response.
const ANSWER: u64 = 0xA5A5_5A5A_0F0F_F0F0;

/// The handlers of every process.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
#[repr(u16)]
pub enum Kind {
    /// Answers immediately.
    Echo,
    /// Keeps the request, calls another process, then answers.
    Nested,
    /// A worker answers.
    Background,
    /// A batch handler answers the request together with others of its burst.
    Batch,
    /// Answers with an application error.
    Reject,
    /// Panics.
    Panic,
    /// Returns without an answer.
    Forget,
    /// Computes for a while first.
    Slow,
    /// Keeps the request and answers when a timer fires.
    Later,
    /// Keeps the request and drops it when a timer fires.
    Lose,
    /// No handler has this type.
    Unknown,
    /// The items of a batch are rejected, kept or forgotten; sometimes the handler panics.
    MixedBatch,
    /// A worker rejects, forgets or panics.
    FailingBackground,
    /// Answers with more bytes than the session allows.
    TooMuch,
    /// An empty request, with an empty answer.
    Empty,
}

impl Kind {
    /// All kinds, in the order of their request types.
    pub const ALL: [Self; 15] = [
        Self::Echo,
        Self::Nested,
        Self::Background,
        Self::Batch,
        Self::Reject,
        Self::Panic,
        Self::Forget,
        Self::Slow,
        Self::Later,
        Self::Lose,
        Self::Unknown,
        Self::MixedBatch,
        Self::FailingBackground,
        Self::TooMuch,
        Self::Empty,
    ];

    /// Whether its handler has room only for answers of a few packets.
    pub(super) fn has_little_room(self) -> bool {
        matches!(
            self,
            Self::Batch | Self::MixedBatch | Self::Background | Self::FailingBackground
        )
    }

    /// The request type.
    pub fn req_type(self) -> ReqType {
        ReqType(self as u16)
    }
}

/// The content of a request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Ask {
    /// Names the call, over all processes.
    pub(super) call: u64,
    /// The bytes that the response should have.
    pub(super) answer_len: u32,
    /// For the handler: a time in microseconds, or its behaviour.
    pub(super) param: u32,
}

impl Ask {
    /// Fills a request's buffer, which has at least [`PREFIX`] bytes.
    pub(super) fn write(&self, out: &mut [u8]) {
        out[..8].copy_from_slice(&self.call.to_le_bytes());
        out[8..12].copy_from_slice(&self.answer_len.to_le_bytes());
        out[12..16].copy_from_slice(&self.param.to_le_bytes());
        pattern(self.call, &mut out[PREFIX..]);
    }

    /// Reads a request; `None` if no process can have written it.
    pub(super) fn read(bytes: &[u8]) -> Option<Self> {
        let prefix: &[u8; PREFIX] = bytes.first_chunk()?;
        let word = |at: usize| {
            u32::from_le_bytes([prefix[at], prefix[at + 1], prefix[at + 2], prefix[at + 3]])
        };
        let call = u64::from(word(0)) | u64::from(word(4)) << 32;
        let ask = Self {
            call,
            answer_len: word(8),
            param: word(12),
        };
        follows_pattern(call, &bytes[PREFIX..]).then_some(ask)
    }

    /// Fills the response to this request.
    pub(super) fn answer(&self, out: &mut [u8]) {
        answer_of(self.call, out);
    }
}

/// Fills the response to a call.
pub(super) fn answer_of(call: u64, out: &mut [u8]) {
    let name = (call ^ ANSWER).to_le_bytes();
    let head = out.len().min(name.len());
    out[..head].copy_from_slice(&name[..head]);
    pattern(!call, &mut out[head..]);
}

/// True if `bytes` is the response to `call`.
pub(super) fn is_answer_of(call: u64, bytes: &[u8]) -> bool {
    let name = (call ^ ANSWER).to_le_bytes();
    let head = bytes.len().min(name.len());
    bytes[..head] == name[..head] && follows_pattern(!call, &bytes[head..])
}

/// Eight bytes of the pattern, which depend on the seed and on their offset.
fn word_at(seed: u64, at: usize) -> [u8; 8] {
    let word = (seed ^ at as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    (word ^ (word >> 32)).to_be_bytes()
}

fn pattern(seed: u64, out: &mut [u8]) {
    for (at, chunk) in out.chunks_mut(8).enumerate() {
        chunk.copy_from_slice(&word_at(seed, at)[..chunk.len()]);
    }
}

fn follows_pattern(seed: u64, bytes: &[u8]) -> bool {
    let mut chunks = bytes.chunks(8).enumerate();
    chunks.all(|(at, chunk)| *chunk == word_at(seed, at)[..chunk.len()])
}

#[cfg(test)]
mod tests;
