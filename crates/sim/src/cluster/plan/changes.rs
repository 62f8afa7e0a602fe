//! Changes of a drawn plan: to many short echoes, to handlers that take long, to a calm network.
//! Called by `plan` and, for variants, by `differential`.

use dunlin_core::transport::LANE_PACKET;
use dunlin_core::{Bypasses, Nanos, Scheme};

use super::{Handshakes, NEVER_FORGET, Plan};
use crate::cluster::Kind;
use crate::world::net::FaultRates;
use crate::world::rng::{Ppm, Rng};

/// A timeout that is longer than any round trip without loss.
const PATIENT: Nanos = Nanos::from_millis(20);

/// Least data bytes per packet in plans with long messages of one packet.
const LEAST_LONG: u32 = 1024;

impl Plan {
    /// Removes everything that makes calls end early or packets leave again: faults, attacks,
    /// cancellations, deadlines, and slow handlers.
    pub fn calm(&mut self) {
        self.rates = FaultRates::NONE;
        self.acts.clear();
        self.attacks.clear();
        self.insider = false;
        self.handshakes = Handshakes::NONE;
        self.paced = false;
        let work = &mut self.workload;
        (work.cancels.0, work.deadlines.0) = (Ppm::NEVER, Ppm::NEVER);
        work.disconnects = Ppm::NEVER;
        work.sloth = None;
        // Nested calls have deadlines.
        let is_quick = |kind: &Kind| !matches!(kind, Kind::Slow | Kind::Nested);
        work.kinds.retain(is_quick);
        work.kinds.push(Kind::Echo);
        let endpoint = &mut self.endpoint;
        endpoint.response_hold = NEVER_FORGET;
        endpoint.rto_floor = endpoint.rto_floor.max(PATIENT);
        endpoint.rto_initial = endpoint.rto_initial.max(PATIENT);
    }

    /// Changes the plan so that handlers take longer than the failure timeout and nothing else
    /// fails: endpoints forget no response, give up no large request, and accept sessions in time.
    pub(super) fn slow_down(&mut self, rng: &mut Rng) {
        self.patience = self.patience.max(Nanos::from_secs(2));
        self.linger = self.linger.max(Nanos::from_secs(2));
        self.endpoint.failure_timeout = Nanos(rng.log_between(20_000_000, 40_000_000));
        self.endpoint.response_hold = NEVER_FORGET;
        let work = &mut self.workload;
        work.sloth = Some(self.endpoint.failure_timeout.times(4));
        work.sizes.large = Ppm::NEVER;
        work.sizes.small = work.sizes.small.min(work.sizes.data_size);
        work.sizes.huge = 0;
        work.kinds.extend([Kind::Slow; 2]);
    }

    /// Changes the plan to many short echoes in quick succession: the usual work of an endpoint,
    /// for which the common path is made. Faults, acts and attacks stay the same.
    pub(super) fn hasten(&mut self, rng: &mut Rng) {
        self.endpoint.bypasses = Bypasses::default();
        self.paced = false;
        if rng.one_in(2) {
            self.endpoint.scheme = Some(Scheme::None);
        }
        let work = &mut self.workload;
        work.calls = u32::try_from(rng.between(200, 400)).unwrap_or(400);
        work.burst = *rng.pick(&[8, 30]);
        work.gap = Nanos(rng.log_between(500, 20_000));
        work.sizes.small = work.sizes.small.min(work.sizes.data_size);
        work.sizes.large = *rng.pick(&[Ppm::NEVER, Ppm::NEVER, Ppm(20_000)]);
        work.sizes.huge = 0;
        work.kinds = vec![Kind::Echo; 24];
        work.kinds.push(Kind::Empty);
        work.kinds.push(*rng.pick(&Kind::ALL));
        work.windows = vec![*rng.pick(&[1, 8, 16, 64])];
        work.credits = vec![*rng.pick(&[8, 32, 256])];
        if rng.one_in(2) {
            self.make_alike(rng);
        }
    }

    /// Changes the plan so that all small messages have the same length: as long as a few lines of
    /// a lane, or longer.
    fn make_alike(&mut self, rng: &mut Rng) {
        let (net, sizes) = (&mut self.net, &mut self.workload.sizes);
        sizes.alike = true;
        // Requests that ask for a sample do not take the common path.
        self.endpoint.scheme = Some(Scheme::None);
        sizes.small = match rng.one_in(2) {
            true => rng.between(16, sizes.small),
            false => {
                net.data_size = net.data_size.max(LEAST_LONG);
                sizes.data_size = net.data_size.into();
                rng.between(200, sizes.data_size.min(LANE_PACKET as u64))
            }
        };
    }
}
