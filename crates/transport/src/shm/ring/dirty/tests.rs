//! The set, compared with a list of flags, for rows and lone packets at every place.

use super::*;

/// The tests try every place and number; under Miri, which is slow, only a few.
const STEP: usize = if cfg!(miri) { 61 } else { 1 };

/// Cells of the tested set, which has several words.
const COUNT: u32 = 192;

/// A set whose bits are those of these flags.
fn set_of(flags: &[bool]) -> Dirty {
    let mut dirty = Dirty::new(COUNT);
    for (at, flag) in flags.iter().enumerate() {
        if *flag {
            dirty.on_lone(at, 1, 0);
        }
    }
    dirty
}

/// The flags of a set.
fn flags_of(mut dirty: Dirty) -> Vec<bool> {
    (0..COUNT).map(|at| dirty.take(at)).collect()
}

#[test]
fn a_row_marks_all_cells_but_the_first_of_each_packet() {
    let end = COUNT as usize;
    let places = (0..end).step_by(STEP);
    let numbers = || (1..=CELLS).step_by(STEP.min(5));
    for (first, cells) in places.flat_map(|first| numbers().map(move |cells| (first, cells))) {
        let most = (end - first) / cells;
        for packets in [1, 2, 7, most.saturating_sub(1), most] {
            if packets == 0 || packets > most {
                continue;
            }
            // The cells before and after the row keep their marks, set or not.
            for before in [false, true] {
                let mut flags = vec![before; end];
                let mut dirty = set_of(&flags);
                let place = u32::try_from(first).expect("a small set");
                dirty.on_row(place, packets * cells, cells, 1);
                for at in 0..packets * cells {
                    flags[first + at] = at % cells != 0;
                }
                assert_eq!(flags_of(dirty), flags, "{packets} of {cells} from {first}");
            }
        }
    }
}

#[test]
fn a_lone_packet_marks_all_cells_but_its_first() {
    for first in (1..COUNT as usize).step_by(STEP) {
        for count in (1..CELLS.min(COUNT as usize - first + 1)).step_by(STEP.min(5)) {
            let mut flags = vec![false; COUNT as usize];
            let mut dirty = set_of(&flags);
            dirty.on_lone(first, count, 7);
            flags[first..first + count].fill(true);
            assert!(dirty.is_possible(6) && !dirty.is_possible(7));
            assert_eq!(flags_of(dirty), flags, "{count} from {first}");
        }
    }
}

#[test]
fn a_second_cell_is_marked_and_the_mark_of_the_next_tail_is_taken() {
    for at in (0..COUNT).step_by(STEP) {
        let after = (at + 1) % COUNT;
        for before in [false, true] {
            let mut flags = vec![before; COUNT as usize];
            let mut dirty = set_of(&flags);
            assert_eq!(dirty.on_second(at as usize, after, 7), before, "{at}");
            flags[at as usize] = true;
            flags[after as usize] = false;
            assert!(dirty.is_possible(6) && !dirty.is_possible(7));
            assert_eq!(flags_of(dirty), flags, "{at}");
        }
    }
}
