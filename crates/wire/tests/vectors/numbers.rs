//! Vectors of the small numbers: residences and request numbers.

use dunlin_wire::{ReqNum, Residence};

use crate::text::Block;

pub(crate) fn residences() -> Vec<Block> {
    let around = |n: u64| [n - 1, n, n + 1];
    let mut times = vec![0, 1, 50, 1000];
    times.extend(around(2048));
    times.extend(around(4096));
    times.extend([10_000, 123_456, 10_000_000, 1_000_000_000]);
    times.extend(around(2047 << 31));
    times.push(u64::MAX);
    times.into_iter().map(residence).collect()
}

pub(crate) fn reread_residence(block: &Block) -> Block {
    residence(block.number("nanos"))
}

pub(crate) fn request_numbers() -> Vec<Block> {
    let pairs = [
        (0, 1),
        (8, 0),
        (5, 5),
        (0, 0x7FFF_FFFF),
        (0, 0x8000_0001),
        (0xFFFF_FFF8, 0),
        (0, 0xFFFF_FFF8),
        (0xFFFF_FFFF, 7),
        (0x7FFF_FFFF, 0x8000_0000),
    ];
    pairs
        .into_iter()
        .map(|(a, b)| request_number(a, b))
        .collect()
}

pub(crate) fn reread_request_number(block: &Block) -> Block {
    request_number(block.number("a"), block.number("b"))
}

fn residence(nanos: u64) -> Block {
    let residence = Residence::from_nanos(nanos);
    let decoded = residence
        .to_nanos()
        .map_or("none".to_owned(), |nanos| nanos.to_string());
    Block::named(&format!("residence-{nanos}"))
        .with("nanos", nanos)
        .with("code", residence.0)
        .with("decoded", decoded)
}

fn request_number(a: u32, b: u32) -> Block {
    let (first, second) = (ReqNum(a), ReqNum(b));
    Block::named(&format!("request-numbers-{a}-{b}"))
        .with("a", a)
        .with("b", b)
        .with("a_is_before_b", first.is_before(second))
        .with("slot_of_a_in_window_8", first.slot(8))
        .with("after_a_in_window_8", first.next(8).0)
        .with("slot_of_a_in_window_64", first.slot(64))
        .with("after_a_in_window_64", first.next(64).0)
}
