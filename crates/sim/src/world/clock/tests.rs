//! How a thread runs ahead of the world.

use std::cell::Cell;
use std::rc::Rc;

use dunlin_core::{Clock, Nanos};

use super::SimClock;

#[test]
fn work_moves_only_the_thread_that_does_it() {
    let world = Rc::new(Cell::new(Nanos(100)));
    let (mut a, mut b) = (
        SimClock::new(Rc::clone(&world)),
        SimClock::new(Rc::clone(&world)),
    );
    a.clone().spend(Nanos(30));
    assert_eq!((a.now(), b.now()), (Nanos(130), Nanos(100)));
    world.set(Nanos(130));
    assert_eq!(a.settle(), Nanos(30));
    assert_eq!((a.now(), b.now()), (Nanos(130), Nanos(130)));
}
