//! The content of requests and responses. Every measurement includes real work: the client writes
//! every word of a request from a fresh counter, the server reads every word and answers with a
//! function of all of them, and the client checks every word of the answer.
//!
//! Sizes are multiples of eight bytes; the bytes may lie at any alignment.

/// Bytes of the messages of `latency` and `rate`, and of the raw exchanges that bound them, unless
/// the command gives others. The instruction budget counts messages of the same sizes.
pub(crate) const SIZES: [u16; 5] = [8, 32, 56, 200, 1000];

/// Writes request number `counter`.
#[inline]
pub(crate) fn fill(request: &mut [u8], counter: u64) {
    write(request, counter);
}

/// Distance in bytes between the words of a large message that hold its number.
const MARKS: usize = 16 << 10;

/// Writes a number, counted up from `counter`, at the start of each 16 KiB of a large message, so
/// that the receiver checks every packet, over shared memory and over loopback. Checking all bytes
/// would take longer than sending them, and small messages would have to wait.
pub(crate) fn mark(message: &mut [u8], counter: u64) {
    for (part, index) in message.chunks_mut(MARKS).zip(0..) {
        if let Some(word) = part.first_chunk_mut() {
            *word = counter.wrapping_add(index).to_le_bytes();
        }
    }
}

/// True if a large message has the marks that [`mark`] writes for `counter`.
pub(crate) fn is_marked(message: &[u8], counter: u64) -> bool {
    let is_right = |(part, index): (&[u8], u64)| match part.first_chunk() {
        Some(word) => u64::from_le_bytes(*word) == counter.wrapping_add(index),
        None => true,
    };
    message.chunks(MARKS).zip(0..).all(is_right)
}

/// True if every word of `bytes` is as in request number `counter`.
#[inline]
pub(crate) fn is_request(bytes: &[u8], counter: u64) -> bool {
    check(bytes, counter)
}

/// The counter at the beginning of a request; `None` if the request is shorter than a word.
#[inline]
pub(crate) fn counter(request: &[u8]) -> Option<u64> {
    request.first_chunk().copied().map(u64::from_le_bytes)
}

/// Reads the whole request and writes the response to it.
#[inline]
pub(crate) fn answer(request: &[u8], response: &mut [u8]) {
    let words = request.chunks_exact(8).map(word);
    write(response, !words.fold(0, u64::wrapping_add));
}

/// True if `response` answers request number `counter` of `request_len` bytes.
#[inline]
pub(crate) fn is_answer(response: &[u8], request_len: usize, counter: u64) -> bool {
    let words = request_len as u64 / 8;
    let steps = words * words.saturating_sub(1) / 2;
    check(response, !counter.wrapping_mul(words).wrapping_add(steps))
}

/// Writes `first`, `first + 1`, and so on.
#[inline]
fn write(bytes: &mut [u8], first: u64) {
    for (chunk, index) in bytes.chunks_exact_mut(8).zip(0..) {
        chunk.copy_from_slice(&first.wrapping_add(index).to_le_bytes());
    }
}

/// Checks every word, without a branch for each.
#[inline]
fn check(bytes: &[u8], first: u64) -> bool {
    let differs = |(chunk, index)| word(chunk) ^ first.wrapping_add(index);
    bytes
        .chunks_exact(8)
        .zip(0..)
        .map(differs)
        .fold(0, |all, word| all | word)
        == 0
}

#[inline]
fn word(chunk: &[u8]) -> u64 {
    u64::from_le_bytes(chunk.try_into().expect("chunks have eight bytes"))
}

#[cfg(test)]
mod tests;
