//! Seats that are taken again, and options that cannot work.

use super::*;
use crate::wire::Member;

fn members(port: u16) -> Members {
    let member = |id| Member {
        id,
        address: format!("host-{id}:{port}"),
    };
    Members::new((1..=3).map(member)).unwrap()
}

#[test]
fn a_seat_among_members_with_other_addresses_is_another() {
    let mut replica = Replica::new(1, Options::DEFAULT);
    assert_eq!(replica.on_bootstrap(members(7)), Ok(()));
    assert_eq!(replica.on_bootstrap(members(7)), Ok(()));
    assert_eq!(replica.on_bootstrap(members(8)), Err(SeatError::Taken));
    assert_eq!(replica.status().members, Some(Roster::first(&members(7))));
}

#[test]
fn options_that_cannot_work_have_a_fault_and_the_limits_have_none() {
    let fault = |change: fn(&mut Options)| {
        let mut options = Options::DEFAULT;
        change(&mut options);
        options.fault()
    };
    assert_eq!(fault(|_| ()), None);
    assert_eq!(fault(|it| it.append_bytes = 64 << 20), None);
    let wrong: [fn(&mut Options); 6] = [
        |it| it.append_bytes = (64 << 20) + 1,
        |it| it.appends = 0,
        |it| it.operations = 0,
        |it| it.piece_bytes = 0,
        |it| it.heartbeat = it.election,
        |it| it.most_pause = Nanos(it.least_pause.0 - 1),
    ];
    for change in wrong {
        assert!(fault(change).is_some());
    }
}

#[test]
#[should_panic(expected = "a snapshot has parts")]
fn a_replica_with_a_fault_does_not_start() {
    let options = Options {
        piece_bytes: 0,
        ..Options::DEFAULT
    };
    let _ = Replica::new(1, options);
}
