//! Counters: values that are decimal numbers, changed in place (memcached's `incr`, `decr`).

use std::fmt;

use crate::item::{Header, Seconds, Version};
use crate::table::body::{Found, Table};
use crate::table::key::Key;
use crate::table::pending::Writing;
use crate::table::write::WriteError;

/// Digits of the largest number.
const DIGITS: usize = 20;

/// The change of a counter.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Delta {
    /// Up; past the largest number, the count continues from 0.
    Up(u64),
    /// Down, but not below 0.
    Down(u64),
}

/// The reason why a counter did not change.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CounterError {
    /// There is no item.
    Absent,
    /// The item has another version.
    VersionDiffers,
    /// The item's value is not a decimal number below 2^64.
    NotANumber,
    /// The new number has more digits, and there is no memory for it.
    NoMemory,
}

impl Table {
    /// Changes a counter, if it has the given version. With `None`, changes any version. Returns
    /// the counter's number and new version. A number that becomes shorter is padded with spaces,
    /// as in memcached.
    ///
    /// # Errors
    /// [`CounterError`]; the item, if there is one, is unchanged.
    pub fn count(
        &mut self,
        key: &Key<'_>,
        delta: Delta,
        if_version: Option<Version>,
        now: Seconds,
    ) -> Result<(u64, Version), CounterError> {
        let (full, own) = (CounterError::NoMemory, Writing::default());
        self.retry(full, own, now, |table| {
            table.try_count(key, delta, if_version, now)
        })
    }

    fn try_count(
        &mut self,
        key: &Key<'_>,
        delta: Delta,
        if_version: Option<Version>,
        now: Seconds,
    ) -> Result<(u64, Version), CounterError> {
        let found = self.find(key, now).ok_or(CounterError::Absent)?;
        if if_version.is_some_and(|version| version.0 != found.header.version) {
            return Err(CounterError::VersionDiffers);
        }
        let value = self.item(&found).value().as_slice();
        let old = value.and_then(number).ok_or(CounterError::NotANumber)?;
        let new = match delta {
            Delta::Up(by) => old.wrapping_add(by),
            Delta::Down(by) => old.saturating_sub(by),
        };
        let version = self.set_number(key, &found, new, now)?;
        self.stats.writes += 1;
        Ok((new, version))
    }

    fn set_number(
        &mut self,
        key: &Key<'_>,
        found: &Found,
        new: u64,
        now: Seconds,
    ) -> Result<Version, CounterError> {
        let mut digits = [b' '; DIGITS];
        let len = write_digits(new, &mut digits);
        let len = len.max((found.header.value_len as usize).min(DIGITS));
        let header = Header {
            last_access: now.0,
            ..found.header
        };
        match self.put(key, Some(*found), header, (&digits[..len], None), now) {
            Ok(version) => Ok(version),
            Err(WriteError::NoMemory) => Err(CounterError::NoMemory),
            Err(error) => unreachable!("a number is short, and the item was found: {error}"),
        }
    }
}

/// Reads a value as a number: digits, then spaces.
fn number(value: &[u8]) -> Option<u64> {
    let digits = value.trim_ascii_end();
    if digits.is_empty() {
        return None;
    }
    digits.iter().try_fold(0_u64, |number, digit| {
        let digit = char::from(*digit).to_digit(10)?;
        number.checked_mul(10)?.checked_add(digit.into())
    })
}

/// Writes a number at the start of `digits`, and returns its number of digits.
fn write_digits(number: u64, digits: &mut [u8; DIGITS]) -> usize {
    let text = number.to_string();
    digits[..text.len()].copy_from_slice(text.as_bytes());
    text.len()
}

impl fmt::Display for CounterError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Absent => "there is no item with this key",
            Self::VersionDiffers => "the item has another version",
            Self::NotANumber => "the value is not a number",
            Self::NoMemory => "all memory is used",
        })
    }
}

impl std::error::Error for CounterError {}
