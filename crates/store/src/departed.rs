//! Remembers keys whose items were evicted from a cache. If such a key is written again soon, a
//! client has missed it. So its item is worth more than a new one, which may belong to a scan and
//! never be read (ARC's ghosts: Megiddo and Modha, FAST 2003).
//!
//! A key is remembered by 15 bits of its hash, in a line of 32 keys that the hash selects; a new
//! key replaces the oldest one of its line. One new key in a thousand is mistaken for a remembered
//! one, which only lets its item stay longer. The heap has room for at most one key for each 512
//! bytes of the region. If few of the keys of new items are remembered, most requests that miss
//! belong to scans.

/// Keys of a line, which is a cache line.
const LINE: usize = 32;

/// Bytes of the region for each key.
const BYTES_PER_KEY: usize = 512;

/// After this number of keys that were looked for, both counts are halved.
const HALVED_AT: u32 = 1 << 12;

/// The remembered keys. A 0 marks an empty place.
#[derive(Debug)]
pub(crate) struct Departed {
    lines: Box<[[u16; LINE]]>,
    /// The number of keys that were recently looked for, and of those that were remembered.
    asked: u32,
    returned: u32,
}

impl Departed {
    /// For a cache in a region of this length.
    pub(crate) fn new(len: usize) -> Self {
        let lines = (len / BYTES_PER_KEY / LINE).max(1);
        Self {
            lines: vec![[0; LINE]; 1 << lines.ilog2()].into(),
            asked: 0,
            returned: 0,
        }
    }

    /// Remembers the key with this hash.
    pub(crate) fn on_left(&mut self, hash: u64) {
        let (line, mark) = self.place(hash);
        line.copy_within(..LINE - 1, 1);
        line[0] = mark;
    }

    /// Whether the key with this hash is remembered. Also forgets the key, because its item is
    /// back.
    pub(crate) fn takes(&mut self, hash: u64) -> bool {
        self.asked += 1;
        if self.asked == HALVED_AT {
            self.asked /= 2;
            self.returned /= 2;
        }
        let (line, mark) = self.place(hash);
        let Some(at) = line.iter().position(|each| *each == mark) else {
            return false;
        };
        line.copy_within(at + 1.., at);
        line[LINE - 1] = 0;
        self.returned += 1;
        true
    }

    /// Whether most of the keys that were recently looked for were remembered.
    pub(crate) fn most_return(&self) -> bool {
        self.returned > self.asked / 2
    }

    /// The line of a hash, and its mark in the line, which comes from other bits of the hash.
    fn place(&mut self, hash: u64) -> (&mut [u16; LINE], u16) {
        let [.., low, high] = hash.to_le_bytes();
        let mark = u16::from_le_bytes([low, high]) | 1;
        let line = hash >> 16 & (self.lines.len() as u64 - 1);
        let line = usize::try_from(line).expect("it is below the number of lines");
        (&mut self.lines[line], mark)
    }
}

#[cfg(test)]
mod tests;
