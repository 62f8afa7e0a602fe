//! Operations on one partition: of every kind, with different maps, over time.

use dunlin_core::Nanos;
use dunlin_store::{Config, Delta, MAX_VALUE, Mode, Region, SLICE, Seed, Table, Verb};
use proptest::prelude::*;

use super::Partition;
use crate::check::{self, small_partition};
use crate::wire::{Answer, Keys, Map, Records, Request, Status, Store};

const TAG: u32 = 7;

/// Runs a request and returns the bytes of its answer.
fn run(partition: &mut Partition, request: &Request<'_>, at_s: u64) -> Vec<u8> {
    let now = Nanos::from_secs(at_s);
    partition.on_batch(1, now);
    let (key, time) = (partition.key(request.key()), partition.time(now));
    partition.run((TAG, request), &key, time, |reply| {
        let mut answer = vec![0; reply.size()];
        reply.write(&mut answer);
        answer
    })
}

fn value(answer: &[u8]) -> Option<Vec<u8>> {
    match Answer::decode(answer) {
        Ok(Answer::Found(item)) => Some(item.value.to_vec()),
        _ => None,
    }
}

fn refused(status: Status) -> Vec<u8> {
    let mut answer = vec![0; 8];
    answer[0] = status as u8;
    answer
}

#[test]
fn every_operation_does_its_work() {
    let mut partition = small_partition(Mode::Store);
    let mut run = |request: Request<'_>| run(&mut partition, &request, 1);
    let get = Request::Get { key: b"k" };
    let write = |verb, value: &'static [u8], if_version| {
        Request::Write(Store {
            verb,
            if_version,
            ..Store::set(b"k", value)
        })
    };
    let count = |delta| Request::Count {
        key: b"k",
        delta,
        if_version: None,
    };
    assert_eq!(run(get), refused(Status::Missing));
    assert_eq!(
        run(write(Verb::Replace, b"x", None)),
        refused(Status::Missing)
    );
    assert_eq!(
        Answer::decode(&run(write(Verb::Add, b"b", None))),
        Ok(Answer::Written(1))
    );
    assert_eq!(run(write(Verb::Add, b"x", None)), refused(Status::Present));
    run(write(Verb::Append, b"c", None));
    run(write(Verb::Prepend, b"a", None));
    assert_eq!(value(&run(get)), Some(b"abc".to_vec()));
    assert_eq!(run(count(Delta::Up(1))), refused(Status::NotANumber));
    assert_eq!(
        run(write(Verb::Set, b"7", Some(1))),
        refused(Status::Differs)
    );
    assert_eq!(
        Answer::decode(&run(write(Verb::Set, b"7", Some(3)))),
        Ok(Answer::Written(4))
    );
    assert_eq!(
        Answer::decode(&run(count(Delta::Up(5)))),
        Ok(Answer::Counted(12, 5))
    );
    assert_eq!(
        Answer::decode(&run(count(Delta::Down(20)))),
        Ok(Answer::Counted(0, 6))
    );
    let delete = |if_version| Request::Delete {
        key: b"k",
        if_version,
    };
    assert_eq!(run(delete(Some(1))), refused(Status::Differs));
    assert_eq!(run(delete(None)), refused(Status::Done));
    assert_eq!(run(delete(None)), refused(Status::Missing));
}

#[test]
fn items_expire_and_can_be_touched() {
    let mut partition = small_partition(Mode::Cache);
    let store = Store {
        lifetime: 10,
        ..Store::set(b"k", b"v")
    };
    run(&mut partition, &Request::Write(store), 100);
    let get = Request::Get { key: b"k" };
    let Ok(Answer::Found(item)) =
        Answer::decode(&run(&mut partition, &get, 103)).map(|it| match it {
            Answer::Found(item) => Answer::Found(crate::wire::FoundItem { value: b"", ..item }),
            other => panic!("{other:?}"),
        })
    else {
        panic!("the item is gone");
    };
    assert_eq!(item.lifetime, 7);
    let touch = Request::Touch {
        key: b"k",
        lifetime: 100,
    };
    assert_eq!(run(&mut partition, &touch, 104), refused(Status::Done));
    assert!(value(&run(&mut partition, &get, 203)).is_some());
    assert_eq!(run(&mut partition, &get, 204), refused(Status::Missing));
    assert_eq!(run(&mut partition, &touch, 204), refused(Status::Missing));
}

#[test]
fn the_sweep_finds_items_that_no_client_asks_for() {
    let mut partition = small_partition(Mode::Store);
    for number in 0..100_u8 {
        let key = [b'k', number];
        let store = Store {
            lifetime: 1,
            ..Store::set(&key, b"v")
        };
        run(&mut partition, &Request::Write(store), 1);
    }
    assert_eq!(partition.figures().items, 100);
    for step in 0..20 {
        let now = Nanos::from_secs(3) + Nanos::from_millis(step);
        partition.on_batch(0, now);
    }
    assert_eq!(
        (partition.figures().items, partition.figures().expired),
        (0, 100)
    );
}

/// A partition with items that were written in second 1 and live for this number of seconds.
fn with_items(mode: Mode, items: u64, lifetime: u32) -> Partition {
    let config = Config {
        mode,
        seed: Seed::new([7, 9]),
        first_version: 1,
    };
    let table = Table::new(Region::new(1 << 20).unwrap(), config).unwrap();
    let map = Map::new(TAG, mode, [0]).unwrap();
    let mut partition = Partition::new(table, map, 0);
    for number in 0..items {
        let key = number.to_le_bytes();
        let store = Store {
            lifetime,
            ..Store::set(&key, b"v")
        };
        run(&mut partition, &Request::Write(store), 1);
    }
    partition
}

/// A cache line takes about 100 ns: one in 10 us is a hundredth of the thread.
#[test]
fn the_sweep_touches_a_cache_line_in_ten_microseconds_and_few_after_a_pause() {
    const MICROS: u64 = 20_000;
    for mode in [Mode::Store, Mode::Cache] {
        let mut partition = with_items(mode, 3000, 1);
        let before = partition.lend().stats();
        // After a pause of any length, there is only one sweep.
        let begin = Nanos::from_secs(100);
        partition.on_time(begin);
        let after_pause = partition.lend().stats();
        let lines = after_pause.sweep_lines - before.sweep_lines;
        // A bucket is swept as a whole; it has fewer than 20 items, of less than a line each.
        let bucket = 20 * 6;
        assert!((256..256 + bucket).contains(&lines), "{mode:?}: {lines}");
        // A busy thread, which calls every microsecond.
        for step in 1..=MICROS {
            partition.on_time(begin + Nanos::from_micros(step));
        }
        let end = partition.lend().stats();
        let lines = end.sweep_lines - after_pause.sweep_lines;
        let due = MICROS / 10;
        assert!(
            (due - 256 - bucket..=due + bucket).contains(&lines),
            "{mode:?}: {lines}"
        );
        let removed = end.expired - before.expired;
        // A removal touches the item's header and, in a store, four more lines.
        let each = if mode == Mode::Store { 5 } else { 1 };
        let most = (end.sweep_lines - before.sweep_lines) / each;
        assert!((101..=most).contains(&removed), "{mode:?}: {removed}");
    }
}

#[test]
fn the_sweep_takes_nothing_while_no_item_can_have_expired() {
    for lifetime in [0, 1_000_000] {
        let mut partition = with_items(Mode::Store, 3000, lifetime);
        for step in 1..1000 {
            partition.on_time(Nanos::from_secs(100) + Nanos::from_micros(20 * step));
        }
        assert_eq!(partition.lend().stats().sweep_lines, 0, "{lifetime} s");
    }
}

#[test]
fn a_request_by_another_map_does_nothing() {
    let mut partition = small_partition(Mode::Store);
    let request = Request::Write(Store::set(b"k", b"v"));
    let key = partition.key(b"k");
    let time = partition.time(Nanos::ZERO);
    let status = partition.run((TAG + 1, &request), &key, time, |reply| {
        let mut answer = vec![0; reply.size()];
        reply.write(&mut answer);
        answer
    });
    assert_eq!(status, refused(Status::MapChanged));
    let figures = partition.figures();
    assert_eq!((figures.items, figures.map_changed), (0, 1));
    let mut request = vec![0; Keys::size([&b"k"[..]].into_iter())];
    Keys::encode(TAG + 1, 100, 1, [&b"k"[..]].into_iter(), &mut request);
    let (tag, keys) = Keys::decode(&request).unwrap();
    let answer = partition.run_multi((tag, &keys), Nanos::ZERO);
    assert!(matches!(
        Records::decode(answer),
        Ok(Err(Status::MapChanged))
    ));
}

/// A partition with memory for a value of 1 MiB.
fn large_partition() -> Partition {
    use dunlin_store::{Config, Region, Seed, Table};
    let config = Config {
        mode: Mode::Cache,
        seed: Seed::new([7, 9]),
        first_version: 1,
    };
    let table = Table::new(Region::new(16 << 20).unwrap(), config).unwrap();
    let map = crate::wire::Map::new(TAG, Mode::Cache, [0]).unwrap();
    Partition::new(table, map, 0)
}

#[test]
fn slices_of_a_long_value_come_from_one_write() {
    let mut partition = large_partition();
    let long: Vec<u8> = (0..MAX_VALUE)
        .map(|at| (at / 1000).to_le_bytes()[0])
        .collect();
    let write = Request::Write(Store::set(b"k", &long));
    run(&mut partition, &write, 1);
    let first = run(&mut partition, &Request::Get { key: b"k" }, 1);
    let Ok(Answer::Found(item)) = Answer::decode(&first) else {
        panic!("the item is missing");
    };
    let (stamp, mut seen) = (item.stamp, item.value.to_vec());
    assert_eq!(seen.len(), SLICE);
    let slice = |partition: &mut Partition, from: usize| {
        let from = u32::try_from(from).unwrap();
        let request = Request::Slice {
            key: b"k",
            stamp,
            from,
        };
        run(partition, &request, 1)
    };
    while seen.len() < long.len() {
        let answer = slice(&mut partition, seen.len());
        let Ok(Answer::Slice(bytes)) = Answer::decode(&answer) else {
            panic!("{} bytes came", seen.len());
        };
        assert!(bytes.len() <= SLICE);
        seen.extend_from_slice(bytes);
    }
    assert!(seen == long);
    assert_eq!(slice(&mut partition, long.len()), refused(Status::Gone));
    run(&mut partition, &write, 1);
    assert_eq!(
        slice(&mut partition, SLICE),
        refused(Status::Gone),
        "another write"
    );
}

#[test]
fn many_keys_are_answered_as_far_as_they_fit() {
    let mut partition = large_partition();
    let long = vec![b'l'; SLICE + 1];
    let all: [(&[u8], &[u8]); 3] = [(b"a", &[b'a'; 100]), (b"l", &long), (b"b", &[b'b'; 100])];
    for (key, value) in all {
        run(&mut partition, &Request::Write(Store::set(key, value)), 1);
    }
    let mut ask = |limit: u32| {
        let keys: [&[u8]; 4] = [b"a", b"none", b"l", b"b"];
        let mut request = vec![0; Keys::size(keys.into_iter())];
        Keys::encode(TAG, limit, 4, keys.into_iter(), &mut request);
        let (tag, keys) = Keys::decode(&request).unwrap();
        let answer = partition
            .run_multi((tag, &keys), Nanos::from_secs(1))
            .to_vec();
        assert!(answer.len() <= limit as usize);
        let records = Records::decode(&answer).unwrap().unwrap();
        let kinds = records.iter().map(|record| match record {
            Answer::Found(item) => char::from(item.value[0]),
            Answer::Refused(Status::Missing) => '-',
            Answer::Refused(Status::Alone) => '!',
            _ => '?',
        });
        kinds.collect::<String>()
    };
    assert_eq!(ask(4096), "a-!b");
    assert_eq!(ask(8 + 124 + 8 + 8), "a-!");
    assert_eq!(ask(8 + 124), "a");
    // A value that does not fit into any answer of this length must be asked for separately.
    assert_eq!(ask(8 + 123), "!-!!");
}

/// A client may allow an answer of 16 MiB. Other requests of the thread must not wait for a copy of
/// that length.
#[test]
fn an_answer_for_many_keys_copies_no_more_than_a_slice() {
    let mut partition = large_partition();
    let names: Vec<[u8; 2]> = (0..40_u16).map(u16::to_le_bytes).collect();
    for (name, len) in names.iter().zip([SLICE, 30_000, 1000].into_iter().cycle()) {
        let value = vec![b'v'; len];
        let write = Request::Write(Store::set(name, &value));
        assert!(matches!(
            Answer::decode(&run(&mut partition, &write, 1)),
            Ok(Answer::Written(_))
        ));
    }
    let (mut asked, mut calls) = (0, 0);
    while asked < names.len() {
        let keys = || names[asked..].iter().map(|name| &name[..]);
        let mut request = vec![0; Keys::size(keys())];
        Keys::encode(TAG, u32::MAX, keys().count(), keys(), &mut request);
        let (tag, keys) = Keys::decode(&request).unwrap();
        let answer = partition.run_multi((tag, &keys), Nanos::from_secs(1));
        assert!(answer.len() <= SLICE + 64, "{} bytes", answer.len());
        let records = Records::decode(answer).unwrap().unwrap();
        assert!(records.iter().all(|it| matches!(it, Answer::Found(_))));
        asked += records.len();
        calls += 1;
    }
    assert!((20..=40).contains(&calls), "{calls} calls");
    assert!(partition.records.capacity() <= 4 * SLICE);
}

#[test]
fn the_fuzz_corpus_is_answered() {
    let inputs = dunlin_testkit::corpus::inputs("kv");
    assert!(inputs.len() > 10);
    for input in inputs {
        check::message(&input);
        check::partition(&input);
    }
}

proptest! {
    #[test]
    fn any_requests_are_answered(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        check::partition(&bytes);
    }

    #[test]
    fn requests_of_the_protocol_are_answered(
        setting in 0_u8..4,
        steps in prop::collection::vec((2_u8..4, 1_u8..12, 1_u8..4, any::<u8>(), 0_u8..40), 0..40),
        fillers in prop::collection::vec(prop_oneof![3 => Just(0_u8), 1 => 0_u8..63], 40),
    ) {
        let mut bytes = vec![setting];
        for ((kind, code, key, pause, value), filler) in steps.into_iter().zip(fillers) {
            // A filler makes the value long, and other requests invalid.
            let kind = kind + if (3..8).contains(&code) { 4 * filler } else { 0 };
            let fields = match code {
                1 => 0,
                10 | 11 => 8,
                _ => 16,
            };
            let value = if (3..8).contains(&code) { usize::from(value) } else { 0 };
            let len = 8 + fields + 1 + value;
            bytes.extend(u16::try_from(len).unwrap().to_le_bytes());
            bytes.extend([kind, pause, 1, code, 1, 0, 7, 0, 0, 0]);
            bytes.extend(vec![0; fields]);
            bytes.push(b'a' + key);
            bytes.extend(vec![b'1'; value]);
        }
        check::partition(&bytes);
    }
}
