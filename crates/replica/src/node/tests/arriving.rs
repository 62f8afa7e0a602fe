//! Snapshots that arrive in parts.

use super::catching_up::options;
use super::drawing::{gib, node_with};
use super::*;
use crate::wire::{Confirmation, Piece};

/// The parts of a snapshot, each with at most this number of bytes.
fn pieces(message: &Message, most: usize) -> Vec<Piece<'_>> {
    let snapshot = message.get_snapshot();
    let metadata = snapshot.get_metadata();
    let parts = snapshot.data.chunks(most).enumerate();
    let piece = |(place, bytes)| Piece {
        cluster: 0,
        from: message.from,
        to: message.to,
        term: message.term,
        place: (metadata.index, metadata.term),
        total: snapshot.data.len() as u64,
        offset: (place * most) as u64,
        bytes,
    };
    parts.map(piece).collect()
}

impl Node<u32> {
    /// Delivers a message as a replica receives it: a snapshot arrives in parts.
    pub(super) fn on_arrival(&mut self, message: Message) {
        match message.msg_type {
            MessageType::MsgSnapshot => {
                let all = pieces(&message, usize::MAX >> 1);
                assert!(all.iter().all(|it| self.on_piece(it)));
            }
            // The owner of a node asks, too, whether a run of the node is necessary, and gives it
            // appends by reference.
            _ if self.takes_append(&message) => {}
            _ if Confirmation::of(&message).is_some_and(|it| self.puts_off(&it)) => {}
            _ => self.on_message(message),
        }
    }

    /// Delivers a snapshot as one part.
    pub(super) fn on_image(&mut self, from: u64, term: u64, place: (u64, u64), image: &[u8]) {
        let piece = Piece {
            cluster: 0,
            from,
            to: self.raft.raft.id,
            term,
            place,
            total: image.len() as u64,
            offset: 0,
            bytes: image,
        };
        assert!(self.on_piece(&piece));
    }
}

/// A stage whose leader has sent a snapshot that has not arrived yet.
fn with_snapshot() -> (Stage, Message, u64) {
    let options = Options {
        slice_bytes: 300,
        ..options()
    };
    let (mut stage, leader, client, late) = Stage::with_late_follower(options);
    stage.cut = Some(late);
    stage.fill(leader, client, 81..=120);
    stage.cut = None;
    stage.delayed = Some(Vec::new());
    stage.tick(3 * Options::ELECTION_TICKS);
    let snapshot = stage.delayed.take().unwrap().pop().unwrap();
    (stage, snapshot, late)
}

#[test]
fn a_snapshot_is_read_in_slices_between_other_messages() {
    let (mut stage, snapshot, late) = with_snapshot();
    let leader = stage.leader();
    let mut rng = Rng::new(1);
    let node = stage.nodes.get_mut(&late).unwrap();
    let (before, mut runs) = (node.applied(), 0);
    for piece in pieces(&snapshot, 700) {
        assert_eq!(node.applied(), before, "a part of a snapshot is no state");
        assert!(node.on_piece(&piece));
        while !node.has_read() {
            assert!(node.has_more());
            node.on_message(Message {
                msg_type: MessageType::MsgHeartbeat,
                from: leader,
                to: late,
                term: snapshot.term,
                ..Message::default()
            });
            let mut out = Output::default();
            node.run(&mut rng, &mut out);
            assert!(!out.messages.is_empty(), "heartbeats are answered");
            runs += 1;
        }
    }
    let bytes = snapshot.get_snapshot().data.len();
    assert!(
        runs >= bytes / 300 && runs > 5,
        "{runs} runs, {bytes} bytes"
    );
    assert_eq!(node.restores(), 1);
    let node = stage.nodes.get_mut(&leader).unwrap();
    node.on_snapshot_sent(late, true);
    stage.tick(3 * Options::ELECTION_TICKS);
    assert_eq!(stage.nodes[&late].machine, stage.nodes[&leader].machine);
    assert!(!stage.nodes[&late].has_more(), "the earlier state is freed");
}

#[test]
fn a_part_out_of_order_is_refused_and_the_first_part_starts_over() {
    let (mut stage, snapshot, late) = with_snapshot();
    let node = stage.nodes.get_mut(&late).unwrap();
    let parts = pieces(&snapshot, 100);
    assert!(!node.on_piece(&parts[1]), "nothing has begun");
    assert!(node.on_piece(&parts[0]));
    assert!(!node.on_piece(&parts[2]), "there is a gap");
    let second = parts[1];
    let others = [
        Piece { from: 9, ..second },
        Piece { term: 9, ..second },
        Piece {
            place: (9, 1),
            ..second
        },
        Piece { total: 9, ..second },
    ];
    assert!(!others.iter().any(|it| node.on_piece(it)));
    assert!(node.on_piece(&second));
    assert!(!node.on_piece(&second), "it has that part");
    assert!(parts.iter().all(|it| node.on_piece(it)));
    let mut rng = Rng::new(1);
    while node.has_more() {
        node.run(&mut rng, &mut Output::default());
    }
    assert_eq!(node.restores(), 1);
}

#[test]
fn an_invalid_snapshot_is_dropped_after_its_parts_are_read() {
    let (mut stage, snapshot, late) = with_snapshot();
    let node = stage.nodes.get_mut(&late).unwrap();
    let image = snapshot.get_snapshot().data.to_vec();
    let metadata = snapshot.get_snapshot().get_metadata();
    let place = (metadata.index, metadata.term);
    let before = node.machine.clone();
    let mut rng = Rng::new(1);
    let long = [&image[..], b"x"].concat();
    for (image, place) in [
        (&image[..image.len() - 1], place),
        (&long[..], place),
        (&image[..], (place.0 + 1, place.1)),
        (&[][..], place),
    ] {
        node.on_image(snapshot.from, snapshot.term, place, image);
        while node.has_more() {
            node.run(&mut rng, &mut Output::default());
        }
        assert!(node.has_read() && node.restores() == 0);
        assert_eq!(node.machine, before);
    }
    node.on_image(snapshot.from, snapshot.term, place, &image);
    while node.has_more() {
        node.run(&mut rng, &mut Output::default());
    }
    assert_eq!(node.restores(), 1);
}

#[test]
fn a_disk_gets_the_bytes_of_a_snapshot() {
    let (mut stage, snapshot, late) = with_snapshot();
    let node = stage.nodes.remove(&late).unwrap();
    let mut node = node.with_disk();
    let (mut rng, mut saved) = (Rng::new(1), None);
    for piece in pieces(&snapshot, 700) {
        assert!(node.on_piece(&piece));
        while !node.has_read() || node.has_more() {
            let mut out = Output::default();
            node.run(&mut rng, &mut out);
            for work in out.work {
                if let Work::Write(write) = work {
                    saved = saved.or(write.items);
                }
            }
        }
    }
    let (saved, snapshot) = (saved.unwrap(), snapshot.get_snapshot());
    let metadata = snapshot.get_metadata();
    assert_eq!(saved.image, snapshot.data.to_vec());
    assert_eq!(
        (saved.applied, saved.base),
        (metadata.index, (metadata.index, metadata.term))
    );
}

/// Prints how long runs take while a follower reads a snapshot and frees its earlier items.
#[test]
#[ignore = "takes 5 GiB and needs a quiet machine: cargo test --release -p dunlin-replica --lib \
            gib -- --ignored --nocapture"]
fn a_snapshot_of_a_gib_delays_no_run_of_its_receiver_by_a_millisecond() {
    for value in [1 << 10, 1 << 20] {
        let (roster, mut machine) = gib(value, 3);
        let mut node = node_with(roster.clone(), &machine);
        let (index, term) = (machine.applied() + 1, 2);
        machine.apply(index, &Request::OPEN.to_bytes()).unwrap();
        let image = items::join(&roster, &machine.to_image());
        drop(machine);
        let snapshot = Message {
            from: 2,
            to: 1,
            term,
            snapshot: Some(Log::snapshot_of(&roster, index, term, image)).into(),
            ..Message::default()
        };
        let (mut rng, mut times) = (Rng::new(1), Vec::new());
        let mut run = |node: &mut Node<u32>| {
            let begin = std::time::Instant::now();
            node.run(&mut rng, &mut Output::default());
            times.push(begin.elapsed());
        };
        for piece in pieces(&snapshot, Options::DEFAULT.piece_bytes) {
            assert!(node.on_piece(&piece));
            while !node.has_read() {
                run(&mut node);
            }
        }
        assert_eq!(node.restores(), 1);
        while node.has_more() {
            run(&mut node);
        }
        times.sort_unstable();
        let (median, most) = (times[times.len() / 2], times[times.len() - 1]);
        println!(
            "values of {value} bytes: {} runs; median {median:?}, most {most:?}",
            times.len()
        );
        assert!(most.as_millis() < 1, "{most:?}");
    }
}
