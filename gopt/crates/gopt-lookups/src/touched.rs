//! Counts the cache lines that a look-up reads, so that its rate can be compared with the rate at
//! which the machine reads random lines. Each table reports its own path: see [`Lookup::touch`].
//!
//! Invariant: a line is kept only if no second-level cache holds its array, because only such lines
//! are expected to miss.
//!
//! [`Lookup::touch`]: crate::Lookup::touch

/// Bytes of a cache line.
const LINE_BYTES: usize = 64;

/// An array of at most this many bytes lies in a second-level cache after a few look-ups.
pub const CACHED_BYTES: usize = 4 << 20;

/// The lines that one look-up has read so far.
///
/// ```
/// use gopt_lookups::touched::Touched;
///
/// let large = vec![0_u64; 1 << 20];
/// let mut touched = Touched::default();
/// touched.read(&large, 0);
/// touched.read(&large, 1 << 19);
/// touched.read(&large, 1 << 19);
/// touched.read(&[7_u64], 0);
/// assert_eq!(touched.take(), 2);
/// ```
#[derive(Debug, Default)]
pub struct Touched {
    lines: Vec<usize>,
}

impl Touched {
    /// Notes that `array[at]` was read, with all its lines. Does nothing if there is no such value,
    /// or if a cache holds the array.
    pub fn read<T>(&mut self, array: &[T], at: usize) {
        if size_of_val(array) <= CACHED_BYTES {
            return;
        }
        if let Some(value) = array.get(at) {
            let start = std::ptr::from_ref(value).addr();
            let last = start + size_of::<T>().max(1) - 1;
            self.lines.extend(start / LINE_BYTES..=last / LINE_BYTES);
        }
    }

    /// The number of lines that the look-up has read, each counted once. Starts a new count.
    pub fn take(&mut self) -> usize {
        self.lines.sort_unstable();
        self.lines.dedup();
        let count = self.lines.len();
        self.lines.clear();
        count
    }
}
