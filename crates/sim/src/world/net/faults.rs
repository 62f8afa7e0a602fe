//! Faults of a frame, their rates, and the bytes of a damaged frame.
//!
//! Invariant: every fault is drawn from the network's own stream, and none is drawn once
//! [`FaultRates::NONE`] is set, so that the network is sound in the liveness phase of a run. Called
//! by `net` for every frame that reaches the switch.

use std::ops::Range;

use dunlin_core::Nanos;

use crate::world::rng::{Ppm, Rng};

/// How often each fault strikes a frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FaultRates {
    /// The frame vanishes.
    pub loss: Ppm,
    /// A burst of losses, which takes only frames to the same host, begins with the frame.
    pub burst: Ppm,
    /// The most frames that a burst takes; all lengths up to that are equally likely.
    pub burst_frames: u32,
    /// The frame arrives twice.
    pub duplicate: Ppm,
    /// Later frames overtake the frame.
    pub reorder: Ppm,
    /// The longest delay of a reordered frame or a second copy.
    pub reorder_by: Nanos,
    /// Whether the delays of reordered frames are distributed uniformly up to `reorder_by`. If not,
    /// their logarithms are.
    pub evenly: bool,
    /// Bits of the frame flip, or the frame is cut or stretched.
    pub damage: Ppm,
    /// Share of the damaged frames that the receiver's checksum does not notice.
    pub unnoticed: Ppm,
    /// The port of the switch stops for a while, and all later frames are late.
    pub spike: Ppm,
    /// The longest such stop.
    pub spike_by: Nanos,
}

impl FaultRates {
    /// A sound network.
    pub const NONE: Self = Self {
        loss: Ppm::NEVER,
        burst: Ppm::NEVER,
        burst_frames: 0,
        duplicate: Ppm::NEVER,
        reorder: Ppm::NEVER,
        reorder_by: Nanos::ZERO,
        evenly: false,
        damage: Ppm::NEVER,
        unnoticed: Ppm::NEVER,
        spike: Ppm::NEVER,
        spike_by: Nanos::ZERO,
    };

    /// Faults from a seed: each kind is absent, rare or common, independently of the others. There
    /// are no bursts.
    pub fn draw(rng: &mut Rng) -> Self {
        let mut often = |most: u64| match rng.below(3) {
            0 => Ppm::NEVER,
            1 => ppm(rng.log_between(100, most / 10)),
            _ => ppm(rng.log_between(most / 10, most)),
        };
        let (loss, duplicate, reorder) = (often(300_000), often(200_000), often(300_000));
        let (damage, spike) = (often(50_000), often(10_000));
        Self {
            loss,
            burst: Ppm::NEVER,
            burst_frames: 0,
            duplicate,
            reorder,
            reorder_by: Nanos(rng.log_between(2_000, 20_000_000)),
            evenly: false,
            damage,
            unnoticed: Ppm::percent(30),
            spike,
            spike_by: Nanos(rng.log_between(10_000, 50_000_000)),
        }
    }
}

/// The faults that strike one frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Fate {
    /// Whether the frame vanishes.
    pub(super) lost: bool,
    /// The length of the burst of losses that begins with the frame, if one does.
    pub(super) burst: Option<u32>,
    /// The kind of damage to the frame, if there is any.
    pub(super) damage: Option<Damage>,
    /// If later frames may overtake this one: its extra delay.
    pub(super) late: Option<Nanos>,
    /// If there is a second copy: its delay.
    pub(super) again: Option<Nanos>,
    /// If the port of the switch stops first: for how long.
    pub(super) stall: Option<Nanos>,
}

/// Whether the receiver's checksum detects the damage.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Damage {
    /// The checksum does, so the frame is dropped.
    Noticed,
    /// The checksum does not, so the frame goes on, changed.
    Unnoticed,
}

impl Fate {
    /// Draws what happens to the next frame.
    pub(super) fn draw(rates: &FaultRates, rng: &mut Rng) -> Self {
        let damage = rng
            .chance(rates.damage)
            .then(|| match rng.chance(rates.unnoticed) {
                true => Damage::Unnoticed,
                false => Damage::Noticed,
            });
        Self {
            lost: rng.chance(rates.loss),
            burst: rng.chance(rates.burst).then(|| {
                let most = u64::from(rates.burst_frames.max(1));
                u32::try_from(rng.between(1, most)).unwrap_or(u32::MAX)
            }),
            damage,
            late: match rates.evenly {
                true => rng
                    .chance(rates.reorder)
                    .then(|| Nanos(rng.between(1, rates.reorder_by.0.max(1)))),
                false => span(rng, rates.reorder, rates.reorder_by),
            },
            again: span(rng, rates.duplicate, rates.reorder_by),
            stall: span(rng, rates.spike, rates.spike_by),
        }
    }
}

/// Damages a frame in a way that the checksum does not detect: bits flip, only inside `reach`, or
/// the frame is cut short, or gets a tail of noise.
///
/// The scenario decides where bits may flip: a protocol without its own checksum cannot detect
/// damage to its payload, so the checkers must not blame the protocol for such damage.
pub(super) fn damage(bytes: &mut Vec<u8>, reach: &Range<usize>, rng: &mut Rng) {
    match rng.below(4) {
        0 => bytes.truncate(rng.index(bytes.len())),
        1 => {
            let tail = rng.index(40) + 1;
            let start = bytes.len();
            bytes.resize(start + tail, 0);
            rng.fill(&mut bytes[start..]);
        }
        _ => {
            let reach = reach.start..reach.end.min(bytes.len());
            for _ in 0..rng.between(1, 3) {
                if !reach.is_empty() {
                    let at = reach.start + rng.index(reach.len());
                    bytes[at] ^= 1 << rng.below(8);
                }
            }
        }
    }
}

fn span(rng: &mut Rng, often: Ppm, most: Nanos) -> Option<Nanos> {
    rng.chance(often)
        .then(|| Nanos(rng.log_between(1, most.0.max(1))))
}

fn ppm(n: u64) -> Ppm {
    Ppm(u32::try_from(n).unwrap_or(u32::MAX).min(Ppm::ALWAYS.0))
}

#[cfg(test)]
mod tests;
