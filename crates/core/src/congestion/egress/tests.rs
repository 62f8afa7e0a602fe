//! When packets may leave, one after the other.

use super::*;

/// A byte takes a nanosecond.
const LIMITS: Limits = Limits {
    data_size: 1000 - HEADER_BYTES - FRAME_BYTES,
    rx_queue: 1,
    line_rate: 1_000_000_000,
};

const PACKET: Nanos = Nanos(1000);

/// Sends packets from `now` on until one must wait. Returns the number sent, and the time at which
/// the next one may leave.
fn send(egress: &mut Egress, now: Nanos) -> (u64, Nanos) {
    let mut sent = 0;
    loop {
        let at = egress.next(true, &LIMITS, now).expect("a packet waits");
        if at > now {
            return (sent, at);
        }
        egress.on_sent(LIMITS.data_size as usize, &LIMITS, now);
        sent += 1;
    }
}

#[test]
fn a_few_packets_wait_in_the_nic_and_no_more() {
    let mut egress = Egress::default();
    let now = Nanos(50_000);
    assert_eq!(send(&mut egress, now), (AHEAD_PACKETS + 1, now + PACKET));
    assert_eq!(send(&mut egress, now + PACKET), (1, now + PACKET.times(2)));
}

#[test]
fn an_endpoint_that_comes_late_makes_up_for_it_while_packets_wait() {
    let mut egress = Egress::default();
    let now = Nanos(50_000);
    let (_, at) = send(&mut egress, now);
    let (sent, next) = send(&mut egress, at + PACKET.times(7));
    assert_eq!((sent, next), (8, at + PACKET.times(8)));
    // Over a long time the rate is the line rate, but an absence is made up for only up to
    // `MOST_LATE`.
    let back = next + MOST_LATE.times(3);
    let (sent, _) = send(&mut egress, back);
    let made_up = MOST_LATE.0 / PACKET.0;
    assert_eq!(sent, made_up + AHEAD_PACKETS + 1);
}

#[test]
fn time_without_waiting_packets_is_not_made_up_for() {
    let mut egress = Egress::default();
    let now = Nanos(50_000);
    let (_, at) = send(&mut egress, now);
    assert_eq!(egress.next(false, &LIMITS, at), None);
    let later = at + PACKET.times(10);
    assert_eq!(send(&mut egress, later).0, AHEAD_PACKETS + 1);
}
