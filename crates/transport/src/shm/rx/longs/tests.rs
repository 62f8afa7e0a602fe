//! Copies stay readable while later ones are made.

use super::*;

#[test]
fn addresses_of_copies_hold_while_further_copies_are_made() {
    let mut longs = Longs::new(4);
    let mut places = Vec::new();
    for byte in 1..=4 {
        let room = longs.room();
        room[0] = Line([byte; CELL]);
        places.push(NonNull::from(&mut room[0]));
        longs.keep(1);
    }
    assert!(longs.room().is_empty());
    for (place, byte) in places.into_iter().zip(1..) {
        // SAFETY: the copy lies in `longs`.
        assert_eq!(unsafe { place.as_ref() }.0, [byte; CELL]);
    }
    longs.clear();
    assert_eq!(longs.room().len(), 4);
}

#[test]
#[should_panic(expected = "self.staged <= self.count")]
fn no_room_lies_after_the_last_line() {
    let mut longs = Longs::new(4);
    longs.keep(5);
    longs.room();
}
