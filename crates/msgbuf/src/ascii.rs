//! Short texts of ASCII, without a look at each byte, as a safe function for crates that forbid
//! unsafe code. The standard library takes about ten instructions for each byte of a text that is
//! too short or not aligned for its words. Called by `dunlin-service` for metadata.

/// The bytes as text, if all are ASCII. For bytes that are not, `None`, even if they are UTF-8.
///
/// ```
/// # use dunlin_msgbuf::ascii;
/// assert_eq!(ascii(b"north"), Some("north"));
/// assert_eq!(ascii("n\u{f6}rd".as_bytes()), None);
/// ```
#[inline]
pub fn ascii(bytes: &[u8]) -> Option<&str> {
    // SAFETY: bytes that are all ASCII are UTF-8.
    is_ascii(bytes).then(|| unsafe { std::str::from_utf8_unchecked(bytes) })
}

/// Bytes of 4 to 16 are looked at as the first and the last ones, which may overlap.
#[inline]
fn is_ascii(bytes: &[u8]) -> bool {
    let all = match bytes.len() {
        17.. => return long_is_ascii(bytes),
        8.. => both(bytes, u64::from_le_bytes),
        4.. => both(bytes, |bytes| u32::from_le_bytes(bytes).into()),
        0 => 0,
        // These may be the same byte.
        len => (bytes[0] | bytes[len / 2] | bytes[len - 1]).into(),
    };
    all & HIGH == 0
}

/// The highest bit of each byte.
const HIGH: u64 = u64::from_le_bytes([0x80; 8]);

/// The bits of the first and the last `N` bytes.
#[inline]
fn both<const N: usize>(bytes: &[u8], word: impl Fn([u8; N]) -> u64) -> u64 {
    match (bytes.first_chunk(), bytes.last_chunk()) {
        (Some(first), Some(last)) => word(*first) | word(*last),
        _ => HIGH,
    }
}

/// A call, so that the loop is not in each caller, where it takes registers from short texts.
#[inline(never)]
fn long_is_ascii(bytes: &[u8]) -> bool {
    let words = bytes.as_chunks::<8>().0.iter().chain(bytes.last_chunk());
    let all = words.fold(0, |all, word| all | u64::from_le_bytes(*word));
    all & HIGH == 0
}

#[cfg(test)]
mod tests;
