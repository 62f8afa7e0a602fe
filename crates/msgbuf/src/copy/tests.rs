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
    for len in 0..=200 {
        let mut to = [0; 210];
        fresh_any(&mut to[..len], &from[..len]);
        assert_eq!((&to[..len], &to[len..]), (&from[..len], &[0; 210][len..]));
    }
    for len in 0..=32 {
        let mut to = [0; 32];
        fresh(&mut to, &from[..len]);
        assert_eq!((&to[..len], &to[len..]), (&from[..len], &[0; 32][len..]));
    }
}
