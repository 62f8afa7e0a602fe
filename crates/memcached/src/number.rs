//! Numbers as C's `strtol` reads them, because clients rely on it: white space and a sign may
//! precede the digits, and white space after them ends the number.
//!
//! Unlike `strtol`, this refuses a number that its type cannot hold, instead of returning another
//! one.

/// Reads a number that `T` can hold.
pub(crate) fn read<T: TryFrom<i128>>(word: &[u8]) -> Option<T> {
    let word = word.trim_ascii_start();
    let (is_negative, digits) = match word.split_first()? {
        (b'-', digits) => (true, digits),
        (b'+', digits) => (false, digits),
        _ => (false, word),
    };
    let end = digits.iter().position(|byte| !byte.is_ascii_digit());
    let (digits, rest) = digits.split_at(end.unwrap_or(digits.len()));
    let is_whole = rest.first().is_none_or(u8::is_ascii_whitespace);
    if digits.is_empty() || !is_whole {
        return None;
    }
    let mut number = 0_i128;
    for digit in digits {
        number = number.checked_mul(10)?.checked_add((digit - b'0').into())?;
    }
    T::try_from(if is_negative { -number } else { number }).ok()
}

/// Appends a number in decimal.
pub(crate) fn write(out: &mut Vec<u8>, number: impl Into<u64>) {
    let mut number = number.into();
    let mut digits = [0; 20];
    let mut at = digits.len();
    loop {
        at -= 1;
        digits[at] = b'0' + u8::try_from(number % 10).expect("it is a digit");
        number /= 10;
        if number == 0 {
            break;
        }
    }
    out.extend_from_slice(&digits[at..]);
}

#[cfg(test)]
mod tests;
