//! The keys of a partition that clients read most: the answer to
//! [`Whole::Hot`](super::whole::Whole::Hot).
//!
//! ```text
//! 8, 0, number of keys u16, 0 u32, gets that were sampled u64; then for each key its samples u64,
//! its length u8, and the key; the most samples first
//! ```

use super::cursor::Cursor;
use super::format::{MAX_KEYS, Malformed};

/// The first byte of the answer.
const HOT: u8 = 8;

/// The keys that clients read most, found by a sample of about one get in 64.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct HotKeys {
    /// Number of sampled gets. Now and then it is halved, together with the numbers of the keys.
    pub samples: u64,
    /// Keys with their numbers of samples, in descending order. The number of a rare key may be a
    /// little too high.
    pub keys: Vec<(Vec<u8>, u64)>,
}

impl HotKeys {
    /// The bytes of an answer with all keys.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let count = u16::try_from(self.keys.len()).expect("a partition follows a few");
        let mut bytes = vec![HOT, 0];
        bytes.extend_from_slice(&count.to_le_bytes());
        bytes.extend_from_slice(&[0; 4]);
        bytes.extend_from_slice(&self.samples.to_le_bytes());
        for (key, samples) in &self.keys {
            bytes.extend_from_slice(&samples.to_le_bytes());
            bytes.push(u8::try_from(key.len()).expect("a key has at most 250 bytes"));
            bytes.extend_from_slice(key);
        }
        bytes
    }

    /// Reads an answer.
    ///
    /// # Errors
    /// If the bytes are not such an answer.
    pub fn decode(bytes: &[u8]) -> Result<Self, Malformed> {
        let mut cursor = Cursor(bytes);
        let [HOT, 0] = cursor.take()? else {
            return Err(Malformed);
        };
        let count = usize::from(cursor.u16()?);
        cursor.zeros::<4>()?;
        if count > MAX_KEYS {
            return Err(Malformed);
        }
        let mut hot = Self {
            samples: cursor.u64()?,
            keys: Vec::new(),
        };
        for _ in 0..count {
            let samples = cursor.u64()?;
            let len = cursor.u8()?;
            hot.keys.push((cursor.bytes(len.into())?.to_vec(), samples));
        }
        cursor.end()?;
        Ok(hot)
    }

    /// The share of a key among the sampled gets, from 0 to 1.
    #[must_use]
    pub fn share(&self, samples: u64) -> f64 {
        // Both are far below 2^52.
        samples as f64 / self.samples.max(1) as f64
    }
}
