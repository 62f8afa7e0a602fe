//! A line as words between spaces.

use crate::limits::MAX_WORDS;

/// The first words of a line, at most [`MAX_WORDS`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct Words<'a> {
    words: [&'a [u8]; MAX_WORDS],
    len: usize,
}

impl<'a> Words<'a> {
    pub(crate) fn new(line: &'a [u8]) -> Self {
        let mut words = [&b""[..]; MAX_WORDS];
        let mut len = 0;
        for word in each(line).take(MAX_WORDS) {
            words[len] = word;
            len += 1;
        }
        Self { words, len }
    }

    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Word `number`; empty if there are fewer.
    pub(crate) fn at(&self, number: usize) -> &'a [u8] {
        self.words[number]
    }

    pub(crate) fn last(&self) -> &'a [u8] {
        self.words[self.len.saturating_sub(1)]
    }

    /// The words from index `number` on.
    pub(crate) fn from(&self, number: usize) -> &[&'a [u8]] {
        &self.words[number.min(self.len)..self.len]
    }

    /// Whether the last word asks for no answer.
    pub(crate) fn is_quiet(&self) -> bool {
        self.last() == b"noreply"
    }
}

/// All words of a line.
pub(crate) fn each(line: &[u8]) -> impl Iterator<Item = &[u8]> {
    line.split(|byte| *byte == b' ')
        .filter(|word| !word.is_empty())
}

/// The line up to its first zero byte, which ends it for memcached.
pub(crate) fn visible(line: &[u8]) -> &[u8] {
    let end = line.iter().position(|byte| *byte == 0);
    &line[..end.unwrap_or(line.len())]
}

#[cfg(test)]
mod tests;
