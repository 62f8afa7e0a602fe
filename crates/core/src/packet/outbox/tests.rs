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

fn residence_of(item: &TxItem) -> u16 {
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
    assert_eq!(outbox.items().len(), 2, "it grew");
    outbox.clear(second);
    assert!(outbox.is_empty());
    assert_eq!(outbox.push(PeerId(0), &header(), BufRef::EMPTY), TxSeq(3));
}

#[test]
fn answers_say_how_long_their_requests_stayed() {
    let (mut outbox, mut stats) = (Outbox::new(), Stats::default());
    let (burst_time, now) = (Nanos(10_000), Nanos(10_400));
    outbox.push(PeerId(0), &header(), BufRef::EMPTY);
    outbox.measure(burst_time, burst_time);
    outbox.push(PeerId(0), &header(), BufRef::EMPTY);
    outbox.measure(Nanos(4_400), burst_time);
    outbox.stamp_answers(now, burst_time, &mut stats);
    let stays = [400, 6_000].map(|stay| Residence::from_nanos(stay).0);
    let written: Vec<u16> = outbox.items().iter().map(residence_of).collect();
    assert_eq!(written, stays);
    assert!(!outbox.measures());
    assert_eq!(stats.histograms().residence.sum_ns(), 6_400);
}
