//! The visitor of a float. For an `f32`, it refuses numbers that this type cannot hold. It reads
//! the infinities and NaN from strings, because JSON has no numbers for them.

use std::fmt;

use serde::de::{Error, Unexpected, Visitor};

/// The visitor of a float.
pub(super) struct Float<V> {
    pub(super) inner: V,
    /// Whether the float is an `f32`.
    pub(super) is_narrow: bool,
}

/// Whether a number stays finite as an `f32`.
#[expect(
    clippy::cast_possible_truncation,
    reason = "the result of the cast is what this checks"
)]
pub(crate) const fn fits_f32(value: f64) -> bool {
    (value as f32).is_finite()
}

/// The infinity or NaN that [`ToString`] writes as this string; `None` for any other string.
#[cfg(feature = "reflect")]
pub(crate) fn not_finite(word: &str) -> Option<f64> {
    match word {
        "NaN" => Some(f64::NAN),
        "inf" => Some(f64::INFINITY),
        "-inf" => Some(f64::NEG_INFINITY),
        _ => None,
    }
}

impl<'de, V: Visitor<'de>> Visitor<'de> for Float<V> {
    type Value = V::Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.expecting(f)
    }

    #[inline]
    fn visit_f32<E: Error>(self, value: f32) -> Result<V::Value, E> {
        self.inner.visit_f32(value)
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<V::Value, E> {
        match !self.is_narrow || fits_f32(value) {
            true => self.inner.visit_f64(value),
            false => Err(E::invalid_value(Unexpected::Float(value), &self)),
        }
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<V::Value, E> {
        self.inner.visit_i64(value)
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<V::Value, E> {
        self.inner.visit_u64(value)
    }

    /// Reads the infinities and NaN, and other numbers too: keys of maps are strings in JSON.
    #[cfg(feature = "reflect")]
    fn visit_str<E: Error>(self, word: &str) -> Result<V::Value, E> {
        match (not_finite(word), word.parse::<f64>()) {
            (Some(value), _) => self.inner.visit_f64(value),
            (None, Ok(value)) if value.is_finite() => self.visit_f64(value),
            _ => Err(E::invalid_type(Unexpected::Str(word), &self)),
        }
    }
}
