//! Images that are read as they arrive.

use dunlin_sim::Rng;

use super::super::Machine;
use super::*;
use crate::wire::{Name, Operation, Request};

/// A state with some items, one of which has a long key, and some clients.
fn state() -> Machine {
    let mut machine = Machine::new(1, 0);
    let mut index = 1;
    let mut apply = |request: &Request<'_>| {
        index += 1;
        machine.apply(index, &request.to_bytes()).unwrap();
    };
    (0..4).for_each(|_| apply(&Request::OPEN));
    for number in 1..=60_u64 {
        let name = Name {
            client: 2 + number % 3,
            number,
            first: number.saturating_sub(20).max(1),
        };
        let key = "key-".repeat(1 + usize::from(number == 7) * 100) + &number.to_string();
        let value = vec![7; usize::try_from(number).unwrap() * 5];
        let operation = match number % 2 {
            0 => Operation::PutFor(number, &value),
            _ => Operation::Put(&value),
        };
        apply(&Request::write(name, key.as_bytes(), operation));
    }
    machine
}

/// Feeds an image in parts of random lengths, with small budgets. Returns the state, and how often
/// the budget was spent.
fn feed(image: &[u8], rng: &mut Rng) -> Result<(Machine, u32), Malformed> {
    let mut machine = Machine::new(0, 0);
    let mut arrival = machine.arrival();
    let (mut come, mut read, mut spent) = (0, 0, 0);
    while !arrival.is_whole() {
        let mut budget = Budget {
            bytes: 1 + rng.index(400),
            keys: 1 + rng.index(3),
        };
        let is_last = come == image.len();
        read += arrival.take(&image[read..come], is_last, &mut budget)?;
        match budget.is_spent() {
            true => spent += 1,
            false => come = (come + 1 + rng.index(200)).min(image.len()),
        }
    }
    if read < image.len() {
        return Err(Malformed);
    }
    drop(machine.become_state(arrival));
    Ok((machine, spent))
}

#[test]
fn an_image_in_parts_and_slices_is_the_same_state() {
    let machine = state();
    let image = machine.to_image();
    for seed in 0..50 {
        let (read, slices) = feed(&image, &mut Rng::new(seed)).unwrap();
        assert_eq!(read, machine, "seed {seed}");
        assert!(slices > 30, "seed {seed}: {slices} slices");
    }
}

#[test]
fn an_image_that_is_truncated_or_too_long_is_refused() {
    let image = state().to_image();
    let mut rng = Rng::new(3);
    for _ in 0..50 {
        let len = rng.index(image.len());
        assert!(feed(&image[..len], &mut rng).is_err(), "{len} bytes");
    }
    let long = [&image[..], b"x"].concat();
    assert!(feed(&long, &mut rng).is_err());
}

#[test]
fn a_slice_reads_no_more_keys_than_its_budget() {
    let image = state().to_image();
    let mut arrival = Machine::new(0, 0).arrival();
    let mut budget = Budget {
        bytes: usize::MAX,
        keys: 11,
    };
    arrival.take(&image, true, &mut budget).unwrap();
    assert_eq!(arrival.items.len(), 10, "the head counts, too");
}

#[test]
fn the_reader_does_not_wait_for_a_part_that_is_too_long() {
    let mut image = state().to_image();
    image.truncate(28);
    // The first item claims to have a key of 4 GiB.
    image.extend_from_slice(&[0; 16]);
    image.extend_from_slice(&[0xff; 4]);
    image.resize(28 + MOST, 0);
    let mut arrival = Machine::new(0, 0).arrival();
    let mut feed = |len: usize| arrival.take(&image[..len], false, &mut Budget::slice(100));
    let read = feed(1000).unwrap();
    assert_eq!(read, 28, "the head");
    assert!(
        arrival
            .take(&image[read..], false, &mut Budget::slice(100))
            .is_err()
    );
}

#[test]
fn the_remains_of_a_state_are_freed_in_slices() {
    let mut machine = state();
    machine.begin_image(Vec::new());
    let mut ruin = {
        let image = machine.to_image();
        let mut arrival = machine.arrival();
        arrival
            .take(&image, true, &mut Budget::slice(usize::MAX))
            .unwrap();
        machine.become_state(arrival)
    };
    let budget = Budget {
        bytes: usize::MAX,
        keys: 10,
    };
    let slices = (1..).find(|_| !ruin.shed(budget)).unwrap();
    // 60 items, 30 expiries and 4 clients.
    assert_eq!(slices, (60_usize + 30 + 4).div_ceil(10));
}
