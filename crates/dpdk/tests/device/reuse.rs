//! Endpoints use few packets of their pools again and again, so that the packets stay in the caches
//! of processors.

use std::collections::BTreeSet;

use dunlin_core::transport::{Halves, PeerId, Rx, Tx};
use dunlin_dpdk::{Dpdk, DpdkRx, DpdkTx};
use dunlin_testkit::wait::until;
use dunlin_transport::connect::meet;

use crate::echo::info;
use crate::memif::packet_to;
use crate::{options, pair};

/// Packets of the longest burst.
const MOST: usize = 32;

/// Bursts in each direction: together they would use each packet of the pool.
const BURSTS: usize = 20_000;

/// Packets that a thread holds: those that it shows, those that it fills, and those in its cache.
const FEW: usize = MOST + MOST + 192;

type Ends = Halves<DpdkRx, DpdkTx>;

/// Sends a burst to an endpoint. Returns the addresses of the packets in which it came.
fn pass(packets: usize, from: &mut Ends, peer: PeerId, to: &mut Ends) -> Vec<usize> {
    from.tx.burst(&[packet_to(peer); MOST][..packets]);
    let mut places = Vec::new();
    until(|| {
        let count = to.rx.burst();
        places.extend((0..count).map(|it| to.rx.frame(it).bytes.as_ptr().addr()));
        places.len() == packets
    });
    places
}

#[test]
#[ignore = "needs DPDK"]
fn an_endpoint_receives_into_few_packets() {
    let place = |number| format!("ip=10.82.30.{number}/24");
    let (_socket, devices) = pair::devices(30, place);
    let [mut near, mut far] = devices.map(|device| {
        let mut options = options(&device);
        options.udp.pack = false;
        Dpdk::open(&options).unwrap()
    });
    let met = meet::<Dpdk>([&mut near, &mut far], &[info(1), info(2)]);
    let [to_far, to_near] = met.unwrap();
    let mut places = [(); 2].map(|()| BTreeSet::new());
    // Endpoints that talk have bursts of all lengths.
    let mut random = 1_u32;
    let mut any_length = || {
        random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        1 + (random >> 16) as usize % MOST
    };
    for _ in 0..BURSTS {
        places[0].extend(pass(any_length(), &mut near, to_far, &mut far));
        places[1].extend(pass(any_length(), &mut far, to_near, &mut near));
    }
    let counts = places.map(|it| it.len());
    assert!(counts.iter().all(|it| *it <= FEW), "{counts:?}");
}
