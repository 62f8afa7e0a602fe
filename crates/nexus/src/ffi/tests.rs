//! Waits, and the events that end them.

use std::time::Instant;

use super::*;

#[test]
fn an_eventfd_wakes_a_wait_and_can_be_cleared() {
    let (epoll, event) = (Epoll::new().unwrap(), EventFd::new().unwrap());
    epoll.add(event.as_raw_fd(), 9, Interest::Read).unwrap();
    let mut events = Events::new();
    epoll.wait(&mut events, Some(Duration::ZERO)).unwrap();
    assert_eq!(events.iter().count(), 0);
    event.signal();
    event.signal();
    epoll.wait(&mut events, None).unwrap();
    let found: Vec<_> = events.iter().collect();
    assert_eq!(
        found,
        [Ready {
            token: 9,
            readable: true,
            writable: false
        }]
    );
    event.clear();
    epoll.wait(&mut events, Some(Duration::ZERO)).unwrap();
    assert_eq!(events.iter().count(), 0);
}

#[test]
fn a_wait_ends_after_its_time_with_either_call() {
    let epoll = Epoll::new().unwrap();
    let mut events = Events::new();
    for coarse in [false, true] {
        let before = Instant::now();
        let span = Duration::from_micros(2_500);
        let found = if coarse {
            epoll.wait_coarse(&mut events, Some(span)).unwrap()
        } else {
            epoll.wait(&mut events, Some(span)).unwrap();
            events.len
        };
        assert_eq!(found, 0);
        assert!(before.elapsed() >= span);
    }
}
