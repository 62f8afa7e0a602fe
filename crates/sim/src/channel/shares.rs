//! The laws of shares: equal servers are within 10 % of each other, a server that is ten times as
//! slow gets at most 1/5 of an equal share, and a server that leaves moves at most 1.5/n of the
//! keys. With few calls, chance alone breaks such limits; a share may then be off by five standard
//! deviations, which happens by chance once in 1.7 million times.
//!
//! Called by the judge of picks, `client/picks.rs`.

/// The number of judgements.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Judged {
    /// Groups of equal servers.
    pub equal: u64,
    /// Groups with enough calls for the limit of 10 %.
    pub within_ten: u64,
    /// Servers that were ten times as slow.
    pub slow: u64,
    /// Servers that left.
    pub left: u64,
}

/// The least number of calls in an equal share that is judged. With fewer, chance hides every
/// difference.
const ENOUGH: u64 = 100;

impl Judged {
    /// The sum.
    #[must_use]
    pub const fn plus(self, other: Self) -> Self {
        Self {
            equal: self.equal + other.equal,
            within_ten: self.within_ten + other.within_ten,
            slow: self.slow + other.slow,
            left: self.left + other.left,
        }
    }
}

/// Five standard deviations of a count with this variance. The variance of a count of independent
/// calls is at most its mean.
const fn chance(variance: u64) -> u64 {
    (25 * variance).isqrt()
}

/// The variance of the difference between two counts of picks, as a multiple of their mean. The
/// first is for picks that do not depend on each other, the second for "the least of two". That
/// rule weighs outstanding calls by the times of the last answers, so picks that follow each other
/// are alike.
pub(super) const ALONE: u64 = 2;
pub(super) const ALIKE: u64 = 3;

/// Judges the calls of equal servers. `ahead`: the number of calls by which one of them may be
/// ahead from the beginning. `variance`: [`ALONE`] or [`ALIKE`].
pub(super) fn equal(
    got: impl Iterator<Item = u64> + Clone,
    ahead: u64,
    variance: u64,
) -> Result<Judged, String> {
    let servers = got.clone().count() as u64;
    let share = got.clone().sum::<u64>() / servers.max(1);
    if servers < 2 || share < ENOUGH {
        return Ok(Judged::default());
    }
    let (least, most) = (got.clone().min(), got.max());
    let apart = most.unwrap_or(0) - least.unwrap_or(0);
    let limit = (share / 10).max(chance(variance * share));
    match apart > limit + ahead {
        true => Err(format!(
            "the calls of equal servers differ by {apart}; the limit is {limit}"
        )),
        false => Ok(Judged {
            equal: 1,
            within_ten: u64::from(limit == share / 10),
            ..Judged::default()
        }),
    }
}

/// Judges a server that is ten times as slow as the others, and got `got` of the calls.
pub(super) fn slow(got: u64, calls: u64, servers: u64) -> Result<Judged, String> {
    let share = calls / servers;
    let fifth = share / 5;
    if share < ENOUGH {
        return Ok(Judged::default());
    }
    match got > fifth + chance(fifth) {
        true => Err(format!(
            "a slow server gets {got} calls, an equal share is {share}"
        )),
        false => Ok(Judged {
            slow: 1,
            ..Judged::default()
        }),
    }
}

/// Judges the keys that moved when one of `servers` left.
pub(super) fn moved(moved: u64, keys: u64, servers: u64) -> Result<Judged, String> {
    let share = keys / servers;
    if share < ENOUGH {
        return Ok(Judged::default());
    }
    match 2 * moved * servers > 3 * keys {
        true => Err(format!(
            "{moved} of {keys} keys move when one of {servers} servers leaves"
        )),
        false => Ok(Judged {
            left: 1,
            ..Judged::default()
        }),
    }
}

#[cfg(test)]
mod tests;
