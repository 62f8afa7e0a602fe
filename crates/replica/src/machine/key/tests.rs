//! The order of keys.

use super::*;

#[test]
fn keys_of_all_lengths_have_the_order_of_their_bytes() {
    let mut bytes: Vec<Vec<u8>> = (0..60)
        .flat_map(|len| [0, 1, 255].map(|byte| vec![byte; len]))
        .collect();
    // Pairs that differ in one place, or in nothing but their lengths.
    for place in 0..30 {
        let mut one = vec![7; 30];
        one[place] = 8;
        bytes.push(one[..=place].to_vec());
        one[place] = 0;
        bytes.extend([one[..place].to_vec(), one[..=place].to_vec(), one]);
    }
    for one in &bytes {
        let key = Key::from(&one[..]);
        assert_eq!(*key, one[..]);
        assert_eq!(matches!(key, Key::Short(..)), one.len() <= SHORT);
        for other in &bytes {
            assert_eq!(key.cmp(&Key::from(&other[..])), one.cmp(other));
        }
    }
}
