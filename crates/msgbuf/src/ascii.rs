//! Recognises short ASCII texts without testing each byte, as a safe type for crates that forbid
//! unsafe code. The standard library takes about ten instructions per byte if a text is shorter
//! than its words or not aligned to them. Called by `dunlin-service` for metadata.
//!
//! Invariant: if a [`Texts`] is marked as ASCII, all its bytes are ASCII.

/// Bytes that contain texts. They are tested once: if all are ASCII, each part of them is a text
/// without another test.
///
/// ```
/// # use dunlin_msgbuf::Texts;
/// let both = Texts::new(b"a=north");
/// let (_, value) = both.split_at_checked(2).unwrap();
/// assert_eq!(value.text(), Some("north"));
/// assert_eq!(Texts::new("n\u{f6}rd".as_bytes()).text(), Some("n\u{f6}rd"));
/// assert_eq!(Texts::new(b"\xFF").text(), None);
/// ```
#[derive(Clone, Copy, Default, Debug)]
pub struct Texts<'a> {
    bytes: &'a [u8],
    /// False: some bytes may not be ASCII.
    are_ascii: bool,
}

impl<'a> Texts<'a> {
    /// Tests the bytes.
    #[inline]
    pub fn new(bytes: &'a [u8]) -> Self {
        let are_ascii = is_ascii(bytes);
        Self { bytes, are_ascii }
    }

    /// The bytes, whether they are ASCII or not.
    #[inline]
    pub const fn bytes(self) -> &'a [u8] {
        self.bytes
    }

    /// Whether all bytes are known to be ASCII.
    #[inline]
    pub const fn are_ascii(self) -> bool {
        self.are_ascii
    }

    /// The first `len` bytes, and those after them; `None` if there are fewer than `len`.
    #[inline]
    pub fn split_at_checked(self, len: usize) -> Option<(Self, Self)> {
        let Self { bytes, are_ascii } = self;
        let (first, rest) = bytes.split_at_checked(len)?;
        let of = |bytes| Self { bytes, are_ascii };
        Some((of(first), of(rest)))
    }

    /// All bytes as one text, if they are UTF-8.
    #[inline]
    pub fn text(self) -> Option<&'a str> {
        match self.are_ascii {
            // SAFETY: bytes that are all ASCII are UTF-8.
            true => Some(unsafe { std::str::from_utf8_unchecked(self.bytes) }),
            false => unknown_text(self.bytes),
        }
    }
}

/// The bytes as text, if they are UTF-8. They may be ASCII even if other bytes of their [`Texts`]
/// are not.
#[cold]
fn unknown_text(bytes: &[u8]) -> Option<&str> {
    let texts = Texts::new(bytes);
    match texts.are_ascii {
        true => texts.text(),
        false => std::str::from_utf8(bytes).ok(),
    }
}

/// For 4 to 32 bytes, two loads, which may overlap, read all of them: one from each end.
#[inline]
fn is_ascii(bytes: &[u8]) -> bool {
    let all = match bytes.len() {
        33.. => return long_is_ascii(bytes),
        16.. => both::<16>(bytes, |bytes| bits(&bytes)),
        8.. => both(bytes, u64::from_le_bytes),
        4.. => both(bytes, |bytes| u32::from_le_bytes(bytes).into()),
        0 => 0,
        // Some of these may be the same byte.
        len => (bytes[0] | bytes[len / 2] | bytes[len - 1]).into(),
    };
    all & HIGH == 0
}

/// The highest bit of each byte.
const HIGH: u64 = u64::from_le_bytes([0x80; 8]);

/// All words combined by OR.
#[inline]
fn bits(bytes: &[u8]) -> u64 {
    let (words, _) = bytes.as_chunks();
    words
        .iter()
        .fold(0, |all, word| all | u64::from_le_bytes(*word))
}

/// The words of the first and the last `N` bytes, combined by OR.
#[inline]
fn both<const N: usize>(bytes: &[u8], word: impl Fn([u8; N]) -> u64) -> u64 {
    match (bytes.first_chunk(), bytes.last_chunk()) {
        (Some(first), Some(last)) => word(*first) | word(*last),
        _ => HIGH,
    }
}

/// Not inlined, because each caller would give up registers to this loop, even for short texts.
#[inline(never)]
fn long_is_ascii(bytes: &[u8]) -> bool {
    let chunks = bytes.as_chunks::<32>().0.iter();
    let mut chunks = chunks.chain(bytes.last_chunk());
    chunks.all(|chunk| bits(chunk) & HIGH == 0)
}

#[cfg(test)]
mod tests;
