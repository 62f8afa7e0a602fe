//! Base64 with padding (RFC 4648 §4), which meta commands use for keys that are not text.
//!
//! Decoding is as lenient as memcached's: it skips bytes outside the alphabet, and padding ends the
//! text.

const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// Appends bytes in base64, in which a meta command with the flag `b` has its key.
///
/// ```
/// let mut command = b"mg ".to_vec();
/// dunlin_memcached::encode_base64(&mut command, b"a b");
/// command.extend_from_slice(b" b v\r\n");
/// assert_eq!(command, b"mg YSBi b v\r\n");
/// ```
pub fn encode(out: &mut Vec<u8>, bytes: &[u8]) {
    for group in bytes.chunks(3) {
        let byte = |at: usize| u32::from(group.get(at).copied().unwrap_or(0));
        let word = byte(0) << 16 | byte(1) << 8 | byte(2);
        for place in 0..4 {
            let digit = word >> (18 - 6 * place) & 63;
            let is_padding = place > group.len();
            out.push(if is_padding {
                b'='
            } else {
                ALPHABET[digit as usize]
            });
        }
    }
}

/// Decodes text into the beginning of `out`, which must be at least as long, and returns the number
/// of decoded bytes; `None` if the text is not base64 or decodes to no bytes.
pub(crate) fn decode(text: &[u8], out: &mut [u8]) -> Option<usize> {
    let digits = text.iter().filter_map(|byte| digit(*byte));
    if digits.clone().count() % 4 != 0 {
        return None;
    }
    let (mut word, mut digits_seen, mut padding, mut len) = (0_u32, 0, 0, 0);
    for digit in digits {
        padding += usize::from(digit.is_none());
        word = word << 6 | digit.unwrap_or(0);
        digits_seen += 1;
        if digits_seen % 4 != 0 {
            continue;
        }
        if padding > 2 {
            return None;
        }
        let bytes = &word.to_be_bytes()[1..4 - padding];
        out[len..len + bytes.len()].copy_from_slice(bytes);
        len += bytes.len();
        word = 0;
        if padding > 0 {
            break;
        }
    }
    (len > 0).then_some(len)
}

/// The value of a digit, or `Some(None)` for padding; `None` for any other byte.
fn digit(byte: u8) -> Option<Option<u32>> {
    let digit = match byte {
        b'A'..=b'Z' => byte - b'A',
        b'a'..=b'z' => byte - b'a' + 26,
        b'0'..=b'9' => byte - b'0' + 52,
        b'+' => 62,
        b'/' => 63,
        b'=' => return Some(None),
        _ => return None,
    };
    Some(Some(digit.into()))
}

#[cfg(test)]
mod tests;
