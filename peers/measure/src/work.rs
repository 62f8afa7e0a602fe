//! The content of requests and responses, so that every measurement includes real work: every word
//! of a request comes from a fresh counter, the server answers with a function of all of them, and
//! the client checks every word of the answer. Sizes are multiples of eight bytes.

/// Writes request number `counter`.
#[inline]
pub(crate) fn fill(request: &mut [u8], counter: u64) {
    write(request, counter);
}

/// Reads the whole request, and writes a response of the same length.
#[inline]
pub(crate) fn answer(request: &[u8], response: &mut [u8]) {
    let words = request
        .as_chunks()
        .0
        .iter()
        .map(|it| u64::from_le_bytes(*it));
    write(response, !words.fold(0, u64::wrapping_add));
}

/// True if `response` answers request number `counter`, which had the same length.
#[inline]
pub(crate) fn is_answer(response: &[u8], counter: u64) -> bool {
    let words = response.len() as u64 / 8;
    let steps = words * words.saturating_sub(1) / 2;
    let first = !counter.wrapping_mul(words).wrapping_add(steps);
    let (chunks, _) = response.as_chunks();
    // The loop compares every word, without a branch for each.
    let differs =
        |(chunk, index): (&[u8; 8], u64)| u64::from_le_bytes(*chunk) ^ first.wrapping_add(index);
    let wrong = chunks.iter().zip(0..).map(differs);
    wrong.fold(0, |all, word| all | word) == 0
}

/// `first`, `first + 1`, and so on.
#[inline]
fn write(bytes: &mut [u8], first: u64) {
    for (chunk, index) in bytes.as_chunks_mut().0.iter_mut().zip(0..) {
        *chunk = first.wrapping_add(index).to_le_bytes();
    }
}
