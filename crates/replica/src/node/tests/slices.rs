//! The most work on an image that one run does with the default options, counted in items and
//! bytes. A slice of this work takes less than a millisecond; ignored tests measure that.

use super::drawing::{items_of, node_with};
use super::*;
use crate::wire::Piece;

/// The most items of a slice.
const ITEMS: usize = 512;
/// The most bytes of a slice.
const BYTES: usize = 256 << 10;
/// The most bytes of an item in an image, without its value: numbers, lengths, and a key.
const HEAD: usize = 24 + 17;

/// Many short items, and a few long ones: their number, the length of a value, and the least number
/// of slices.
const TABLES: [(u64, usize, usize); 2] = [(5_000, 8, 9), (4, 1 << 20, 16)];

/// The most bytes by which a slice lengthens an image of items with values of this length. The
/// head of the image, or of an item, may come in addition.
fn most(value: usize) -> usize {
    BYTES.min(ITEMS * (value + HEAD)) + 200
}

#[test]
fn each_write_waits_for_one_bounded_slice_of_an_image() {
    for (count, value, least) in TABLES {
        let (roster, machine) = items_of(count, value, 1);
        let mut node = node_with(roster, &machine).with_disk();
        let (mut rng, mut saved) = (Rng::new(1), Saved::default());
        let (mut slices, mut before, mut image) = (0, 0, None);
        for asker in 0..1_000 {
            match node.leads() {
                true => node.on_write(Request::OPEN.to_bytes(), asker),
                false => node.on_tick(),
            }
            let applied = node.applied();
            let mut out = Output::default();
            node.run(&mut rng, &mut out);
            if let Some(drawn) = node.drawn() {
                let added = drawn - before;
                assert!(added <= most(value), "{added} bytes, values of {value}");
                slices += usize::from(added > 0);
                before = drawn;
                // A write's entry is saved in the run after it, and then applied.
                assert!(slices < 3 || node.applied() == applied + 1, "in {slices}");
            }
            for work in out.work {
                match work {
                    Work::Write(write) => saved.number = write.number,
                    Work::Checkpoint(items) => image = Some(items.image),
                }
            }
            node.on_saved(saved);
            if let Some(image) = &image {
                let last = image.len() - before;
                assert!(last <= most(value), "{last} bytes, values of {value}");
                break;
            }
            if slices == 0 && node.applied() > machine.applied() + 2 {
                node.shorten();
            }
        }
        assert!(image.is_some(), "the image is made");
        assert!(slices >= least, "{slices} slices, values of {value}");
    }
}

#[test]
fn each_run_reads_one_bounded_slice_of_a_snapshot() {
    for (count, value, least) in TABLES {
        let (roster, mut machine) = items_of(count, value, 3);
        let mut node = node_with(roster.clone(), &machine);
        let place = (machine.applied() + 1, 2);
        let opened = machine.apply(place.0, &Request::OPEN.to_bytes());
        opened.unwrap();
        let image = items::join(&roster, &machine.to_image());
        let (mut rng, mut runs) = (Rng::new(1), 0);
        for (at, bytes) in (0..).zip(image.chunks(Options::DEFAULT.piece_bytes)) {
            let piece = Piece {
                cluster: 0,
                from: 2,
                to: 1,
                term: 2,
                place,
                total: image.len() as u64,
                offset: at * Options::DEFAULT.piece_bytes as u64,
                bytes,
            };
            assert!(node.on_piece(&piece));
            while !node.has_read() {
                let before = node.arriving.as_ref().map_or(0, |it| it.read);
                node.run(&mut rng, &mut Output::default());
                let read = node.arriving.as_ref().map_or(0, |it| it.read);
                // A value is read in one piece, once all of it has arrived.
                let added = read.saturating_sub(before);
                assert!(added <= most(value) + value, "{added} bytes");
                runs += 1;
            }
        }
        assert_eq!(node.restores(), 1);
        assert!(runs >= least, "{runs} runs, values of {value}");
        let freed = (0..1_000).take_while(|_| {
            node.run(&mut rng, &mut Output::default());
            node.has_more()
        });
        let freed = freed.count() + 1;
        let least = usize::try_from(count).unwrap() / ITEMS;
        assert!(freed >= least && !node.has_more(), "{freed} runs free them");
    }
}
