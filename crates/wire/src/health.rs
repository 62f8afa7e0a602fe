//! A question about the health of a server, and its answer: the bytes of one request to the
//! endpoint that the process has announced for health, and of the response (rule C15). The question
//! is the name of a service; an empty name asks about the whole server.

use crate::ReqType;

#[cfg(test)]
mod tests;

/// The type of the request: the lowest number that no method of a service can have.
pub const HEALTH: ReqType = ReqType(32_512);

/// The most bytes of a service's name in a question.
pub const MAX_HEALTH_QUESTION: usize = 255;

/// The most bytes of an answer.
pub const MAX_HEALTH_ANSWER: usize = 256;

/// Whether a server can take requests.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum HealthStatus {
    /// The server has no service of this name.
    NoSuchService = 0,
    /// All threads of the server run.
    Serving = 1,
    /// The server drains or is about to, or one of its threads is stuck.
    NotServing = 2,
}

/// An answer of the endpoint.
///
/// ```
/// use dunlin_wire::{HealthAnswer, HealthStatus, MAX_HEALTH_ANSWER};
///
/// let answer = HealthAnswer { status: HealthStatus::NotServing, reason: "it drains" };
/// let mut out = [0; MAX_HEALTH_ANSWER];
/// let len = answer.encode(&mut out);
/// assert_eq!(out[..len], *b"\x02it drains");
/// assert_eq!(HealthAnswer::decode(&out[..len]), Some(answer));
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct HealthAnswer<'a> {
    /// Whether the server can take requests.
    pub status: HealthStatus,
    /// The reason, for people. Encoding keeps at most its first 255 bytes.
    pub reason: &'a str,
}

impl<'a> HealthAnswer<'a> {
    /// Encodes the answer, with the reason cut off at its limit, and returns the answer's length.
    pub fn encode(&self, out: &mut [u8; MAX_HEALTH_ANSWER]) -> usize {
        let reason = &self.reason[..self.reason.floor_char_boundary(MAX_HEALTH_ANSWER - 1)];
        out[0] = self.status as u8;
        out[1..=reason.len()].copy_from_slice(reason.as_bytes());
        1 + reason.len()
    }

    /// Decodes an answer. `None` if the bytes are not an answer.
    pub fn decode(bytes: &'a [u8]) -> Option<Self> {
        let (status, reason) = bytes.split_first()?;
        let status = match status {
            0 => HealthStatus::NoSuchService,
            1 => HealthStatus::Serving,
            2 => HealthStatus::NotServing,
            _ => return None,
        };
        let reason = core::str::from_utf8(reason).ok()?;
        (bytes.len() <= MAX_HEALTH_ANSWER).then_some(Self { status, reason })
    }
}
