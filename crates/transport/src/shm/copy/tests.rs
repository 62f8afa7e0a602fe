//! Copies of every length, at every alignment of both ends, write no other byte.

use super::{
    CELL, HALF, ONE_CELL, SHORT, WORD, by_calls, halves, header, many_halves, message, settled,
    short, whole,
};

/// Miri, which is slow, tests fewer alignments.
const STEP: usize = if cfg!(miri) { 4 } else { 1 };

#[test]
fn a_copy_of_a_cell_writes_the_cell_and_nothing_more() {
    let source: [u8; ONE_CELL] = std::array::from_fn(|at| u8::try_from(at + 1).unwrap());
    for copy in [whole, settled] {
        for shift in (0..9).step_by(STEP) {
            let mut target = vec![0_u8; 2 * ONE_CELL];
            // SAFETY: the vector is longer than the shift and the packet together.
            unsafe { copy(&source, target.as_mut_ptr().add(shift)) };
            assert_eq!(target[shift..shift + ONE_CELL], source);
            assert!(target[..shift].iter().all(|&byte| byte == 0));
            assert!(target[shift + ONE_CELL..].iter().all(|&byte| byte == 0));
        }
    }
}

#[test]
fn a_copy_of_halves_writes_the_used_halves_and_nothing_more() {
    let source: [u8; CELL] = std::array::from_fn(|at| u8::try_from(at + 1).unwrap());
    for len in 1..=CELL {
        let mut target = vec![0_u8; 2 * CELL];
        // SAFETY: the vector is longer than the shift and the line together.
        unsafe { halves(&source, target.as_mut_ptr().add(8), len) };
        let end = 8 + len.next_multiple_of(CELL / 2);
        assert_eq!(target[8..end], source[..end - 8]);
        assert_eq!(target[..8], [0; 8]);
        assert!(target[end..].iter().all(|&byte| byte == 0));
    }
}

#[test]
fn a_short_copy_writes_its_length_and_nothing_more() {
    let source: Vec<u8> = (1..=200).collect();
    for len in 0..=SHORT {
        for shift in (0..9).step_by(STEP) {
            let mut target = vec![0_u8; 2 * SHORT];
            // SAFETY: both vectors are longer than the shift and the length together.
            unsafe {
                short(
                    source.as_ptr().add(shift),
                    target.as_mut_ptr().add(8 + shift),
                    len,
                )
            };
            let start = 8 + shift;
            assert_eq!(target[start..start + len], source[shift..shift + len]);
            assert!(
                target[..start].iter().all(|&byte| byte == 0),
                "before the copy, length {len}"
            );
            assert!(
                target[start + len..].iter().all(|&byte| byte == 0),
                "after the copy, length {len}"
            );
        }
    }
}

#[test]
fn a_copy_of_a_header_writes_all_but_its_word_and_nothing_more() {
    let source: [u8; HALF] = std::array::from_fn(|at| u8::try_from(at + 1).unwrap());
    let mut target = [0_u8; CELL];
    // SAFETY: the array is longer than the shift and the half together.
    unsafe { header(&source, target.as_mut_ptr().add(3)) };
    assert_eq!(target[3..3 + HALF - WORD], source[WORD..]);
    assert_eq!(target[..3], [0; 3]);
    assert!(target[3 + HALF - WORD..].iter().all(|&byte| byte == 0));
}

#[test]
fn a_copy_of_a_message_of_any_length_writes_nothing_more() {
    let source: Vec<u8> = (1..=251).cycle().take(1200).collect();
    for len in (4 * HALF..=1100).step_by(if cfg!(miri) { 61 } else { 1 }) {
        let mut target = vec![0_u8; 1200];
        // SAFETY: both vectors are longer than the shift and the length together.
        unsafe { message(source.as_ptr(), target.as_mut_ptr().add(8), len) };
        assert_eq!(target[8..8 + len], source[..len], "length {len}");
        assert_eq!(target[..8], [0; 8], "length {len}");
        assert!(
            target[8 + len..].iter().all(|&byte| byte == 0),
            "length {len}"
        );
    }
}

/// A way to copy halves of lines.
type Halves = unsafe fn(*const u8, *mut u8, usize);

#[test]
fn a_copy_of_many_halves_writes_these_and_nothing_more() {
    // Long enough for three calls of `memcpy`, and for several rounds of the loop that copies
    // eight halves. Miri, which is slow, copies less.
    let most = if cfg!(miri) { 35 } else { 2 * 1024 / HALF + 3 };
    let source: Vec<u8> = (1..=251).cycle().take(most * HALF).collect();
    let copies: [(&str, Halves); 2] = [("moves", many_halves), ("calls", by_calls)];
    for halves in 0..=most {
        for (name, copy) in copies {
            let (mut target, end) = (vec![0_u8; (most + 2) * HALF], 8 + halves * HALF);
            // SAFETY: the vectors are longer than the halves and the shift together.
            unsafe { copy(source.as_ptr(), target.as_mut_ptr().add(8), halves) };
            assert_eq!(target[8..end], source[..end - 8], "{name}, {halves}");
            assert_eq!(target[..8], [0; 8], "{name}, {halves}");
            assert!(
                target[end..].iter().all(|&byte| byte == 0),
                "{name}, {halves}"
            );
        }
    }
}
