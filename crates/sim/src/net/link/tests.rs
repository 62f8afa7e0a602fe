//! Rate, order and bound of a link.

use dunlin_core::Nanos;

use super::{Link, QueueFull};

#[test]
fn frames_leave_at_the_rate_of_the_link() {
    let mut link = Link::new(1_000_000_000, 10_000);
    assert_eq!(link.send(Nanos(50), 1000), Ok(Nanos(1050)));
    assert_eq!(link.send(Nanos(60), 500), Ok(Nanos(1550)));
    assert_eq!(
        link.send(Nanos(9000), 500),
        Ok(Nanos(9500)),
        "an idle link starts at once"
    );
}

#[test]
fn a_full_queue_refuses_and_drains() {
    let mut link = Link::new(1_000_000_000, 2000);
    assert!(link.send(Nanos(0), 1500).is_ok());
    assert_eq!(link.send(Nanos(0), 600), Err(QueueFull));
    assert_eq!(link.queued(Nanos(1000)), 500);
    assert!(link.send(Nanos(1000), 600).is_ok());
}

#[test]
fn a_stall_delays_what_comes_behind() {
    let mut link = Link::new(1_000_000_000, 1_000_000);
    link.stall(Nanos(0), Nanos(700));
    assert_eq!(link.send(Nanos(100), 10), Ok(Nanos(710)));
    link.end_stall(Nanos(200));
    assert_eq!(link.send(Nanos(200), 10), Ok(Nanos(210)));
}
