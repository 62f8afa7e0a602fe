//! The line: its order, and the client that may have the floor next.

use super::{Floor, Seat};

const SEATS: [Seat; 3] = [
    Seat {
        thread: 0,
        place: 7,
    },
    Seat {
        thread: 1,
        place: 8,
    },
    Seat {
        thread: 0,
        place: 9,
    },
];

#[test]
fn clients_have_the_floor_one_at_a_time_and_in_the_order_of_the_line() {
    let floor = Floor::new(100, 10);
    let [one, two, three] = SEATS.map(|seat| floor.on_wish(seat));
    assert!(!floor.on_turn(two) && !floor.on_turn(three) && floor.on_turn(one));
    assert!(!floor.on_turn(one) && !floor.on_turn(two));
    // A client that comes again stands after all others.
    assert_eq!(floor.on_leave(one), Some(SEATS[1]));
    let again = floor.on_wish(SEATS[0]);
    assert!(!floor.on_turn(again) && !floor.on_turn(three) && floor.on_turn(two));
    assert_eq!(floor.on_leave(two), Some(SEATS[2]));
    // A client may leave the line, too.
    assert_eq!(floor.on_leave(three), Some(SEATS[0]));
    assert!(floor.on_turn(again));
    assert_eq!(floor.on_leave(again), None);
}

#[test]
fn a_thread_sees_once_that_its_client_may_have_the_floor() {
    let floor = Floor::new(100, 10);
    assert_eq!(floor.next_of(0), None);
    let [one, two, three] = SEATS.map(|seat| floor.on_wish(seat));
    assert_eq!((floor.next_of(0), floor.next_of(1)), (Some(7), None));
    assert!(floor.on_turn(one));
    assert_eq!((floor.next_of(0), floor.next_of(1)), (None, None));
    // While one client has the floor, none follows another that leaves the line.
    assert_eq!(floor.on_leave(two), None);
    assert_eq!(floor.on_leave(one), Some(SEATS[2]));
    assert_eq!((floor.next_of(0), floor.next_of(1)), (Some(9), None));
    assert!(floor.on_turn(three));
}

#[test]
fn there_is_room_below_the_limit() {
    let floor = Floor::new(100, 10);
    floor.on_bytes(0, 60);
    assert!(floor.has_room());
    floor.on_bytes(0, 40);
    assert!(!floor.has_room());
    floor.on_bytes(60, 59);
    assert!(floor.has_room());
}
