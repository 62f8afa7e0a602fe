//! Which clients' errands a burst has.

use dunlin_memcached::{Alone, Connection, Partition, Process, Server, Standing};
use dunlin_store::{Config, Mode, Region, Seconds, Seed, Table};

use super::{Asker, BURST, Errand, Lane, Lanes};

/// The first of two threads; every key belongs to the other one.
struct Elsewhere(Alone);

impl Server for Elsewhere {
    fn partition(&mut self) -> Partition<'_> {
        self.0.partition()
    }

    fn standing(&self) -> Standing {
        Standing { number: 0, of: 2 }
    }

    fn owner(&self, _: &[u8]) -> u16 {
        1
    }

    fn process(&self) -> Process {
        self.0.process()
    }
}

/// An errand that fills a burst.
fn errand() -> Errand {
    let config = Config {
        mode: Mode::Store,
        seed: Seed::new([1, 2]),
        first_version: 1,
    };
    let table = Table::new(Region::new(1 << 20).unwrap(), config).unwrap();
    let mut connection = Connection::new(None);
    let set = format!("set k 0 0 {BURST}\r\n{}\r\n", "v".repeat(BURST));
    connection.receive(set.as_bytes());
    let mut server = Elsewhere(Alone::new(table, Process::default()));
    connection.run(&mut server, Seconds(1));
    connection.next_errand(1).unwrap()
}

/// The clients whose errands are in the lane's next burst.
fn next_burst(lane: &mut Lane) -> Vec<usize> {
    lane.load(|place| {
        let asker = Asker { place, client: 0 };
        Some((asker, errand()))
    });
    lane.burst.drain(..).map(|(asker, _)| asker.place).collect()
}

#[test]
fn clients_that_always_have_errands_fill_bursts_in_turn() {
    let mut lanes = Lanes::new(Standing { number: 0, of: 2 }, 0..2);
    for place in [4, 2, 4, 7] {
        lanes.queue(1, place);
    }
    let bursts = [(); 4].map(|()| next_burst(&mut lanes.lanes[1]));
    assert_eq!(bursts, [[4], [2], [7], [4]]);
}

#[test]
fn a_burst_that_has_not_left_takes_no_more_errands() {
    let mut lanes = Lanes::new(Standing { number: 0, of: 2 }, 0..2);
    lanes.queue(1, 3);
    let lane = &mut lanes.lanes[1];
    let mut given = 0;
    for _ in 0..3 {
        lane.load(|place| {
            given += 1;
            Some((Asker { place, client: 0 }, errand()))
        });
    }
    assert_eq!((given, lane.burst.len()), (1, 1));
}
