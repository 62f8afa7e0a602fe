//! The outbox alone: positions and residences.

use super::*;

fn header() -> Header {
    Header {
        kind: dunlin_wire::PacketType::Resp,
        flags: dunlin_wire::Flags::NONE,
        aux: 0,
        session: dunlin_wire::SessionNum(1),
        token: dunlin_wire::Token(2),
        size: 0,
        pkt: dunlin_wire::PktNum(0),
        req: dunlin_wire::ReqNum(0),
    }
}

fn written_in(item: &TxItem) -> u16 {
    u16::from_le_bytes([
        item.inline[RESIDENCE.start],
        item.inline[RESIDENCE.start + 1],
    ])
}

#[test]
fn positions_go_on_after_the_transport_took_the_packets() {
    let mut outbox = Outbox::with_capacity(1);
    let first = outbox.push(PeerId(0), &header(), BufRef::EMPTY);
    let second = outbox.push(PeerId(0), &header(), BufRef::EMPTY);
    assert_eq!((first, second), (TxSeq(1), TxSeq(2)));
    assert_eq!(outbox.items().len(), 2, "the queue grew");
    outbox.clear(second);
    assert!(outbox.is_empty());
    assert_eq!(outbox.push(PeerId(0), &header(), BufRef::EMPTY), TxSeq(3));
}

#[test]
fn answers_contain_the_time_that_their_requests_stayed() {
    let (mut outbox, mut stats) = (Outbox::new(), Stats::default());
    let (burst_time, now) = (Nanos(10_000), Nanos(10_400));
    outbox.push(PeerId(0), &header(), BufRef::EMPTY);
    outbox.measure(burst_time, burst_time);
    outbox.push(PeerId(0), &header(), BufRef::EMPTY);
    outbox.measure(Nanos(4_400), burst_time);
    outbox.stamp_answers(now, burst_time, |_| false, &mut stats);
    let stays = [400, 6_000].map(|stay| Residence::from_nanos(stay).0);
    let written: Vec<u16> = outbox.items().iter().map(written_in).collect();
    assert_eq!(written, stays);
    assert!(!outbox.measures());
    assert_eq!(stats.histograms().residence.sum_ns(), 6_400);
}

#[test]
fn answers_to_requests_that_may_have_waited_for_the_thread_have_no_residence() {
    let (mut outbox, mut stats) = (Outbox::new(), Stats::default());
    let burst_time = Nanos(10_000);
    let waited = |came| came == burst_time;
    outbox.push(PeerId(0), &header(), BufRef::EMPTY);
    outbox.measure(burst_time, burst_time);
    outbox.push(PeerId(0), &header(), BufRef::EMPTY);
    outbox.measure(Nanos(4_400), burst_time);
    let later = burst_time + Nanos(100);
    outbox.stamp_answers(later, burst_time, waited, &mut stats);
    // A request of that burst may be answered in a later iteration.
    outbox.push(PeerId(0), &header(), BufRef::EMPTY);
    outbox.measure(burst_time, later);
    outbox.stamp_answers(later, later, waited, &mut stats);
    let written: Vec<u16> = outbox.items().iter().map(written_in).collect();
    let known = Residence::from_nanos(later.0 - 4_400).0;
    let none = Residence::NO_SAMPLE.0;
    assert_eq!(written, [none, known, none]);
    assert_eq!(stats.histograms().residence.sum_ns(), 200 + later.0 - 4_400);
}
