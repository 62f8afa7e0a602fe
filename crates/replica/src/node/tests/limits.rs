//! Bytes of writes in progress.

use super::*;

/// Bytes of a value, of which 64 are as many as may be in progress.
const LONG: usize = 1 << 20;

fn put_long(stage: &mut Stage, leader: u64, client: u64, number: u64) {
    let name = Name {
        client,
        number,
        first: number,
    };
    let request = Request::write(name, b"key", Operation::Put(&[1; LONG])).to_bytes();
    let node = stage.nodes.get_mut(&leader).unwrap();
    node.on_write(request, u32::try_from(number).unwrap());
}

#[test]
fn a_leader_refuses_writes_while_it_has_too_many_bytes_of_them_in_progress() {
    let mut stage = Stage::new(3);
    let leader = stage.leader();
    let client = stage.open(leader);
    for round in [1, 101] {
        for number in round..round + 64 {
            put_long(&mut stage, leader, client, number);
        }
        stage.step();
        // All have some bytes before their value, so the last is one too many.
        let last = u32::try_from(round + 63).unwrap();
        assert_eq!(stage.answers, [(leader, last, Answer::Busy)]);
        stage.settle();
        let written = |it: &&(_, _, Answer)| matches!(it.2, Answer::Written(_));
        assert_eq!(stage.answers.iter().filter(written).count(), 63);
        stage.answers.clear();
    }
}
