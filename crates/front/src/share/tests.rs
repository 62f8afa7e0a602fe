//! Clients that send long commands while there is no room, without sockets.

use dunlin_store::Seconds;

use super::{FREE, Load, PROGRESS, Share, Stand};
use crate::floor::Seat;
use crate::hall::{Hall, Options};

mod steps;

const LEN: usize = 1 << 20;
/// More bytes than the clients of a test have.
const LIMIT: usize = 64 << 20;
const NOW: Seconds = Seconds(1000);

fn after(seconds: u32) -> Seconds {
    Seconds(NOW.0 + seconds)
}

/// A hall without room, where a client may stop for ten seconds.
fn full() -> Hall {
    let hall = Hall::new(Options {
        incomplete: LIMIT as u64,
        patience: 10,
        threads: 2,
        ..Options::default()
    });
    hall.floor().on_bytes(0, LIMIT);
    hall
}

fn share(number: usize) -> Share {
    let thread = u16::try_from(number % 2).unwrap();
    let place = number;
    Share::new(Seat { thread, place }, NOW)
}

/// A connection in the middle of a command.
const fn half(used: u64) -> Load {
    Load {
        used,
        pending: LEN / 2,
        waiting: 0,
    }
}

/// A connection whose command is run by another thread.
const fn run(used: u64) -> Load {
    Load {
        used,
        pending: LEN,
        waiting: LEN,
    }
}

const fn idle(used: u64) -> Load {
    Load {
        used,
        pending: 0,
        waiting: 0,
    }
}

#[test]
fn a_client_leaves_the_floor_once_its_command_has_run() {
    let hall = full();
    let [mut one, mut other] = [share(0), share(1)];
    assert_eq!(one.on_turn(&hall, LEN, half(0), NOW), Some(LEN));
    assert_eq!(other.on_turn(&hall, LEN, half(0), NOW), None);
    other.on_turn_end(&hall, half(0), true);
    // It reads the rest in several turns.
    one.on_turn_end(&hall, half(0), false);
    assert_eq!(one.on_turn(&hall, LEN, half(0), NOW), Some(LEN));
    assert_eq!(other.on_turn(&hall, LEN, half(0), NOW), None);
    // The command has become an errand. The floor stays taken until another thread has run it.
    one.on_turn_end(&hall, run(LEN as u64), false);
    assert_eq!(one.on_turn(&hall, LEN, run(LEN as u64), NOW), None);
    assert_eq!(other.on_turn(&hall, LEN, half(0), NOW), None);
    // The next command has already begun to arrive.
    assert_eq!(one.on_turn(&hall, LEN, half(LEN as u64), NOW), None);
    assert_eq!(other.on_turn(&hall, LEN, half(0), NOW), Some(LEN));
}

#[test]
fn a_client_with_one_command_after_another_waits_for_the_others() {
    let hall = full();
    let mut shares: Vec<Share> = (0..5).map(share).collect();
    let (mut used, mut turns) = ([0; 5], [0; 5]);
    let mut order = Vec::new();
    // The first client has two turns for each one of the others.
    for number in [0, 0, 1, 2, 3, 4].repeat(40) {
        let share = &mut shares[number];
        let room = share.on_turn(&hall, LEN, half(used[number]), NOW);
        if room.is_some() {
            // Its command has arrived after three turns.
            turns[number] += 1;
            used[number] = turns[number] / 3;
            if turns[number] % 3 == 0 {
                order.push(number);
            }
        }
        share.on_turn_end(&hall, half(used[number]), room.is_none());
    }
    for five in order.chunks_exact(5) {
        assert_eq!(five, [0, 1, 2, 3, 4], "{order:?}");
    }
    assert!(order.len() >= 15, "{order:?}");
}

#[test]
fn a_client_that_closes_or_needs_nothing_leaves_the_line() {
    let hall = full();
    let mut shares: Vec<Share> = (0..5).map(share).collect();
    for share in &mut shares {
        let room = share.on_turn(&hall, LEN, half(0), NOW);
        share.on_turn_end(&hall, half(0), room.is_none());
    }
    let [one, two, three, four, five] = &mut shares[..] else {
        unreachable!()
    };
    one.on_close(&hall);
    // Its turn comes, but it cannot send.
    assert_eq!(two.on_turn(&hall, 0, half(0), NOW), Some(0));
    // Its turn ends without a wish for the floor.
    three.on_turn_end(&hall, half(0), false);
    // Its few bytes are free.
    assert_eq!(four.on_turn(&hall, LEN, idle(0), NOW), Some(FREE));
    assert_eq!(five.on_turn(&hall, LEN, half(0), NOW), Some(LEN));
    // There is room again.
    hall.floor().on_bytes(LIMIT, 0);
    two.on_close(&hall);
    three.on_close(&hall);
    five.on_turn_end(&hall, idle(1), false);
    assert_eq!(five.on_turn(&hall, LEN, half(1), NOW), Some(LEN));
    assert_eq!(five.stand, Stand::Seated);
}

#[test]
fn a_client_with_the_floor_is_late_if_it_does_not_move() {
    let hall = full();
    let [mut one, mut other] = [share(0), share(1)];
    assert_eq!(one.on_turn(&hall, LEN, half(0), NOW), Some(LEN));
    assert_eq!(other.on_turn(&hall, LEN, half(0), after(9)), None);
    // Single bytes do not begin its time again, even if it has a turn at each visit.
    one.on_bytes(1, after(9));
    one.on_turn_end(&hall, half(0), false);
    assert!(!one.is_late(hall.floor(), true, after(9)));
    assert!(one.is_late(hall.floor(), true, after(10)));
    // Many bytes do, and so does work of the server.
    one.on_bytes(PROGRESS, after(10));
    assert!(!one.is_late(hall.floor(), false, after(19)));
    one.on_work(after(19));
    assert!(!one.is_late(hall.floor(), false, after(28)));
    assert!(one.is_late(hall.floor(), false, after(29)));
    // So does an errand that is never answered.
    one.on_turn_end(&hall, run(1), false);
    assert!(one.is_late(hall.floor(), false, after(29)));
    // With room, no client is late.
    hall.floor().on_bytes(LIMIT, 0);
    assert!(!one.is_late(hall.floor(), false, after(99)));
}

#[test]
fn a_client_that_stops_in_a_command_is_late_unless_it_waits() {
    let hall = full();
    let [mut one, mut other, mut third] = [share(0), share(1), share(2)];
    assert_eq!(one.on_turn(&hall, LEN, half(0), NOW), Some(LEN));
    other.on_bytes(10, NOW);
    other.on_turn_end(&hall, half(0), false);
    assert!(!other.is_late(hall.floor(), false, after(9)));
    assert!(other.is_late(hall.floor(), false, after(10)));
    assert!(!other.is_late(hall.floor(), true, after(99)));
    // The time in which it is held back does not count.
    assert_eq!(other.on_turn(&hall, LEN, half(0), after(50)), None);
    one.on_close(&hall);
    assert_eq!(other.on_turn(&hall, 0, half(0), after(51)), Some(0));
    assert!(!other.is_late(hall.floor(), false, after(59)));
    // A client without an incomplete command may stop for any time.
    third.on_turn_end(&hall, idle(0), false);
    assert!(!third.is_late(hall.floor(), false, after(999)));
}

/// Its command has arrived while there was room, and another thread runs it for a long time.
#[test]
fn a_client_whose_commands_have_all_arrived_is_not_late() {
    let hall = full();
    let mut one = share(0);
    one.on_turn_end(&hall, run(1), false);
    assert!(!one.is_late(hall.floor(), false, after(99)));
    // The answer has come. Only now, the client can go on with the next command.
    assert_eq!(one.on_turn(&hall, 0, half(1), after(99)), Some(0));
    one.on_turn_end(&hall, half(1), false);
    assert!(!one.is_late(hall.floor(), false, after(108)));
    assert!(one.is_late(hall.floor(), false, after(109)));
    // This thread has written a part of its value.
    one.on_work(after(109));
    assert!(!one.is_late(hall.floor(), false, after(118)));
    assert!(one.is_late(hall.floor(), false, after(119)));
}
