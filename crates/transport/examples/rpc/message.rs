//! The messages of the programs whose instructions are counted. The client writes fresh numbers to
//! the beginning of each request, and to its end if it is longer. The server reads them and writes
//! their sum to the same places of the response, where the client checks it. So the program itself
//! does the same work for 32 bytes and for 1000.

/// Numbers at the beginning of a message that the program writes and reads.
const FIRST: usize = 4;

/// Writes a request with the numbers from `first` on.
#[inline]
pub(crate) fn ask<const SIZE: usize>(request: &mut [u8], first: u64) {
    write::<SIZE>(request, |place| first + place);
}

/// The sum of a request's numbers.
#[inline]
pub(crate) fn sum_of<const SIZE: usize>(request: &[u8]) -> u64 {
    let numbers = read::<SIZE>(request).into_iter();
    numbers.fold(0, u64::wrapping_add)
}

/// Writes a response.
#[inline]
pub(crate) fn answer_with<const SIZE: usize>(response: &mut [u8], sum: u64) {
    write::<SIZE>(response, |_| sum);
}

/// Checks the response to a request with the numbers from `first` on.
#[inline]
pub(crate) fn check<const SIZE: usize>(response: &[u8], first: u64) {
    let sum: u64 = numbers::<SIZE>(|place| first + place).into_iter().sum();
    // Compares word by word, because on some processors a comparison of arrays calls `memcmp`.
    let answers = read::<SIZE>(response).into_iter();
    let pairs = answers.zip(numbers::<SIZE>(|_| sum));
    let difference = pairs.fold(0, |all, (answer, right)| all | (answer ^ right));
    assert_eq!(difference, 0, "a response is wrong");
}

/// A number for each place that the program writes and reads; 0 for a place that a message of
/// `SIZE` bytes does not have. Places are counted from 0; the last one is `FIRST`.
#[inline]
fn numbers<const SIZE: usize>(of: impl Fn(u64) -> u64) -> [u64; FIRST + 1] {
    let has = |place: usize| {
        if place < FIRST {
            SIZE / 8 > place
        } else {
            SIZE / 8 > FIRST
        }
    };
    std::array::from_fn(|place| if has(place) { of(place as u64) } else { 0 })
}

/// Reads the numbers of a message, which need not be aligned.
#[inline]
fn read<const SIZE: usize>(bytes: &[u8]) -> [u64; FIRST + 1] {
    let bytes = bytes
        .first_chunk::<SIZE>()
        .expect("messages have this length");
    let (words, _) = bytes.as_chunks();
    numbers::<SIZE>(|place| u64::from_le_bytes(words[at::<SIZE>(place)]))
}

#[inline]
fn write<const SIZE: usize>(out: &mut [u8], of: impl Fn(u64) -> u64) {
    let out = out
        .first_chunk_mut::<SIZE>()
        .expect("messages have this length");
    let (words, _) = out.as_chunks_mut();
    for place in 0..(FIRST as u64 + 1).min(SIZE as u64 / 8) {
        words[at::<SIZE>(place)] = of(place).to_le_bytes();
    }
}

/// The index of a place's number in a message of `SIZE` bytes, in words.
#[inline]
fn at<const SIZE: usize>(place: u64) -> usize {
    match usize::try_from(place) {
        Ok(place) if place < FIRST => place,
        _ => SIZE / 8 - 1,
    }
}
