//! Ranges of keys. Keys are ordered by their bytes, and a key comes before all longer keys of which
//! it is a prefix.

/// The longest key.
pub const MAX_KEY: usize = 255;

/// Where a range begins.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Start<'a> {
    /// At the first key.
    First,
    /// At this key, if it exists, or at the next one.
    At(&'a [u8]),
    /// At the key that follows this one.
    After(&'a [u8]),
}

/// The keys from a start to an end.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Range<'a> {
    /// The start.
    pub start: Start<'a>,
    /// The first key after the range; `None`: the range has no end.
    pub end: Option<&'a [u8]>,
}

/// The order in which a scan shows keys.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Direction {
    /// From the start to the end.
    Forward,
    /// From the end to the start.
    Backward,
}

impl<'a> Range<'a> {
    /// All keys.
    pub const ALL: Self = Self {
        start: Start::First,
        end: None,
    };

    /// The keys from `start` on, below `end`.
    #[must_use]
    pub const fn new(start: &'a [u8], end: &'a [u8]) -> Self {
        Self {
            start: Start::At(start),
            end: Some(end),
        }
    }

    /// The key at which the range starts, if it has one.
    #[must_use]
    pub const fn start_key(&self) -> Option<&'a [u8]> {
        match self.start {
            Start::First => None,
            Start::At(key) | Start::After(key) => Some(key),
        }
    }

    /// Whether its start is not above its end, and both are short enough for keys.
    #[must_use]
    pub fn is_valid(&self) -> bool {
        let (start, end) = (self.start_key(), self.end);
        let is_short = |key: &[u8]| key.len() <= MAX_KEY;
        start.is_none_or(is_short)
            && end.is_none_or(is_short)
            && !matches!((start, end), (Some(start), Some(end)) if start > end)
    }

    /// Whether the range has this key.
    #[must_use]
    pub fn contains(&self, key: &[u8]) -> bool {
        let starts = match self.start {
            Start::First => true,
            Start::At(start) => key >= start,
            Start::After(start) => key > start,
        };
        starts && self.end.is_none_or(|end| key < end)
    }

    /// The part of this range that a scan has not shown yet, after `last`.
    #[must_use]
    pub const fn after(self, last: &'a [u8], direction: Direction) -> Self {
        match direction {
            Direction::Forward => Self {
                start: Start::After(last),
                ..self
            },
            Direction::Backward => Self {
                end: Some(last),
                ..self
            },
        }
    }
}
