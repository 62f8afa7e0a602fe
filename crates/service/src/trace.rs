//! The trace that a request belongs to: the value of `traceparent`, by W3C's Trace Context (section
//! 3.2), in binary: version, trace, span of the caller, flags.

use std::fmt;
use std::str::FromStr;

/// Bytes of the binary form.
pub(crate) const LEN: usize = 26;

/// The places of the fields in the binary form, in order.
const FIELDS: [std::ops::Range<usize>; 4] = [0..1, 1..17, 17..25, 25..26];

/// A trace, and the span in it that made the request.
///
/// ```
/// use dunlin_service::{NotATrace, TraceParent};
///
/// let text = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
/// let trace: TraceParent = text.parse()?;
/// assert_eq!(trace.to_string(), text);
/// assert!(trace.is_sampled());
/// # Ok::<(), NotATrace>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TraceParent([u8; LEN]);

/// The text is not a `traceparent`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NotATrace;

impl TraceParent {
    /// A trace of version 0.
    pub fn new(trace: [u8; 16], span: [u8; 8], is_sampled: bool) -> Self {
        let mut bytes = [0; LEN];
        bytes[FIELDS[1].clone()].copy_from_slice(&trace);
        bytes[FIELDS[2].clone()].copy_from_slice(&span);
        bytes[LEN - 1] = u8::from(is_sampled);
        Self(bytes)
    }

    /// The number of the trace.
    pub fn trace(&self) -> [u8; 16] {
        let [_, trace @ .., _] = self.0.first_chunk::<18>().expect("it is longer");
        *trace
    }

    /// The number of the span that made the request.
    pub fn span(&self) -> [u8; 8] {
        let [span @ .., _] = self.0.last_chunk::<9>().expect("it is longer");
        *span
    }

    /// Whether the caller records its spans.
    pub const fn is_sampled(&self) -> bool {
        self.0[LEN - 1] & 1 != 0
    }

    pub(crate) const fn bytes(&self) -> &[u8] {
        &self.0
    }

    pub(crate) const fn from_bytes(bytes: [u8; LEN]) -> Self {
        Self(bytes)
    }
}

impl FromStr for TraceParent {
    type Err = NotATrace;

    fn from_str(text: &str) -> Result<Self, NotATrace> {
        let mut bytes = [0; LEN];
        let mut parts = text.split('-');
        for field in FIELDS {
            let part = parts.next().ok_or(NotATrace)?.as_bytes();
            let out = &mut bytes[field];
            if part.len() != 2 * out.len() {
                return Err(NotATrace);
            }
            for (out, digits) in out.iter_mut().zip(part.chunks_exact(2)) {
                *out = digit(digits[0])? << 4 | digit(digits[1])?;
            }
        }
        let trace = Self(bytes);
        // Version 255 and numbers of zeros are invalid by W3C. Later versions may append parts.
        let is_known = bytes[0] == 0 && parts.next().is_none();
        let is_later = (1..u8::MAX).contains(&bytes[0]);
        let is_valid = trace.trace() != [0; 16] && trace.span() != [0; 8];
        match (is_known || is_later) && is_valid {
            true => Ok(trace),
            false => Err(NotATrace),
        }
    }
}

/// The value of a digit: W3C allows only lower case.
fn digit(byte: u8) -> Result<u8, NotATrace> {
    match byte {
        b'0'..=b'9' => Ok(byte - b'0'),
        b'a'..=b'f' => Ok(byte - b'a' + 10),
        _ => Err(NotATrace),
    }
}

impl fmt::Display for TraceParent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (place, field) in FIELDS.into_iter().enumerate() {
            f.write_str(if place == 0 { "" } else { "-" })?;
            for byte in &self.0[field] {
                write!(f, "{byte:02x}")?;
            }
        }
        Ok(())
    }
}

impl fmt::Display for NotATrace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the text is not a traceparent")
    }
}

impl std::error::Error for NotATrace {}
