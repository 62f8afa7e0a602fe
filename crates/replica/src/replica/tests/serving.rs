//! Puts of a client, over shared memory, while the replica that serves them makes an image of its
//! items for its disk. The work of each turn is counted, not its time: how many bytes of the image
//! it writes, and how many entries it drops.

use dunlin_core::transport::{Halves, Transport};
use dunlin_core::{Endpoint, SessionOptions};
use dunlin_testkit::instructions::{SharedTicks, endpoint};
use dunlin_testkit::session::connect;
use dunlin_transport::connect::{EndpointUid, PeerInfo, meet};
use dunlin_transport::shm::{self, Shm};

use super::*;
use crate::client::{Change, Client, ClientOptions, Token};
use crate::node::DROPPED;
use crate::service::serve;
use crate::wire::{Member, Members};
use crate::work::{Saved, Work};

/// Items before the image is begun.
const ITEMS: u32 = 3000;
/// Bytes of a slice.
const SLICE: usize = 4000;
/// Bytes of a value.
const VALUE: usize = 100;
/// The most bytes by which a slice may be longer: the head of the image and its last item.
const EXCESS: usize = 400;

type ShmHalves = Halves<<Shm as Transport>::Rx, <Shm as Transport>::Tx>;

/// A disk that has saved everything at once.
#[derive(Debug, Default)]
struct QuickDisk {
    saved: Saved,
    has_news: bool,
}

impl Disk for QuickDisk {
    fn take_seat(&mut self, _roster: &Roster) -> std::io::Result<()> {
        Ok(())
    }

    fn submit(&mut self, work: Work, _now: Nanos) {
        self.has_news = true;
        match work {
            Work::Write(write) => self.saved.number = write.number,
            Work::Checkpoint(_) => self.saved.checkpoints += 1,
        }
    }

    fn saved(&mut self, _now: Nanos) -> Saved {
        self.has_news = false;
        self.saved
    }

    fn has_news(&self, _now: Nanos) -> bool {
        self.has_news
    }

    fn wake_with(&mut self, _waker: Waker) {}
}

struct Pair {
    server: Endpoint<Shm, SharedTicks, Replica>,
    client: Endpoint<Shm, SharedTicks, Client>,
    puts: u64,
    /// The bytes of the image under way, and the index before the log's first entry, after the last
    /// turn.
    drawn: Option<usize>,
    base: u64,
    /// Turns that wrote a part of the image.
    slices: usize,
}

impl Pair {
    fn new() -> Self {
        let clock = SharedTicks::default();
        let mut halves = [(); 2].map(|()| Shm::open(shm::Options::default()).unwrap());
        let [near, far] = &mut halves;
        let info = |uid| PeerInfo::of_this_host(EndpointUid([uid; 16]));
        let peers: (_, _) = meet::<Shm>([near, far], &[info(1), info(2)])
            .unwrap()
            .into();
        let options = Options {
            slice_bytes: SLICE,
            ..Options::DEFAULT
        };
        let mut replica = Replica::with_disk(1, None, Box::new(QuickDisk::default()), options);
        let address = "host:7".to_owned();
        let member = Member {
            id: 1,
            address: address.clone(),
        };
        replica
            .on_bootstrap(Members::new([member]).unwrap())
            .unwrap();
        let [near, far]: [ShmHalves; 2] = halves;
        let mut server = endpoint(replica, clock.clone(), near, 1);
        serve(&mut server);
        let client = Client::new([address.clone()], ClientOptions::DEFAULT);
        let mut client = endpoint(client, clock.clone(), far, 2);
        client.on_completion(|client, done, cx| {
            assert!(client.on_done(done, cx).is_none());
        });
        client.on_session(|client, event, cx| client.on_session(event, cx));
        assert_eq!(client.app_mut().wish(Nanos(1)), Some(address.clone()));
        let numbers = [peers.1, peers.0];
        let [session, _] = connect(&mut client, &mut server, numbers, &SessionOptions::DEFAULT);
        client.app_mut().on_connecting(&address, session);
        let mut pair = Self {
            server,
            client,
            puts: 0,
            drawn: None,
            base: 0,
            slices: 0,
        };
        while !pair.server.app().node().unwrap().leads() {
            clock.pass(Nanos::from_millis(1));
            pair.turn();
        }
        pair
    }

    /// A turn of both sides. The replica's is that of `Driver::turn`.
    fn turn(&mut self) {
        self.client.run_once();
        let (client, mut cx) = self.client.with();
        client.on_time(&mut cx);
        self.server.run_once();
        let (replica, mut cx) = self.server.with();
        if replica.run(&mut cx) {
            self.server.send_queued();
        }
        self.note_work();
    }

    /// Checks that the replica has done no more in its turn than a slice.
    fn note_work(&mut self) {
        let node = self.server.app().node().unwrap();
        let (drawn, base) = (node.drawn(), node.log().base());
        let slice = drawn.unwrap_or(0).saturating_sub(self.drawn.unwrap_or(0));
        assert!(slice <= SLICE + EXCESS, "{slice} bytes in a turn");
        assert!(
            base - self.base <= DROPPED as u64,
            "{base} after {}",
            self.base
        );
        self.slices += usize::from(slice > 0);
        (self.drawn, self.base) = (drawn, base);
    }

    /// Puts a key, and returns the number of turns until the client has the answer.
    fn put(&mut self) -> usize {
        self.puts += 1;
        let key = (self.puts * 7 % u64::from(ITEMS)).to_be_bytes();
        let (client, mut cx) = self.client.with();
        let (change, token) = (Change::Put(vec![1; VALUE]), Token(self.puts));
        client
            .begin_change(&key, change, token, None, &mut cx)
            .unwrap();
        for turns in 1.. {
            self.turn();
            if let Some(end) = self.client.app_mut().next_end() {
                assert!(matches!(end.result, Ok(Answer::Written(_))), "{end:?}");
                return turns;
            }
        }
        unreachable!("a put ends at its deadline")
    }
}

#[test]
fn puts_take_as_many_turns_as_ever_while_a_serving_replica_makes_an_image() {
    let mut pair = Pair::new();
    for _ in 0..ITEMS {
        pair.put();
    }
    let usual = pair.put();
    assert_eq!(usual, pair.put());
    assert_eq!(pair.slices, 0);
    assert!(pair.server.app_mut().on_order(Order::Snapshot));
    let mut puts = 0;
    while pair.slices == 0 || pair.drawn.is_some() {
        assert_eq!(pair.put(), usual, "put {puts}");
        puts += 1;
    }
    let least = ITEMS as usize * VALUE / (SLICE + EXCESS);
    assert!(pair.slices > least && puts > least / usual, "{puts} puts");
    let base = pair.server.app().node().unwrap().log().base();
    assert!(base > ITEMS.into(), "the log begins after {base}");
}
