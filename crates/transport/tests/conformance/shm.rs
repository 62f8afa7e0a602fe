//! Shared memory, between threads of one process: once as between processes that do not trust each
//! other, once with packets that are read in place.

use dunlin_core::transport::Halves;
use dunlin_transport::shm::{Options, Shm, ShmRx, ShmTx};

use crate::harness::Harness;
use crate::suite;

struct Copied;

impl Harness for Copied {
    type T = Shm;
    const COUNTS_FULL: bool = true;

    fn open() -> Halves<ShmRx, ShmTx> {
        Shm::open(Options::default()).unwrap()
    }
}

struct InPlace;

impl Harness for InPlace {
    type T = Shm;
    const COUNTS_FULL: bool = true;

    fn open() -> Halves<ShmRx, ShmTx> {
        let trust_peer = true;
        Shm::open(Options {
            trust_peer,
            ..Options::default()
        })
        .unwrap()
    }
}

struct Small;

impl Harness for Small {
    type T = Shm;
    const COUNTS_FULL: bool = true;

    fn open() -> Halves<ShmRx, ShmTx> {
        let (data_size, cells, max_peers) = (1500, 128, 80);
        let options = Options {
            data_size,
            cells,
            max_peers,
            ..Options::default()
        };
        Shm::open(options).unwrap()
    }
}

#[test]
fn shm_conforms() {
    suite::run_all::<Copied>();
}

#[test]
fn shm_in_place_conforms() {
    suite::run_all::<InPlace>();
}

#[test]
fn shm_with_small_rings_conforms() {
    suite::run_all::<Small>();
}
