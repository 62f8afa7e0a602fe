//! The order of keys.

use super::*;

#[test]
fn keys_have_the_order_of_their_bytes() {
    let mut all = Vec::new();
    for place in 0..30 {
        let mut one = vec![7; 30];
        one[place] = 8;
        all.push(one[..=place].to_vec());
        one[place] = 0;
        all.extend([one[..place].to_vec(), one[..=place].to_vec(), one]);
    }
    for one in &all {
        assert_eq!(Key::short(one).is_some(), one.len() <= SHORT_KEY);
        for other in &all {
            assert_eq!(Key::new(one).cmp(&Key::new(other)), one.cmp(other));
        }
    }
}
