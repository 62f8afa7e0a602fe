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

#[test]
fn a_clock_that_began_earlier_shows_another_time_and_runs_as_fast() {
    let world = Rc::new(Cell::new(Nanos(100)));
    let mut clock = SimClock::new(Rc::clone(&world));
    clock.set_origin(Nanos(1000));
    clock.spend(Nanos(5));
    assert_eq!((clock.now(), clock.world_time()), (Nanos(1105), Nanos(105)));
    assert_eq!(clock.to_world(Nanos(1200)), Nanos(200));
    assert_eq!(clock.to_world(Nanos::ZERO), Nanos::ZERO, "at once");
    assert_eq!(clock.to_world(Nanos::MAX), Nanos::MAX, "never");
}
