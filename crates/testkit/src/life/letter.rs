//! The content of requests and answers. Both name their call, and the number of the call determines
//! the bytes that fill them up, so the checkers know every byte that must arrive. A request also
//! states what its handler must do.

use dunlin_core::Rng;

/// First bytes of a request that is long enough to have content.
const REQUEST: [u8; 4] = *b"REQ!";
/// First bytes of an answer that is long enough to have content.
const ANSWER: [u8; 4] = *b"ANS!";
/// Bytes of the part of a request that has content.
pub(super) const LETTER_LEN: usize = 11;

/// The handler's reaction to a request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Mode {
    Reply,
    Reject,
    /// Keep it; a later step answers or drops it.
    Hold,
    /// Return without an answer.
    Silent,
    Panic,
    /// Disconnect the session, then answer.
    Disconnect,
    /// Take longer than `ack_delay`, then answer.
    Slow,
    /// Keep it and drop it immediately.
    Drop,
}

impl Mode {
    pub(super) fn from_byte(byte: u8) -> Self {
        [
            Self::Reply,
            Self::Reject,
            Self::Hold,
            Self::Silent,
            Self::Panic,
            Self::Disconnect,
            Self::Slow,
            Self::Drop,
        ][usize::from(byte % 8)]
    }
}

/// The content of a request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Letter {
    pub(super) id: u32,
    pub(super) mode: Mode,
    pub(super) answer_len: u16,
}

impl Letter {
    /// Fills a request. If it is too short, it has no content.
    pub(super) fn write(&self, out: &mut [u8]) {
        fill(self.id, out);
        if let Some(head) = out.first_chunk_mut::<LETTER_LEN>() {
            head[..4].copy_from_slice(&REQUEST);
            head[4..8].copy_from_slice(&self.id.to_le_bytes());
            head[8] = self.mode as u8;
            head[9..].copy_from_slice(&self.answer_len.to_le_bytes());
        }
    }

    /// The content of a request, if it has one.
    pub(super) fn read(data: &[u8]) -> Option<Self> {
        let head = data.first_chunk::<LETTER_LEN>()?;
        let [m0, m1, m2, m3, i0, i1, i2, i3, mode, l0, l1] = *head;
        ([m0, m1, m2, m3] == REQUEST).then(|| Self {
            id: u32::from_le_bytes([i0, i1, i2, i3]),
            mode: Mode::from_byte(mode),
            answer_len: u16::from_le_bytes([l0, l1]),
        })
    }
}

/// Fills the answer to a request.
pub(super) fn write_answer(id: u32, out: &mut [u8]) {
    fill(!id, out);
    if let Some(head) = out.first_chunk_mut::<8>() {
        head[..4].copy_from_slice(&ANSWER);
        head[4..].copy_from_slice(&id.to_le_bytes());
    }
}

fn fill(id: u32, out: &mut [u8]) {
    let mut rng = Rng::new(u64::from(id));
    for bytes in out.chunks_mut(8) {
        let word = rng.next_u64().to_le_bytes();
        bytes.copy_from_slice(&word[..bytes.len()]);
    }
}
