//! Headers and shapes.

use super::{CHUNK, Header, MAX_SLOT, TAIL, Value};
use crate::config::{MAX_KEY, MAX_VALUE, Mode, SLICE};
use crate::index::Place;
use crate::memory::Region;

#[test]
fn a_header_is_read_as_it_was_written() {
    let mut memory = Region::new(1 << 16).unwrap();
    let headers = [
        Header {
            version: u64::MAX,
            expiry: u32::MAX,
            last_access: 1,
            flags: u32::MAX,
            key_len: 250,
            value_len: u32::try_from(MAX_VALUE).unwrap(),
            marks: 7,
            is_wide: true,
        },
        Header {
            version: 7,
            expiry: 0,
            last_access: 9,
            flags: 0,
            key_len: 16,
            value_len: u32::try_from(SLICE + 1).unwrap(),
            marks: 2,
            is_wide: true,
        },
        Header {
            version: 7,
            expiry: 0,
            last_access: 9,
            flags: 1,
            key_len: 16,
            value_len: u32::try_from(SLICE).unwrap(),
            marks: 2,
            is_wide: true,
        },
        Header {
            version: 1,
            expiry: 0,
            last_access: u32::MAX,
            flags: 0,
            key_len: 1,
            value_len: 0,
            marks: 0,
            is_wide: false,
        },
    ];
    for header in headers {
        assert_eq!(header.sized(), header);
        header.write(&mut memory, Place::at(64));
        assert_eq!(Header::read(&memory, Place::at(64)), header);
    }
}

#[test]
fn every_value_has_room_for_each_of_its_bytes() {
    for value_len in (0..=MAX_VALUE)
        .step_by(331)
        .chain([SLICE, SLICE + 1, TAIL, MAX_VALUE])
    {
        for key_len in [1, 16, MAX_KEY] {
            let header = header(key_len, value_len);
            let whole = header.shape(Mode::Cache);
            assert_eq!((whole.chunks, whole.tail_len), (0, value_len));
            let shape = header.shape(Mode::Store);
            assert!(shape.size <= MAX_SLOT && shape.tail_len <= value_len);
            let in_pages = value_len - shape.tail_len;
            assert!(in_pages <= shape.chunks * CHUNK && in_pages + CHUNK > shape.chunks * CHUNK);
            assert!(shape.tail_at + shape.tail_len <= shape.size && shape.size.is_multiple_of(8));
            assert_eq!(shape.tail_at - shape.list_at, 4 * shape.chunks);
            assert_eq!(shape.key_at, if value_len > SLICE { 32 } else { 16 });
            let wide = Header {
                expiry: 1,
                ..header
            };
            let wider = wide.sized().shape(Mode::Cache).size - whole.size;
            assert_eq!(wider, if value_len > SLICE { 0 } else { 8 });
        }
    }
}

fn header(key_len: usize, value_len: usize) -> Header {
    let header = Header {
        version: 1,
        expiry: 0,
        last_access: 0,
        flags: 0,
        key_len: u8::try_from(key_len).unwrap(),
        value_len: u32::try_from(value_len).unwrap(),
        marks: 0,
        is_wide: false,
    };
    header.sized()
}

#[test]
fn an_item_of_sixteen_and_thirty_two_bytes_fills_a_cache_line() {
    assert_eq!(header(16, 32).shape(Mode::Store).size, 64);
    assert_eq!(header(16, 32).shape(Mode::Cache).size, 64);
}

#[test]
fn a_value_in_pages_is_copied_from_any_byte() {
    let mut memory = Region::new(1 << 20).unwrap();
    let bytes: Vec<u8> = (0..=250).cycle().take(40_000).collect();
    let (cut, tail) = bytes.split_at(2 * CHUNK);
    let pages = [7_u32, 3];
    for (page, chunk) in pages.iter().zip(cut.chunks(CHUNK)) {
        let at = super::chunk_at(*page);
        memory[at..at + chunk.len()].copy_from_slice(chunk);
    }
    let list: Vec<u8> = pages.iter().flat_map(|page| page.to_le_bytes()).collect();
    let value = Value {
        memory: &memory,
        list: &list,
        tail,
        len: bytes.len(),
    };
    assert!(value == *bytes && value.to_vec() == bytes && value.as_slice().is_none());
    assert!(value != bytes[..39_999] && value != [bytes.as_slice(), b"x"].concat()[..]);
    for from in [0, 1, CHUNK - 1, CHUNK, 2 * CHUNK + 5, 39_999, 40_000] {
        for len in [0, 1, 100, 20_000, 50_000] {
            let mut out = vec![0; len];
            let copied = value.copy_from(from, &mut out);
            assert_eq!(copied, len.min(bytes.len() - from));
            assert_eq!(out[..copied], bytes[from..from + copied]);
        }
    }
}
