//! The processes that the attackers must not disturb (a server and its healthy client), and the
//! calls between them. The client can compute the right answer to each call.

pub(crate) mod client;
pub(crate) mod server;

use std::sync::mpsc::{self, Receiver};

use dunlin_core::Rng;
use dunlin_wire::ReqType;
use harness::process::Parent;

use crate::words::Ask;

/// Requests of the healthy client.
pub(crate) const HONEST: ReqType = ReqType(1);
/// Requests of all other clients.
pub(crate) const OTHER: ReqType = ReqType(2);

/// Bytes of the number with which an honest request begins.
const NUMBER: usize = 8;

/// Starts a thread that reads the parent's questions, and returns the channel that delivers them.
pub(crate) fn questions() -> Receiver<Ask> {
    let (to, from) = mpsc::channel();
    std::thread::spawn(move || {
        while let Ok(ask) = Parent.receive() {
            if to.send(ask).is_err() {
                break;
            }
        }
    });
    from
}

/// An honest request: its number, and random bytes.
pub(crate) fn fill(request: &mut [u8], number: u64, rng: &mut Rng) {
    let (head, body) = request.split_at_mut(NUMBER);
    head.copy_from_slice(&number.to_le_bytes());
    for chunk in body.chunks_mut(8) {
        let word = rng.next_u64().to_le_bytes();
        chunk.copy_from_slice(&word[..chunk.len()]);
    }
}

/// The number of an honest request.
pub(crate) fn number(request: &[u8]) -> Option<u64> {
    request.first_chunk().map(|head| u64::from_le_bytes(*head))
}

/// Answers a request: the inverse of each byte, in reverse order.
pub(crate) fn answer(request: &[u8], response: &mut [u8]) {
    let backwards = request.iter().rev();
    for (out, byte) in response.iter_mut().zip(backwards) {
        *out = !byte;
    }
}

/// True if this is the answer to the request.
pub(crate) fn is_answer(request: &[u8], response: &[u8]) -> bool {
    let backwards = request.iter().rev();
    request.len() == response.len()
        && backwards
            .zip(response)
            .all(|(byte, answer)| *answer == !byte)
}

/// A checksum: other bytes, or the same bytes in another order, very likely have another sum.
pub(crate) fn sum(bytes: &[u8]) -> u64 {
    let start = 0xcbf2_9ce4_8422_2325_u64;
    bytes.iter().fold(start, |sum, byte| {
        (sum ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

#[cfg(test)]
mod tests;
