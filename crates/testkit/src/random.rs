//! Random numbers for tests, from a seed that the test gives.

use dunlin_core::Rng;

/// The random numbers of a seed, from the generator that the endpoint itself uses.
#[derive(Clone, Debug)]
pub struct Random(Rng);

impl Random {
    /// The numbers of this seed.
    pub const fn new(seed: u64) -> Self {
        Self(Rng::new(seed))
    }

    /// Any 64 bits.
    pub const fn word(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// A number below `limit`.
    ///
    /// # Panics
    /// If `limit` is 0.
    pub fn below(&mut self, limit: usize) -> usize {
        usize::try_from(self.word() % limit as u64).expect("it is less than a usize")
    }

    /// One of several things.
    ///
    /// # Panics
    /// If `things` is empty.
    pub fn pick<T: Copy>(&mut self, things: &[T]) -> T {
        things[self.below(things.len())]
    }

    /// Whether a thing that happens once in `times` happens now.
    ///
    /// # Panics
    /// If `times` is 0.
    pub fn one_in(&mut self, times: usize) -> bool {
        self.below(times) == 0
    }
}
