//! Tests of `copy`: every length.

use super::*;

#[test]
fn every_length_is_copied_and_nothing_beyond_it() {
    let from: Vec<u8> = (1..=100).collect();
    for len in 0..=100 {
        let mut to = [0; 110];
        settled(&mut to[..len], &from[..len]);
        assert_eq!((&to[..len], &to[len..]), (&from[..len], &[0; 110][len..]));
    }
    let from: Vec<u8> = (1..=200).collect();
    for len in 0..=200_usize {
        let (mut to, chunks) = ([7; 256], len.next_multiple_of(CHUNK));
        fresh_chunks(&mut to[..chunks], &from[..len]);
        let end = if len <= IN_WORDS { chunks } else { len };
        assert_eq!(&to[..len], &from[..len]);
        assert_eq!(&to[len..end], &[0; CHUNK][..end - len]);
        assert_eq!(&to[end..], &[7; 256][end..]);
    }
    for len in 0..=33 {
        let mut to = [7; 32];
        let fits = fresh(&mut to, &from[..len]);
        assert_eq!(fits, len <= 32);
        if fits {
            assert_eq!((&to[..len], &to[len..]), (&from[..len], &[0; 32][len..]));
        }
    }
}
