//! The answer of a member with a disk to an append of its leader: when it leaves, and in which
//! call.

use std::sync::{Arc, Mutex};

use dunlin_core::transport::{Halves, Transport};
use dunlin_core::{Done, Endpoint, SessionOptions, Tag};
use dunlin_testkit::instructions::{SharedTicks, endpoint};
use dunlin_testkit::session::connect;
use dunlin_transport::connect::{EndpointUid, PeerInfo, meet};
use dunlin_transport::shm::{self, Shm};
use raft::eraftpb::{Entry, Message, MessageType};

use super::*;
use crate::service::serve;
use crate::wire::PARCEL;
use crate::work::{Saved, Work};

type ShmHalves = Halves<<Shm as Transport>::Rx, <Shm as Transport>::Tx>;

/// The numbers of the writes that a disk got, the last of which it has saved if the test says so.
#[derive(Clone, Debug, Default)]
struct SlowDisk(Arc<Mutex<(u64, Saved)>>);

impl SlowDisk {
    fn finish(&self) {
        let (last, saved) = &mut *self.0.lock().unwrap();
        saved.number = *last;
    }
}

impl Disk for SlowDisk {
    fn take_seat(&mut self, _roster: &Roster) -> std::io::Result<()> {
        Ok(())
    }

    fn submit(&mut self, work: Work, _now: Nanos) {
        if let Work::Write(write) = work {
            self.0.lock().unwrap().0 = write.number;
        }
    }

    fn saved(&mut self, _now: Nanos) -> Saved {
        self.0.lock().unwrap().1
    }

    fn has_news(&self, _now: Nanos) -> bool {
        true
    }

    fn wake_with(&mut self, _waker: Waker) {}
}

/// A member, and its leader, of which there is only the endpoint.
struct Stage {
    clock: SharedTicks,
    disk: SlowDisk,
    member: Endpoint<Shm, SharedTicks, Replica>,
    leader: Endpoint<Shm, SharedTicks, Vec<Done>>,
    session: Session,
    calls: u64,
}

impl Stage {
    fn new() -> Self {
        let (clock, disk) = (SharedTicks::default(), SlowDisk::default());
        let mut halves = [(); 2].map(|()| Shm::open(shm::Options::default()).unwrap());
        let [near, far] = &mut halves;
        let info = |uid| PeerInfo::of_this_host(EndpointUid([uid; 16]));
        let peers: (_, _) = meet::<Shm>([near, far], &[info(1), info(2)])
            .unwrap()
            .into();
        let mut replica = Replica::with_disk(1, None, Box::new(disk.clone()), Options::DEFAULT);
        replica.on_bootstrap(members(7)).unwrap();
        let [near, far]: [ShmHalves; 2] = halves;
        let mut member = endpoint(replica, clock.clone(), near, 1);
        serve(&mut member);
        let mut leader = endpoint(Vec::new(), clock.clone(), far, 2);
        leader.on_completion(|ends, done, _| ends.push(done));
        let numbers = [peers.1, peers.0];
        let [session, _] = connect(&mut leader, &mut member, numbers, &SessionOptions::DEFAULT);
        let mut stage = Self {
            clock,
            disk,
            member,
            leader,
            session,
            calls: 0,
        };
        // The term is on the disk.
        stage.call(&heartbeat(Some(names(2))));
        stage.disk.finish();
        stage.turn();
        stage.disk.finish();
        stage.leader.app_mut().clear();
        stage
    }

    fn call(&mut self, parcel: &[u8]) {
        self.calls += 1;
        let request = self.leader.cx().copy(parcel).unwrap();
        let response = self.leader.cx().buf(4096).unwrap();
        let tag = Tag(self.calls);
        let call = self
            .leader
            .call(self.session, PARCEL, request, response, tag);
        call.unwrap();
        self.turn();
    }

    /// Sends an append of one entry, which has this place among all appended ones.
    fn append(&mut self, place: u64) {
        let (index, term) = crate::log::first_base(&Roster::first(&members(7)));
        let message = Message {
            msg_type: MessageType::MsgAppend,
            term: 2,
            log_term: if place == 0 { term } else { 2 },
            index: index + place,
            entries: vec![Entry {
                term: 2,
                index: index + place + 1,
                ..Entry::default()
            }]
            .into(),
            ..Message::default()
        };
        let parcel = Parcel {
            names: Some(names(2)),
            are_two: false,
            messages: vec![message],
        };
        self.call(&parcel.to_bytes());
    }

    fn turn(&mut self) {
        for _ in 0..4 {
            self.leader.run_once();
            self.member.run_once();
            let (replica, mut cx) = self.member.with();
            replica.run(&mut cx);
        }
    }

    /// The calls that have ended since the last question, with the messages in their responses.
    fn ends(&mut self) -> Vec<(u64, Vec<MessageType>)> {
        let ends = self.leader.app_mut().drain(..);
        ends.map(|done| {
            let parcel = Parcel::decode(done.response.data()).unwrap();
            let kinds = parcel.messages.iter().map(|it| it.msg_type);
            (done.tag.0, kinds.collect())
        })
        .collect()
    }
}

#[test]
fn the_response_to_an_append_has_the_answer_that_waits_for_the_disk() {
    let mut stage = Stage::new();
    stage.append(0);
    assert_eq!(stage.ends(), []);
    stage.append(1);
    assert_eq!(stage.ends(), []);
    stage.disk.finish();
    stage.turn();
    let mut ends = stage.ends();
    ends.sort_by_key(|it| it.0);
    let answers: usize = ends.iter().map(|it| it.1.len()).sum();
    assert_eq!((ends.len(), answers), (2, 2), "{ends:?}");
}

#[test]
fn a_heartbeat_is_answered_while_an_append_waits_for_the_disk() {
    let mut stage = Stage::new();
    stage.append(0);
    stage.call(&heartbeat(Some(names(2))));
    let kinds = vec![MessageType::MsgHeartbeatResponse];
    assert_eq!(stage.ends(), [(3, kinds)]);
}

#[test]
fn with_a_slow_disk_a_call_is_answered_before_its_deadline() {
    let mut stage = Stage::new();
    stage.append(0);
    stage.clock.pass(Nanos(Options::DEFAULT.election.0 / 5));
    stage.turn();
    assert_eq!(stage.ends(), [(2, vec![])]);
}
