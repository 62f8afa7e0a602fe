//! Times in memcached's commands: seconds from now, or, above 30 days, a date.
//!
//! The clock of the tables counts like dates: seconds since 1970.

use dunlin_store::Seconds;

use crate::number;
use crate::operation::Expiry;

/// The longest time that is counted from now: 30 days, in seconds.
const LONGEST_DELAY: u32 = 60 * 60 * 24 * 30;

/// The time at which an item expires, for a client's time: never for 0, at once for a negative
/// time.
pub(crate) fn read(word: &[u8], now: Seconds) -> Option<Expiry> {
    let time: i32 = number::read(word)?;
    Some(match u32::try_from(time) {
        Ok(0) => None,
        Ok(time) => Some(second(time, now)),
        Err(_) => Some(Seconds(now.0.saturating_sub(1).max(1))),
    })
}

/// The second of a flush: now, unless the client gives a time above 0.
pub(crate) fn flush(word: &[u8], now: Seconds) -> Option<Seconds> {
    let time: i32 = number::read(word)?;
    Some(match u32::try_from(time) {
        Ok(0) | Err(_) => now,
        Ok(time) => second(time, now),
    })
}

fn second(time: u32, now: Seconds) -> Seconds {
    if time <= LONGEST_DELAY {
        return Seconds(now.0.saturating_add(time));
    }
    Seconds(time)
}
