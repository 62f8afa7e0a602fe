//! Places are as many as there may be.

use super::*;

#[test]
fn a_place_is_free_again_when_it_is_dropped() {
    let places = Places::new(2);
    let mut taken: Vec<_> = (0..3).filter_map(|_| places.take()).collect();
    assert_eq!(taken.len(), 2);
    taken.pop();
    taken.extend(places.take());
    assert_eq!(taken.len(), 2);
    assert!(places.take().is_none());
}
