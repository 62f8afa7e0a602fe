//! The committed inputs of fuzz targets, for tests that replay them: `fuzz/corpus/TARGET.hex` has
//! one input per line, in hexadecimal. `cargo xtask corpus` writes these files.

use std::fs;

/// The committed inputs of a fuzz target.
///
/// # Panics
/// If the target has no file of inputs, or a line of it is not hexadecimal.
pub fn inputs(target: &str) -> Vec<Vec<u8>> {
    let corpus = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fuzz/corpus");
    let path = format!("{corpus}/{target}.hex");
    let text = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"));
    let input = |(at, line)| bytes(line).unwrap_or_else(|| panic!("{path}:{}: {line}", at + 1));
    text.lines().enumerate().map(input).collect()
}

/// The bytes of a line; `None` if it is not hexadecimal.
fn bytes(line: &str) -> Option<Vec<u8>> {
    let (digits, rest) = line.as_bytes().as_chunks::<2>();
    let value = |digit: u8| char::from(digit).to_digit(16);
    let byte = |[high, low]: &[u8; 2]| u8::try_from(value(*high)? << 4 | value(*low)?).ok();
    digits
        .iter()
        .map(byte)
        .collect::<Option<_>>()
        .filter(|_| rest.is_empty())
}

#[cfg(test)]
mod tests;
