//! Residence: the time that a request spent in the server, as a 16-bit float (rules W4 and S10).
//!
//! The client subtracts it from the time that it measured, so that a slow handler does not look
//! like a slow network (design §6; eRPC counted handler time as round-trip time).

#[cfg(test)]
mod tests;

/// A duration in nanoseconds with 5 bits of exponent and 11 bits of mantissa.
///
/// Values below 2048 ns are exact. Above, the encoded value is too small by less than 1 in 1024. It
/// is never too large, so subtracting it never makes the round trip too short.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Residence(pub u16);

const MANTISSA_BITS: u32 = 11;
const MANTISSA_MASK: u16 = (1 << MANTISSA_BITS) - 1;

impl Residence {
    /// The receiver must not take a round-trip sample from this packet.
    pub const NO_SAMPLE: Self = Self(u16::MAX);

    /// Nothing to subtract.
    pub const ZERO: Self = Self(0);

    /// Encodes `nanos`, rounding down; a value too large to encode becomes [`Self::NO_SAMPLE`].
    #[inline]
    #[expect(
        clippy::cast_possible_truncation,
        reason = "the mantissa has at most 11 bits, the exponent at most 5"
    )]
    pub const fn from_nanos(nanos: u64) -> Self {
        if nanos < 1 << MANTISSA_BITS {
            return Self(nanos as u16);
        }
        // The mantissa keeps its leading one, so that exponent 0 needs no special case.
        let exponent = 64 - MANTISSA_BITS - nanos.leading_zeros();
        if exponent > 31 {
            return Self::NO_SAMPLE;
        }
        let mantissa = (nanos >> exponent) as u16;
        let bits = ((exponent as u16) << MANTISSA_BITS) | (mantissa & MANTISSA_MASK);
        Self(bits)
    }

    /// The duration in nanoseconds, or `None` for [`Self::NO_SAMPLE`].
    #[inline]
    pub const fn to_nanos(self) -> Option<u64> {
        if self.0 == u16::MAX {
            return None;
        }
        let exponent = (self.0 >> MANTISSA_BITS) as u32;
        let mantissa = (self.0 & MANTISSA_MASK) as u64;
        Some(mantissa << exponent)
    }
}
