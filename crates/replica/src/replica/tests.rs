//! A second request for a replica's seat, options that cannot work, and parcels: which of them a
//! seat refuses, and whose lanes they use.

mod serving;

use dunlin_core::{CloseReason, SessionOptions};
use dunlin_testkit::instructions::{SharedTicks, endpoint};
use dunlin_transport::shm::{self, Shm};
use raft::eraftpb::{Message, MessageType};

use super::*;
use crate::wire::{Member, Names};

fn members(port: u16) -> Members {
    let member = |id| Member {
        id,
        address: format!("host-{id}:{port}"),
    };
    Members::new((1..=3).map(member)).unwrap()
}

#[test]
fn a_seat_among_members_with_other_addresses_is_another_seat() {
    let mut replica = Replica::new(1, Options::DEFAULT);
    assert_eq!(replica.on_bootstrap(members(7)), Ok(()));
    assert_eq!(replica.on_bootstrap(members(7)), Ok(()));
    assert_eq!(replica.on_bootstrap(members(8)), Err(SeatError::Taken));
    assert_eq!(replica.status().members, Some(Roster::first(&members(7))));
}

#[test]
fn options_that_cannot_work_have_a_fault_and_options_at_a_limit_have_none() {
    let fault = |change: fn(&mut Options)| {
        let mut options = Options::DEFAULT;
        change(&mut options);
        options.fault()
    };
    assert_eq!(fault(|_| ()), None);
    assert_eq!(fault(|it| it.append_bytes = 64 << 20), None);
    let wrong: [fn(&mut Options); 7] = [
        |it| it.append_bytes = (64 << 20) + 1,
        |it| it.appends = 0,
        |it| it.operations = 0,
        |it| it.piece_bytes = 0,
        |it| it.slice_bytes = 0,
        |it| it.heartbeat = it.election,
        |it| it.most_pause = Nanos(it.least_pause.0 - 1),
    ];
    for change in wrong {
        assert!(fault(change).is_some());
    }
}

#[test]
#[should_panic(expected = "piece_bytes must be above 0")]
fn a_replica_with_a_fault_does_not_start() {
    let options = Options {
        piece_bytes: 0,
        ..Options::DEFAULT
    };
    let _ = Replica::new(1, options);
}

/// The names of a parcel to replica 1.
fn names(from: u64) -> Names {
    Names {
        cluster: members(7).cluster(),
        from,
        to: 1,
        life: 1,
    }
}

/// A parcel with a heartbeat.
fn heartbeat(names: Option<Names>) -> Vec<u8> {
    let message = Message {
        msg_type: MessageType::MsgHeartbeat,
        term: 2,
        ..Message::default()
    };
    let parcel = Parcel {
        names,
        are_two: false,
        messages: vec![message],
    };
    parcel.to_bytes()
}

/// Two sessions.
fn sessions() -> [Session; 2] {
    let halves = Shm::open(shm::Options::default()).unwrap();
    let mut endpoint = endpoint::<Shm, _, _>((), SharedTicks::default(), halves, 0);
    let options = SessionOptions::default();
    [(); 2].map(|()| endpoint.lifecycle().open(&options).unwrap())
}

#[test]
fn messages_of_a_refused_parcel_do_not_count() {
    let roster = Roster::first(&members(7));
    let image = Image::of(roster.clone());
    let mut seat = Seat::new(1, roster, image, &Options::DEFAULT);
    let bytes_of = |from| heartbeat(Some(names(from)));
    let mut on_parcel = |bytes: &[u8]| {
        let taken = seat.on_parcel(bytes, Session::NONE, 1, Nanos::ZERO);
        (taken.map(|_| ()), seat.inbox.len())
    };
    assert_eq!(on_parcel(&bytes_of(2)), (Ok(()), 1));
    assert_eq!(on_parcel(&bytes_of(1)), (Err(STRANGER), 1));
    let long = [&bytes_of(2)[..], &[0]].concat();
    assert_eq!(on_parcel(&long), (Err(ErrorCode::UNDECODABLE), 1));
    assert_eq!(on_parcel(&bytes_of(3)), (Ok(()), 2));
}

#[test]
fn messages_of_another_cluster_or_for_another_member_are_refused() {
    let roster = Roster::first(&members(7));
    let mut seat = Seat::new(1, roster.clone(), Image::of(roster), &Options::DEFAULT);
    let mut on_parcel = |names: Names| {
        let bytes = heartbeat(Some(names));
        let taken = seat.on_parcel(&bytes, Session::NONE, 1, Nanos::ZERO);
        (taken.map(|_| ()), seat.inbox.len())
    };
    let sound = names(2);
    let cluster = sound.cluster + 1;
    assert_eq!(on_parcel(Names { cluster, ..sound }), (Err(STRANGER), 0));
    assert_eq!(on_parcel(Names { to: 3, ..sound }), (Err(STRANGER), 0));
    assert_eq!(on_parcel(sound), (Ok(()), 1));
}

#[test]
fn a_parcel_without_names_gets_the_names_of_its_session() {
    let roster = Roster::first(&members(7));
    let mut seat = Seat::new(1, roster.clone(), Image::of(roster), &Options::DEFAULT);
    let [first, second] = sessions();
    let mut on_parcel = |names, session| {
        let taken = seat.on_parcel(&heartbeat(names), session, 1, Nanos::ZERO);
        if matches!(names, Some(Names { life: 9, .. })) {
            seat.on_session(
                SessionEvent::Closed {
                    session: first,
                    reason: CloseReason::PeerFailed,
                },
                Nanos::ZERO,
            );
        }
        let senders: Vec<u64> = seat.inbox.drain(..).map(|it| it.from).collect();
        (taken.map(|it| it.1), senders)
    };
    let refused = (Err(STRANGER), Vec::new());
    assert_eq!(on_parcel(None, first), refused);
    assert_eq!(on_parcel(Some(Names { to: 3, ..names(2) }), first), refused);
    assert_eq!(
        on_parcel(None, first),
        refused,
        "a refused parcel leaves no names"
    );
    assert_eq!(on_parcel(Some(names(2)), first), (Ok(true), vec![2]));
    assert_eq!(on_parcel(Some(names(3)), second), (Ok(true), vec![3]));
    assert_eq!(on_parcel(None, first), (Ok(false), vec![2]));
    assert_eq!(on_parcel(None, second), (Ok(false), vec![3]));
    // A later process of the same member, whose session then ends.
    let next = Names {
        life: 9,
        ..names(2)
    };
    assert_eq!(on_parcel(Some(next), first), (Ok(true), vec![2]));
    assert_eq!(on_parcel(None, first), refused);
    assert_eq!(on_parcel(None, second), (Ok(false), vec![3]));
}

#[test]
fn strangers_take_only_the_places_of_other_strangers() {
    let roster = Roster::first(&members(7));
    let image = Image::of(roster.clone());
    let mut seat = Seat::new(1, roster, image, &Options::DEFAULT);
    for id in 100..200 {
        seat.lane_of(id);
    }
    assert_eq!(seat.lane_of(200), seat.lane_of(200));
    let mut parcel = names(300);
    assert!(seat.accepts(&parcel, 1), "a stranger has a place");
    let lanes: Vec<usize> = [2, 3].map(|id| seat.lane_of(id)).into();
    for id in 400..500 {
        let lane = seat.lane_of(id);
        assert!(!lanes.contains(&lane), "a stranger took a member's lane");
    }
    parcel.from = 1;
    assert!(!seat.accepts(&parcel, 1), "it is our own number");
}

#[test]
fn a_place_that_changes_hands_does_not_keep_its_session() {
    let roster = Roster::first(&members(7));
    let image = Image::of(roster.clone());
    let mut seat = Seat::new(1, roster, image, &Options::DEFAULT);
    let lane = seat.lane_of(2);
    let address = seat.wish(Nanos::ZERO).unwrap();
    assert_eq!(address, "host-2:7");
    seat.on_connecting(&address, Session::NONE);
    seat.on_session(SessionEvent::Connected(Session::NONE), Nanos::ZERO);
    // As if the member had left.
    seat.peers[lane].id = 99;
    seat.lanes.stop(lane);
    assert_eq!(seat.lane_of(50), lane);
    assert_eq!(seat.ended, [Session::NONE]);
    assert_eq!(seat.lanes.open(lane), None);
}
