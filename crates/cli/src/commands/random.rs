//! Random numbers of the system, for names and seeds.

use std::io::Read;

use anyhow::Context;

/// Random words.
///
/// # Errors
/// The system gives none.
pub(crate) fn words() -> anyhow::Result<[u64; 2]> {
    let mut bytes = [0; 16];
    let mut source = std::fs::File::open("/dev/urandom").context("the system's random numbers")?;
    source.read_exact(&mut bytes)?;
    let word = u128::from_le_bytes(bytes);
    #[expect(clippy::cast_possible_truncation, reason = "halves of a word")]
    Ok([word as u64, (word >> 64) as u64])
}
