//! A congestion control scheme that changes its rate at random: it tests the interface of schemes,
//! not their quality (design §7).

use dunlin_core::{BytesPerSec, CongestionControl, Nanos, Sample};

use crate::world::rng::Rng;

/// A scheme with random rates.
#[derive(Debug)]
pub(super) struct Whim {
    rng: Rng,
    rate: Option<BytesPerSec>,
}

impl Whim {
    pub(super) fn new(rng: Rng) -> Self {
        Self { rng, rate: None }
    }

    fn change(&mut self) {
        // From 1 MB/s, which is about one request in a tenth of a millisecond, to more than any
        // cable carries.
        let rate = BytesPerSec(self.rng.log_between(1_000_000, 100_000_000_000));
        self.rate = (!self.rng.one_in(3)).then_some(rate);
    }
}

impl CongestionControl for Whim {
    fn on_answer(&mut self, _sample: Sample) {
        self.change();
    }

    fn on_timeout(&mut self, _now: Nanos) {
        self.change();
    }

    fn rate(&self) -> Option<BytesPerSec> {
        self.rate
    }
}
