//! Operations, repeats, and the limits of records.

use dunlin_sim::Rng;

use super::clients::MAX_CLIENTS;
use super::*;
use crate::wire::{Compare, Name, Steps, Write};

struct Stage {
    machine: Machine,
    index: u64,
}

impl Stage {
    fn new() -> Self {
        Self {
            machine: Machine::new(1, 0),
            index: 1,
        }
    }

    /// A machine with one client, 2.
    fn opened() -> Self {
        let mut stage = Self::new();
        assert_eq!(stage.apply(&Request::OPEN), Answer::Opened(2));
        stage
    }

    fn apply(&mut self, request: &Request<'_>) -> Answer {
        self.index += 1;
        self.machine.apply(self.index, &request.to_bytes()).unwrap()
    }

    fn write(&mut self, name: (u64, u64, u64), operation: Operation<'_>) -> Answer {
        let (client, number, first) = name;
        let name = Name {
            client,
            number,
            first,
        };
        self.apply(&Request::write(name, b"key", operation))
    }

    fn put(&mut self, name: (u64, u64, u64), value: &[u8]) -> Answer {
        self.write(name, Operation::Put(value))
    }

    fn delete(&mut self, name: (u64, u64, u64)) -> Answer {
        self.write(name, Operation::Delete)
    }
}

#[test]
fn a_write_has_the_index_of_its_entry_as_version() {
    let mut stage = Stage::new();
    assert_eq!(stage.apply(&Request::OPEN), Answer::Opened(2));
    assert_eq!(stage.machine.get(b"key"), Answer::Missing);
    let put = stage.put((2, 1, 1), b"a");
    assert_eq!(put, Answer::Written(3));
    assert_eq!(stage.machine.get(b"key"), Answer::Found(3, b"a".to_vec()));
    let cas = stage.write((2, 2, 1), Operation::CompareAndSet(2, b"b"));
    assert_eq!(cas, Answer::Differs(3));
    let cas = stage.write((2, 3, 1), Operation::CompareAndSet(3, b"b"));
    assert_eq!(cas, Answer::Written(5));
    assert_eq!(stage.delete((2, 4, 1)), Answer::Deleted(5));
    assert_eq!(stage.delete((2, 5, 1)), Answer::Deleted(0));
    let cas = stage.write((2, 6, 1), Operation::CompareAndSet(0, b"c"));
    assert_eq!(cas, Answer::Written(8));
    assert_eq!((stage.machine.keys(), stage.machine.applied()), (1, 8));
}

#[test]
fn a_repeated_write_is_answered_and_not_applied() {
    let mut stage = Stage::opened();
    assert_eq!(stage.put((2, 1, 1), b"a"), Answer::Written(3));
    assert_eq!(stage.put((2, 2, 1), b"b"), Answer::Written(4));
    assert_eq!(stage.put((2, 1, 1), b"a"), Answer::Written(3));
    assert_eq!(stage.machine.get(b"key"), Answer::Found(4, b"b".to_vec()));
    // The client repeats the write, and has meanwhile received another answer.
    assert_eq!(stage.put((2, 2, 2), b"b"), Answer::Written(4));
    assert_eq!(stage.put((2, 1, 1), b"a"), Answer::Misnamed);
    assert_eq!(stage.machine.get(b"key"), Answer::Found(4, b"b".to_vec()));
}

#[test]
fn a_number_with_another_payload_and_one_past_the_window_are_refused() {
    let mut stage = Stage::opened();
    assert_eq!(stage.put((2, 1, 1), b"a"), Answer::Written(3));
    assert_eq!(stage.put((2, 1, 1), b"b"), Answer::Misnamed);
    assert_eq!(stage.delete((2, 1, 1)), Answer::Misnamed);
    let past = 1 + crate::wire::WINDOW;
    assert_eq!(stage.delete((2, past, 1)), Answer::Misnamed);
    assert_eq!(stage.machine.get(b"key"), Answer::Found(3, b"a".to_vec()));
    assert_eq!(
        stage.delete((2, u64::MAX, u64::MAX)),
        Answer::Deleted(3),
        "the last number that there is"
    );
}

#[test]
fn the_longest_silent_client_is_removed_and_its_writes_are_refused() {
    let mut stage = Stage::new();
    for _ in 0..MAX_CLIENTS {
        stage.apply(&Request::OPEN);
    }
    // The first client now has a later entry, so the second is the oldest.
    assert_ne!(stage.put((2, 1, 1), b"a"), Answer::Expired);
    let opened = stage.apply(&Request::OPEN);
    assert_eq!(stage.put((3, 1, 1), b"b"), Answer::Expired);
    assert_ne!(stage.put((2, 2, 2), b"c"), Answer::Expired);
    assert_eq!(opened, Answer::Opened(stage.index - 2));
}

#[test]
fn a_write_of_another_cluster_is_refused_although_its_numbers_fit() {
    let stage_of = |cluster| Stage {
        machine: Machine::new(1, cluster),
        index: 1,
    };
    let (mut before, mut after) = (stage_of(u64::MAX), stage_of(70));
    assert_eq!(before.apply(&Request::OPEN), Answer::Opened(1));
    assert_eq!(after.apply(&Request::OPEN), Answer::Opened(72));
    assert_eq!(after.put((1, 1, 1), b"old"), Answer::Expired);
    assert_eq!(after.put((72, 1, 1), b"new"), Answer::Written(4));
    let mut last = stage_of(0_u64.wrapping_sub(2));
    assert_eq!(last.apply(&Request::OPEN), Answer::Opened(1), "not 0");
}

#[test]
fn an_entry_of_another_version_changes_nothing() {
    let mut machine = Machine::new(1, 0);
    assert_eq!(machine.apply(2, b"\x02abc"), Err(Malformed));
    assert_eq!(machine, Machine::new(1, 0));
    assert_eq!(machine.apply(2, b""), Ok(Answer::Missing));
    assert_eq!(machine.applied(), 2);
}

fn keys(page: &Page) -> Vec<String> {
    let mut bytes = vec![0; page.size()];
    page.encode(&mut bytes);
    let Ok(Answer::Items { items, .. }) = Answer::decode(&bytes) else {
        panic!("the answer has no items");
    };
    let keys = items
        .into_iter()
        .map(|it| String::from_utf8(it.key).unwrap());
    keys.collect()
}

impl Stage {
    fn transact(&mut self, number: u64, compares: &[Compare<'_>], writes: &[Write<'_>]) -> Answer {
        let name = Name {
            client: 2,
            number,
            first: number,
        };
        let bytes = Steps::encode(compares, writes);
        let steps = Steps::decode(&bytes).unwrap();
        self.apply(&Request::write(name, b"", Operation::Transact(steps)))
    }

    fn keys(&self, prefix: &[u8], limit: u32, after: &[u8]) -> Vec<String> {
        keys(&self.machine.page(prefix, limit, after))
    }
}

const fn put(key: &[u8], lifetime: u64) -> Write<'_> {
    Write::Put {
        key,
        value: b"v",
        lifetime,
    }
}

#[test]
fn a_transaction_makes_all_writes_or_none() {
    let mut stage = Stage::opened();
    let free = |key| Compare { key, version: 0 };
    let both = [put(b"a", 0), put(b"b", 0)];
    let done = stage.transact(1, &[free(b"a"), free(b"b")], &both);
    assert_eq!(done, Answer::Written(3));
    assert_eq!(stage.keys(b"", 9, b""), ["a", "b"]);
    let held = Compare {
        key: b"a",
        version: 3,
    };
    let writes = [Write::Delete { key: b"a" }, put(b"c", 0)];
    assert_eq!(
        stage.transact(2, &[held, free(b"b")], &writes),
        Answer::Conflict(1)
    );
    assert_eq!(stage.keys(b"", 9, b""), ["a", "b"]);
    assert_eq!(stage.transact(3, &[held], &writes), Answer::Written(5));
    assert_eq!(stage.keys(b"", 9, b""), ["b", "c"]);
    // A repeat, after the item has expired.
    assert_eq!(stage.transact(3, &[held], &writes), Answer::Written(5));
}

#[test]
fn a_range_has_the_keys_with_a_prefix_after_a_key() {
    let mut stage = Stage::opened();
    let all: [&[u8]; 5] = [b"c", b"b1", b"a", b"b", b"b2"];
    for (key, number) in all.into_iter().zip(1..) {
        stage.transact(number, &[], &[put(key, 0)]);
    }
    assert_eq!(stage.keys(b"b", 9, b""), ["b", "b1", "b2"]);
    assert_eq!(stage.keys(b"b", 2, b""), ["b", "b1"]);
    assert_eq!(stage.keys(b"b", 9, b"b1"), ["b2"]);
    assert_eq!(stage.keys(b"b", 9, b"a"), ["b", "b1", "b2"]);
    assert_eq!(stage.keys(b"b", 9, b"x"), [""; 0]);
    assert_eq!(stage.keys(b"", 9, b"b2"), ["c"]);
    assert_eq!(stage.keys(b"", 9, b""), ["a", "b", "b1", "b2", "c"]);
}

#[test]
fn an_item_expires_by_the_logs_time_and_not_before() {
    let mut stage = Stage::opened();
    stage.apply(&Request::clock(1000));
    stage.write((2, 1, 1), Operation::PutFor(50, b"a"));
    stage.transact(2, &[], &[put(b"b", 100), put(b"c", 0)]);
    assert_eq!(stage.machine.next_expiry(), Some(1051));
    // A leader whose clock is behind cannot turn the log's time back.
    stage.apply(&Request::clock(10));
    stage.apply(&Request::clock(1050));
    assert_eq!(stage.keys(b"", 9, b""), ["b", "c", "key"]);
    let mut image = Machine::new(1, 0);
    image.restore(&stage.machine.to_image()).unwrap();
    assert_eq!(image, stage.machine);
    stage.apply(&Request::clock(1051));
    assert_eq!(stage.keys(b"", 9, b""), ["b", "c"]);
    // A key that is written again loses its lifetime, and a deleted one is no longer due.
    stage.write((2, 3, 3), Operation::PutFor(10, b"a"));
    stage.put((2, 4, 4), b"b");
    stage.transact(5, &[], &[Write::Delete { key: b"b" }]);
    assert_eq!(stage.machine.next_expiry(), None);
    stage.apply(&Request::clock(9000));
    assert_eq!(stage.keys(b"", 9, b""), ["c", "key"]);
}

#[test]
fn an_image_has_the_whole_state() {
    let mut stage = Stage::opened();
    stage.apply(&Request::OPEN);
    stage.put((2, 1, 1), b"a");
    stage.write((3, 1, 1), Operation::CompareAndSet(7, b"b"));
    stage.delete((3, 2, 1));
    stage.put((2, 2, 1), b"c");
    let image = stage.machine.to_image();
    let mut other = Machine::new(1, 0);
    other.restore(&image).unwrap();
    assert_eq!(other, stage.machine);
    for len in 0..image.len() {
        assert_eq!(other.restore(&image[..len]), Err(Malformed), "{len} bytes");
    }
    assert_eq!(other, stage.machine, "a bad image changes nothing");
    // A write that was applied before the image is recognised after it.
    stage.machine = other;
    assert_eq!(stage.put((2, 1, 1), b"a"), Answer::Written(4));
}

/// A random change by one of a few clients.
fn change(stage: &mut Stage, rng: &mut Rng) {
    let number = stage.index + 1;
    let client = 2 + rng.below(3);
    let name = Name {
        client,
        number: number - client,
        first: number - client,
    };
    let key = format!("key-{}", rng.below(40));
    let value = vec![7; rng.index(30)];
    let operation = match rng.below(4) {
        0 => Operation::Delete,
        1 => Operation::PutFor(1 + rng.below(20), &value),
        _ => Operation::Put(&value),
    };
    stage.apply(&Request::write(name, key.as_bytes(), operation));
    if rng.one_in(10) {
        stage.apply(&Request::clock(number * 2));
    }
    if rng.one_in(20) {
        stage.apply(&Request::OPEN);
    }
}

#[test]
fn an_image_made_in_slices_shows_the_state_at_its_beginning() {
    let mut all = 0;
    for seed in 0..50 {
        let mut rng = Rng::new(seed);
        let mut stage = Stage::new();
        stage.machine.remember(4);
        (0..3).for_each(|_| drop(stage.apply(&Request::OPEN)));
        (0..60).for_each(|_| change(&mut stage, &mut rng));
        let then = stage.machine.to_image();
        stage.machine.begin_image(b"head".to_vec());
        let mut slices = 0;
        let image = loop {
            let before = stage.machine.drawn().unwrap();
            if let Some(image) = stage.machine.go_on(Budget::slice(100)) {
                break image;
            }
            let drawn = stage.machine.drawn().unwrap() - before;
            // The last part may exceed the slice, and the count of clients follows the items.
            assert!(drawn < 100 + 4 + 100, "seed {seed}: {drawn}");
            change(&mut stage, &mut rng);
            slices += 1;
        };
        assert_eq!(image.strip_prefix(b"head"), Some(&then[..]), "seed {seed}");
        assert_ne!(stage.machine.to_image(), then, "it has gone on");
        all += slices;
    }
    assert!(all > 300, "{all} slices");
}
