//! Lines that are read or refused, and changes that are detected.

use proptest::collection::vec;
use proptest::prelude::*;

use super::{BadLine, Item, Mark, Reader};
use crate::check;

fn item(key: &[u8], value: &[u8], flags: u32, expires: u64) -> Item {
    Item {
        key: key.to_vec(),
        value: value.to_vec(),
        flags,
        expires,
    }
}

fn dump_of(items: &[Item]) -> Vec<u8> {
    let (mut out, mut reader) = (Vec::new(), Reader::default());
    Mark::write_first(7, &mut out);
    for (number, item) in items.iter().enumerate() {
        let start = out.len();
        item.write(&mut out);
        reader.on_line(&out[start..out.len() - 1]).unwrap();
        let mark = Mark {
            tag: 7,
            partition: 1,
            place: number as u64,
            left_out: 0,
        };
        mark.write(reader.sum(), &mut out);
    }
    Mark::start(7).write_end(reader.sum(), &mut out);
    out
}

/// Reads lines as a program does, and returns the items if the file is complete.
fn read(bytes: &[u8]) -> Result<Vec<Item>, BadLine> {
    let (mut reader, mut items) = (Reader::default(), Vec::new());
    for line in bytes.split_inclusive(|byte| *byte == b'\n') {
        items.extend(reader.on_line(line.strip_suffix(b"\n").unwrap_or(line))?);
    }
    match reader.may_end() {
        true => Ok(items),
        false => Err(BadLine::Check),
    }
}

#[test]
fn a_list_by_hand_is_read() {
    let text = "name\tdunlin\nflagged\t\t7\nbird\tauk\t0\t1900000000\n\n\\x00\\\\\\t\tä\\n\\xff\n";
    let items = [
        item(b"name", b"dunlin", 0, 0),
        item(b"flagged", b"", 7, 0),
        item(b"bird", b"auk", 0, 1_900_000_000),
        item(b"\0\\\t", b"\xc3\xa4\n\xff", 0, 0),
    ];
    assert_eq!(read(text.as_bytes()).unwrap(), items);
    let mut again = Vec::new();
    items[3].write(&mut again);
    assert_eq!(again, b"\\x00\\\\\\t\t\xc3\xa4\\n\\xff\n");
}

#[test]
fn bad_lines_have_reasons() {
    let long = format!("{}\tx", "k".repeat(251));
    for (line, reason) in [
        ("name", BadLine::NoValue),
        ("a\tb\t1\t2\t3", BadLine::TooManyFields),
        (&long, BadLine::Key),
        ("a\\", BadLine::Escape),
        ("a\t\\q", BadLine::Escape),
        ("a\t\\xf", BadLine::Escape),
        ("a\tb\t4294967296", BadLine::Number),
        ("a\tb\t-1", BadLine::Number),
        ("a\tb\t1\tsoon", BadLine::Number),
        ("\ta\tb", BadLine::Mark),
        ("\tdunlin-kv-dump\t2\t7", BadLine::Mark),
        ("\tend\t0\t0000000000000000", BadLine::Mark),
    ] {
        assert_eq!(
            Reader::default().on_line(line.as_bytes()),
            Err(reason),
            "{line}"
        );
    }
    let large = [b"a\t".to_vec(), vec![b'v'; (1 << 20) + 1]].concat();
    assert_eq!(Reader::default().on_line(&large), Err(BadLine::Value));
    let mut whole = dump_of(&[]);
    whole.extend(b"a\tb\n");
    assert_eq!(read(&whole), Err(BadLine::AfterEnd));
    // A list cannot become a dump after its first line.
    let list = [&b"a\tb\n"[..], &dump_of(&[])].concat();
    assert_eq!(read(&list), Err(BadLine::Mark));
}

#[test]
fn a_mark_has_the_number_of_items_that_are_left_out() {
    let mark = |left_out| Mark {
        tag: 7,
        partition: 2,
        place: 9,
        left_out,
    };
    let (mut out, mut reader) = (Vec::new(), Reader::default());
    Mark::write_first(7, &mut out);
    mark(0).write(reader.sum(), &mut out);
    mark(12).write(reader.sum(), &mut out);
    mark(13).write_end(reader.sum(), &mut out);
    let seen = out.split_inclusive(|byte| *byte == b'\n').map(|line| {
        reader.on_line(&line[..line.len() - 1]).unwrap();
        (reader.left_out(), reader.mark())
    });
    let marks = [None, Some(mark(0)), Some(mark(12)), Some(mark(12))];
    assert!(seen.eq([0, 0, 12, 13].into_iter().zip(marks)));
    assert!(reader.may_end());
}

fn any_item() -> impl Strategy<Value = Item> {
    let (key, value) = (vec(any::<u8>(), 1..20), vec(any::<u8>(), 0..50));
    (key, value, any::<u32>(), any::<u64>())
        .prop_map(|(key, value, flags, expires)| item(&key, &value, flags, expires))
}

proptest! {
    #[test]
    fn a_dump_is_read_as_it_was_written_and_every_change_is_detected(
        items in vec(any_item(), 1..8),
        at in any::<prop::sample::Index>(),
        byte in any::<u8>(),
    ) {
        let whole = dump_of(&items);
        prop_assert_eq!(&read(&whole).unwrap(), &items);
        let at = at.index(whole.len());
        // Without its last line feed it is still complete.
        let is_whole = read(&whole[..at]).is_ok_and(|read| read == items);
        prop_assert_eq!(is_whole, at + 1 == whole.len() && whole.ends_with(b"\n"));
        let mut changed = whole.clone();
        changed[at] = byte;
        let is_same = changed == whole;
        match read(&changed) {
            Ok(read) => prop_assert!(read == items && is_same),
            Err(_) => prop_assert!(!is_same),
        }
    }

    #[test]
    fn an_item_read_from_any_bytes_is_written_and_read_alike(bytes in vec(any::<u8>(), 0..300)) {
        check::dump(&bytes);
    }
}
