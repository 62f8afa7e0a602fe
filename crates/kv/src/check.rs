//! Properties that hold for any bytes. The tests of this crate and the fuzz target share them.
//!
//! Each function panics if its property does not hold.

use dunlin_core::Nanos;
use dunlin_store::{Config, Mode, Region, Seed, Table, Verb};

use crate::dump::Reader;
use crate::partition::{Partition, WholeReply};
use crate::wire::{
    Answer, Figures, HotKeys, KEYED, Keys, MULTI, Map, Records, Request, Scanned, Status, Store,
    WHOLE, Whole,
};

/// The unit of the filler that makes a request long: 63 of them are more than a value may have.
const FILLER: usize = 17_000;

/// The tag of the map in all checks.
const TAG: u32 = 7;

/// Decodes the bytes as each kind of message. A message that decodes must encode to the same bytes.
///
/// # Panics
/// If it does not.
pub fn message(bytes: &[u8]) {
    if let Ok((tag, request)) = Request::decode(bytes) {
        let mut again = vec![0xff; request.size()];
        request.encode(tag, &mut again);
        assert!(request.is_in_range() && again == bytes, "{request:?}");
        assert_eq!(Request::find_key(bytes), Ok(request.key()));
    }
    plain(bytes);
    if let Ok((tag, keys)) = Keys::decode(bytes) {
        let mut again = vec![0xff; Keys::size(keys.iter())];
        Keys::encode(tag, keys.limit(), keys.len(), keys.iter(), &mut again);
        assert_eq!(again, bytes, "{keys:?}");
    }
    if let Ok((tag, whole)) = Whole::decode(bytes) {
        let mut again = vec![0xff; whole.size()];
        whole.encode(tag, &mut again);
        assert_eq!(again, bytes, "{whole:?}");
    }
    if let Ok((map, own)) = Map::decode(bytes) {
        let mut again = vec![0xff; map.size()];
        map.encode(own, &mut again);
        // The longest value and the bytes of later versions are not compared.
        assert_eq!(Map::decode(&again), Ok((map, own)));
    }
    if let Ok(Answer::Found(item)) = Answer::decode(bytes) {
        assert!(item.value.len() <= item.len as usize);
    }
    let _ = (Records::decode(bytes), Figures::decode(bytes));
    let _ = Scanned::decode(bytes);
    dump(bytes);
}

/// Decodes the bytes as a get and as a set, in both ways, once with the tag that they contain and
/// once with another.
fn plain(bytes: &[u8]) {
    let tag = bytes.get(4..8).map_or(0, |tag| {
        let tag = tag.first_chunk().expect("it has four bytes");
        u32::from_le_bytes(*tag)
    });
    let (mut get, mut set) = (None, None);
    match Request::decode(bytes) {
        Ok((_, Request::Get { key })) => get = Some(key),
        Ok((_, Request::Write(store))) if store.verb == Verb::Set => {
            set = store.if_version.is_none().then_some(store);
        }
        _ => {}
    }
    assert_eq!(Request::decode_get(bytes, tag), get);
    assert_eq!(Request::decode_get(bytes, !tag), None);
    let key = Request::decode_set(bytes, tag);
    assert_eq!(key.map(|key| Store::of_plain_set(bytes, key)), set);
    assert_eq!(Request::decode_set(bytes, !tag), None);
    assert!(Request::claims_set(bytes) || set.is_none());
    assert!(!Request::claims_set(bytes) || get.is_none());
}

/// Reads the bytes as the lines of a dump file. Each item that is read must be written as a line
/// that reads as the same item.
///
/// # Panics
/// If it is not.
pub fn dump(bytes: &[u8]) {
    let mut reader = Reader::default();
    for line in bytes.split(|byte| *byte == b'\n') {
        let Ok(Some(item)) = reader.on_line(line) else {
            continue;
        };
        let mut again = Vec::new();
        item.write(&mut again);
        let end = again.pop();
        assert_eq!(end, Some(b'\n'));
        assert_eq!(Reader::default().on_line(&again), Ok(Some(item)));
    }
}

/// Runs the bytes as requests to a partition. The first byte chooses the mode and the memory of its
/// table. Each request begins with its length, its type, the length of the filler after it, and the
/// pause before it. Every answer must have the length that it claims, and a client must be able to
/// read it.
///
/// # Panics
/// If one of these is false.
pub fn partition(bytes: &[u8]) {
    let Some((setting, mut rest)) = bytes.split_first() else {
        return;
    };
    let mode = match setting & 1 {
        0 => Mode::Cache,
        _ => Mode::Store,
    };
    let memory = match setting & 2 {
        0 => 64 << 10,
        _ => 4 << 20,
    };
    let mut partition = partition_of(mode, memory);
    let mut now = Nanos::ZERO;
    while let Some(([low, high, kind, pause], after)) = rest.split_first_chunk() {
        let len = usize::from(u16::from_le_bytes([*low, *high])).min(after.len());
        let (request, after) = after.split_at(len);
        now += Nanos::from_millis(u64::from(*pause) * 50);
        let filler = usize::from(kind / 4) * FILLER;
        if filler == 0 {
            run_one(&mut partition, *kind, request, now);
        } else {
            let mut long = request.to_vec();
            long.resize(request.len() + filler, b'v');
            run_one(&mut partition, *kind, &long, now);
        }
        rest = after;
    }
}

/// A partition with a table of the smallest size.
///
/// # Panics
/// If there is no memory for it.
#[must_use]
pub fn small_partition(mode: Mode) -> Partition {
    partition_of(mode, 64 << 10)
}

fn partition_of(mode: Mode, memory: usize) -> Partition {
    let config = Config {
        mode,
        seed: Seed::new([7, 9]),
        first_version: 1,
    };
    let region = Region::new(memory).expect("the memory is small");
    let table = Table::new(region, config).expect("it is large enough for a table");
    let map = Map::new(TAG, mode, [0]).expect("there is one partition");
    Partition::new(table, map, 0)
}

fn run_one(partition: &mut Partition, kind: u8, bytes: &[u8], now: Nanos) {
    match kind % 4 {
        0 => {
            if let Ok((tag, keys)) = Keys::decode(bytes) {
                partition.on_batch(keys.len(), now);
                let limit = keys.limit() as usize;
                let answer = partition.run_multi((tag, &keys), now);
                assert!(answer.len() <= limit.max(16), "{} bytes", answer.len());
                let records = Records::decode(answer).expect("a client can read it");
                assert!(records.is_err() || records.is_ok_and(|it| !it.is_empty()));
            }
        }
        1 => {
            let reply = Whole::decode(bytes).map(|whole| partition.run_whole(whole, now));
            match reply {
                Ok(WholeReply::Figures(figures)) => {
                    let mut answer = vec![0; Figures::SIZE];
                    figures.encode(&mut answer);
                    assert_eq!(Figures::decode(&answer), Ok(*figures));
                }
                Ok(WholeReply::Keys(answer)) => {
                    let keys = match Scanned::decode(&answer) {
                        Ok((keys, _)) => keys,
                        Err(_) => {
                            let hot = HotKeys::decode(&answer).expect("a client can read it");
                            hot.keys.into_iter().map(|(key, _)| key).collect()
                        }
                    };
                    assert!(keys.iter().all(|key| (1..=250).contains(&key.len())));
                }
                Ok(WholeReply::Short(_)) | Err(_) => {}
            }
        }
        _ => {
            if let Ok((tag, request)) = Request::decode(bytes) {
                partition.on_batch(1, now);
                let key = partition.key(request.key());
                let time = partition.time(now);
                partition.run((tag, &request), &key, time, |reply| {
                    let mut answer = vec![0xff; reply.size()];
                    reply.write(&mut answer);
                    let read = Answer::decode(&answer).expect("a client can read it");
                    let is_refused = read == Answer::Refused(Status::MapChanged);
                    assert_eq!(is_refused, tag != TAG, "{request:?}: {read:?}");
                });
            }
        }
    }
}

const _: () = assert!(KEYED.0 != MULTI.0 && MULTI.0 != WHOLE.0);
