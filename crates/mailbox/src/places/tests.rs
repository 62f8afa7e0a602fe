//! There are as many places as the limit says, and a task that waits gets one.

use std::sync::atomic::AtomicUsize;
use std::task::Wake;

use super::*;

/// Counts how often its task is woken.
#[derive(Default)]
struct Alarm(AtomicUsize);

impl Wake for Alarm {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

struct Task {
    alarm: Arc<Alarm>,
    waiter: Waiter,
}

impl Task {
    fn new() -> Self {
        Self {
            alarm: Arc::default(),
            waiter: Waiter::default(),
        }
    }

    fn poll(&mut self, places: &Arc<Places>) -> Option<TakenPlace> {
        let waker = Waker::from(Arc::clone(&self.alarm));
        match places.poll_reserve(&mut self.waiter, &Context::from_waker(&waker)) {
            Poll::Ready(()) => Some(places.taken()),
            Poll::Pending => None,
        }
    }

    fn woken(&self) -> usize {
        self.alarm.0.load(Ordering::Relaxed)
    }
}

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

#[test]
fn each_place_that_becomes_free_wakes_the_next_waiting_task() {
    let places = Places::new(1);
    let place = places.take();
    let mut tasks = [(); 3].map(|()| Task::new());
    for task in &mut tasks {
        assert!(task.poll(&places).is_none() && task.poll(&places).is_none());
    }
    drop(place);
    let [first, second, third] = &mut tasks;
    assert_eq!([first.woken(), second.woken(), third.woken()], [1, 0, 0]);
    let place = first.poll(&places);
    assert!(place.is_some());
    assert_eq!([second.woken(), third.woken()], [0, 0]);
    drop(place);
    assert_eq!([second.woken(), third.woken()], [1, 0]);
}

#[test]
fn several_places_wake_several_tasks_one_after_the_other() {
    let places = Places::new(2);
    let taken = [places.take(), places.take()];
    let [mut first, mut second] = [Task::new(), Task::new()];
    assert!(first.poll(&places).is_none() && second.poll(&places).is_none());
    drop(taken);
    let has = first.poll(&places);
    assert!(has.is_some() && second.woken() > 0);
    assert!(second.poll(&places).is_some());
}

#[test]
fn a_task_that_is_gone_leaves_its_turn_to_the_next() {
    let places = Places::new(1);
    let place = places.take();
    let [mut first, mut second, mut third] = [(); 3].map(|()| Task::new());
    for task in [&mut first, &mut second, &mut third] {
        assert!(task.poll(&places).is_none());
    }
    // Gone before its turn.
    drop(first);
    drop(place);
    assert_eq!(second.woken(), 1);
    // Gone after it was woken, without having taken the place.
    drop(second);
    assert_eq!(third.woken(), 1);
    assert!(third.poll(&places).is_some());
}
