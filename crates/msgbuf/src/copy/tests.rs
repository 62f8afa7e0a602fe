//! Tests of `copy`: every length.

use super::*;

#[test]
fn every_length_is_copied_and_nothing_beyond_it() {
    let from: Vec<u8> = (1..=251).cycle().take(600).collect();
    for len in 0..=600_usize {
        let mut to = [0; 700];
        settled(&mut to[..len], &from[..len]);
        assert_eq!((&to[..len], &to[len..]), (&from[..len], &[0; 700][len..]));
        let (mut to, end) = ([7; 704], len.max(1).next_multiple_of(CHUNK));
        let (chunks, _) = to.as_chunks_mut();
        let too_few = len.div_ceil(CHUNK).saturating_sub(1);
        assert!(len == 0 || !fresh_chunks(&mut chunks[..too_few], &from[..len]));
        assert!(fresh_chunks(&mut chunks[..end / CHUNK], &from[..len]));
        assert_eq!(&to[..len], &from[..len]);
        assert_eq!(&to[len..end], &[0; CHUNK][..end - len]);
        assert_eq!(&to[end..], &[7; 704][end..]);
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

#[test]
fn a_message_of_up_to_two_chunks_is_followed_by_zeros() {
    let from: Vec<u8> = (1..=70).collect();
    for len in 0..=70 {
        let mut to = [7; 64];
        let fits = fresh_two(&mut to, &from[..len]);
        assert_eq!(fits, (33..=64).contains(&len), "{len} bytes");
        match fits {
            true => assert_eq!((&to[..len], &to[len..]), (&from[..len], &[0; 64][len..])),
            false => assert_eq!(to, [7; 64], "nothing is written"),
        }
    }
}
