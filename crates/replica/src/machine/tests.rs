//! Operations, repeats, and the limits of records.

use super::clients::MAX_CLIENTS;
use super::*;

struct Stage {
    machine: Machine,
    index: u64,
}

impl Stage {
    fn new() -> Self {
        Self {
            machine: Machine::new(1, 0),
            index: 1,
        }
    }

    fn apply(&mut self, request: &Request<'_>) -> Answer {
        self.index += 1;
        self.machine.apply(self.index, &request.to_bytes()).unwrap()
    }

    fn write(&mut self, name: (u64, u64, u64), operation: Operation<'_>) -> Answer {
        let (client, number, first) = name;
        let name = Name {
            client,
            number,
            first,
        };
        self.apply(&Request::write(name, b"key", operation))
    }
}

#[test]
fn a_write_has_the_index_of_its_entry_as_version() {
    let mut stage = Stage::new();
    assert_eq!(stage.apply(&Request::OPEN), Answer::Opened(2));
    assert_eq!(stage.machine.get(b"key"), Answer::Missing);
    let put = stage.write((2, 1, 1), Operation::Put(b"a"));
    assert_eq!(put, Answer::Written(3));
    assert_eq!(stage.machine.get(b"key"), Answer::Found(3, b"a".to_vec()));
    let cas = stage.write((2, 2, 1), Operation::CompareAndSet(2, b"b"));
    assert_eq!(cas, Answer::Differs(3));
    let cas = stage.write((2, 3, 1), Operation::CompareAndSet(3, b"b"));
    assert_eq!(cas, Answer::Written(5));
    assert_eq!(
        stage.write((2, 4, 1), Operation::Delete),
        Answer::Deleted(5)
    );
    assert_eq!(
        stage.write((2, 5, 1), Operation::Delete),
        Answer::Deleted(0)
    );
    let cas = stage.write((2, 6, 1), Operation::CompareAndSet(0, b"c"));
    assert_eq!(cas, Answer::Written(8));
    assert_eq!((stage.machine.keys(), stage.machine.applied()), (1, 8));
}

#[test]
fn a_repeated_write_is_answered_and_not_applied() {
    let mut stage = Stage::new();
    stage.apply(&Request::OPEN);
    assert_eq!(
        stage.write((2, 1, 1), Operation::Put(b"a")),
        Answer::Written(3)
    );
    assert_eq!(
        stage.write((2, 2, 1), Operation::Put(b"b")),
        Answer::Written(4)
    );
    assert_eq!(
        stage.write((2, 1, 1), Operation::Put(b"a")),
        Answer::Written(3)
    );
    assert_eq!(stage.machine.get(b"key"), Answer::Found(4, b"b".to_vec()));
    // Repeated by a client that has got another answer meanwhile.
    assert_eq!(
        stage.write((2, 2, 2), Operation::Put(b"b")),
        Answer::Written(4)
    );
    assert_eq!(
        stage.write((2, 1, 1), Operation::Put(b"a")),
        Answer::Misnamed
    );
    assert_eq!(stage.machine.get(b"key"), Answer::Found(4, b"b".to_vec()));
}

#[test]
fn a_number_with_another_payload_and_one_past_the_window_are_refused() {
    let mut stage = Stage::new();
    stage.apply(&Request::OPEN);
    assert_eq!(
        stage.write((2, 1, 1), Operation::Put(b"a")),
        Answer::Written(3)
    );
    assert_eq!(
        stage.write((2, 1, 1), Operation::Put(b"b")),
        Answer::Misnamed
    );
    assert_eq!(stage.write((2, 1, 1), Operation::Delete), Answer::Misnamed);
    let past = 1 + crate::wire::WINDOW;
    assert_eq!(
        stage.write((2, past, 1), Operation::Delete),
        Answer::Misnamed
    );
    assert_eq!(stage.machine.get(b"key"), Answer::Found(3, b"a".to_vec()));
    assert_eq!(
        stage.write((2, u64::MAX, u64::MAX), Operation::Delete),
        Answer::Deleted(3),
        "the last number that there is"
    );
}

#[test]
fn the_client_that_was_silent_longest_leaves_and_its_writes_are_refused() {
    let mut stage = Stage::new();
    for _ in 0..MAX_CLIENTS {
        stage.apply(&Request::OPEN);
    }
    // The first client has an entry again, so the second is the oldest.
    assert_ne!(
        stage.write((2, 1, 1), Operation::Put(b"a")),
        Answer::Expired
    );
    let opened = stage.apply(&Request::OPEN);
    assert_eq!(
        stage.write((3, 1, 1), Operation::Put(b"b")),
        Answer::Expired
    );
    assert_ne!(
        stage.write((2, 2, 2), Operation::Put(b"c")),
        Answer::Expired
    );
    assert_eq!(opened, Answer::Opened(stage.index - 2));
}

#[test]
fn a_write_of_another_cluster_is_refused_although_its_numbers_fit() {
    let stage_of = |cluster| Stage {
        machine: Machine::new(1, cluster),
        index: 1,
    };
    let (mut before, mut after) = (stage_of(u64::MAX), stage_of(70));
    assert_eq!(before.apply(&Request::OPEN), Answer::Opened(1));
    assert_eq!(after.apply(&Request::OPEN), Answer::Opened(72));
    assert_eq!(
        after.write((1, 1, 1), Operation::Put(b"old")),
        Answer::Expired
    );
    assert_eq!(
        after.write((72, 1, 1), Operation::Put(b"new")),
        Answer::Written(4)
    );
    let mut last = stage_of(0_u64.wrapping_sub(2));
    assert_eq!(last.apply(&Request::OPEN), Answer::Opened(1), "not 0");
}

#[test]
fn an_entry_of_another_version_changes_nothing() {
    let mut machine = Machine::new(1, 0);
    assert_eq!(machine.apply(2, b"\x02abc"), Err(Malformed));
    assert_eq!(machine, Machine::new(1, 0));
    assert_eq!(machine.apply(2, b""), Ok(Answer::Missing));
    assert_eq!(machine.applied(), 2);
}

#[test]
fn an_image_has_the_whole_state() {
    let mut stage = Stage::new();
    stage.apply(&Request::OPEN);
    stage.apply(&Request::OPEN);
    stage.write((2, 1, 1), Operation::Put(b"a"));
    stage.write((3, 1, 1), Operation::CompareAndSet(7, b"b"));
    stage.write((3, 2, 1), Operation::Delete);
    stage.write((2, 2, 1), Operation::Put(b"c"));
    let image = stage.machine.to_image();
    let mut other = Machine::new(1, 0);
    other.restore(&image).unwrap();
    assert_eq!(other, stage.machine);
    for len in 0..image.len() {
        assert_eq!(other.restore(&image[..len]), Err(Malformed), "{len} bytes");
    }
    assert_eq!(other, stage.machine, "a bad image changes nothing");
    // A write that was applied before the image is recognised after it.
    stage.machine = other;
    assert_eq!(
        stage.write((2, 1, 1), Operation::Put(b"a")),
        Answer::Written(4)
    );
}
