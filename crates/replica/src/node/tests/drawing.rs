//! Images that take several runs.

use raft::eraftpb::HardState;

use super::*;
use crate::wire::Roster;
use crate::work::Remains;

/// Bytes of a slice.
const SLICE: usize = 1000;
/// Bytes of an item: its value, key and numbers.
const ITEM: usize = 200;

fn options() -> Options {
    Options {
        kept_entries: 10,
        slice_bytes: SLICE,
        ..Options::DEFAULT
    }
}

impl Stage {
    /// Puts items with distinct keys.
    pub(super) fn fill(
        &mut self,
        leader: u64,
        client: u64,
        numbers: std::ops::RangeInclusive<u64>,
    ) {
        for number in numbers {
            self.put_item(leader, client, number);
            self.settle();
        }
    }

    fn put_item(&mut self, leader: u64, client: u64, number: u64) {
        let name = Name {
            client,
            number,
            first: number,
        };
        let key = format!("key-{}", number * 7 % 100);
        let value = [u8::try_from(number % 256).unwrap(); ITEM - 40];
        let request = Request::write(name, key.as_bytes(), Operation::Put(&value));
        let node = self.nodes.get_mut(&leader).unwrap();
        node.on_write(request.to_bytes(), u32::try_from(number).unwrap());
    }

    fn drawn(&self, id: u64) -> usize {
        self.nodes[&id].drawn().unwrap_or(0)
    }
}

#[test]
fn writes_are_answered_while_an_image_is_made_in_slices() {
    let (mut stage, leader, client, late) = Stage::with_late_follower(options());
    stage.cut = Some(late);
    stage.fill(leader, client, 81..=200);
    stage.cut = None;
    stage.snapshots = 0;
    let (mut slices, mut during, mut number, mut before) = (0, 0, 1000, 0);
    while stage.snapshots == 0 {
        stage.answers.clear();
        stage.put_item(leader, client, number);
        let mut steps = 0;
        while stage.answers.is_empty() {
            stage.step();
            let drawn = stage.drawn(leader);
            // The first slice also has the head of the image, and the last item may exceed a slice.
            assert!(
                drawn.saturating_sub(before) <= SLICE + ITEM + 200,
                "{drawn}"
            );
            slices += usize::from(drawn > before);
            before = drawn;
            steps += 1;
        }
        assert_eq!(steps, 3, "as without an image");
        during += usize::from(before > 0);
        number += 1;
        stage.nodes.values_mut().for_each(Node::on_tick);
    }
    assert!(
        slices > 10 && during > 3,
        "{slices} slices, {during} writes"
    );
    stage.tick(Options::ELECTION_TICKS);
    assert_eq!(stage.nodes[&late].machine, stage.nodes[&leader].machine);
    assert_eq!(stage.snapshots, 1);
}

#[test]
fn no_step_of_an_image_writes_more_than_a_slice_of_a_long_value() {
    let mut stage = Stage::with(1, options());
    let node = stage.nodes.remove(&1).unwrap();
    stage.nodes.insert(1, node.with_disk());
    let leader = stage.leader();
    let client = stage.open(leader);
    let node = stage.nodes.get_mut(&1).unwrap();
    let (mut number, mut saved) = (0, Saved::default());
    let mut put = |node: &mut Node<u32>, key: &[u8], byte: u8| {
        number += 1;
        let name = Name {
            client,
            number,
            first: number,
        };
        let value = vec![byte; 20 * SLICE];
        let request = Request::write(name, key, Operation::Put(&value));
        node.on_write(request.to_bytes(), 0);
    };
    let (mut then, mut before, mut steps, mut images) = (Vec::new(), 0, 0, Vec::new());
    for round in 0..=u8::MAX {
        match round {
            0..5 => put(node, &[b'a' + round], 1),
            5 => node.shorten(),
            // Meanwhile, values that the image has in part, and others, change.
            _ => put(node, &[b'a' + round % 5], 2),
        }
        let mut out = Output::default();
        node.run(&mut stage.rng, &mut out);
        let drawn = node.drawn().unwrap_or(0);
        // The members and a key may exceed the slice.
        assert!(
            drawn.saturating_sub(before) <= SLICE + 200,
            "{drawn} after {before}"
        );
        if drawn > 0 && before == 0 {
            then = node.machine.to_image();
        }
        (before, steps) = (drawn, steps + usize::from(drawn > before));
        for work in out.work {
            match work {
                Work::Write(write) => saved.number = write.number,
                Work::Checkpoint(items) => images.push(items),
            }
        }
        if !images.is_empty() {
            break;
        }
        node.on_saved(saved);
    }
    assert!(steps >= 100, "{steps} steps");
    let (_, image) = items::split(&images[0].image).unwrap();
    assert_eq!(image, then);
}

#[test]
fn an_image_for_the_disk_shows_its_beginning_and_no_second_one_begins_meanwhile() {
    let mut stage = Stage::with(1, options());
    let node = stage.nodes.remove(&1).unwrap();
    stage.nodes.insert(1, node.with_disk());
    let leader = stage.leader();
    let client = stage.open(leader);
    let node = stage.nodes.get_mut(&1).unwrap();
    let mut images = Vec::new();
    let mut begun = None;
    for number in 1..400 {
        let mut saved = Saved::default();
        let name = Name {
            client,
            number,
            first: number,
        };
        let key = format!("key-{}", number * 7 % 100);
        let request = Request::write(name, key.as_bytes(), Operation::Put(&[1; ITEM - 40]));
        node.on_write(request.to_bytes(), 0);
        while node.applied() < stage.opened + number {
            let mut out = Output::default();
            node.run(&mut stage.rng, &mut out);
            for work in out.work {
                match work {
                    Work::Write(write) => saved.number = write.number,
                    Work::Checkpoint(items) => images.push((begun.take(), items)),
                }
            }
            if node.drawn().is_some() {
                begun.get_or_insert((node.applied(), node.machine.to_image()));
            }
            saved.checkpoints = images.len() as u64;
            node.on_saved(saved);
        }
    }
    assert!(images.len() > 3, "{} images", images.len());
    let mut slow = 0;
    for (begun, items) in images {
        let (_, image) = items::split(&items.image).unwrap();
        let mut read = Machine::new(0, 0);
        read.restore(image).unwrap();
        assert!(read.applied() == items.applied && items.base.0 <= items.applied);
        if let Some((applied, then)) = begun {
            assert_eq!((applied, &then[..]), (items.applied, image));
            slow += 1;
        }
    }
    assert!(slow > 3, "{slow} images took several runs");
}

#[test]
fn a_snapshot_of_a_leader_ends_an_image_that_is_under_way() {
    let (mut stage, _, _, late) = Stage::with_late_follower(options());
    stage.delayed = Some(Vec::new());
    stage.tick(3 * Options::ELECTION_TICKS);
    let leader = stage.leader();
    let snapshot = stage.delayed.take().unwrap().pop().unwrap();
    let node = stage.nodes.get_mut(&late).unwrap();
    node.draw_for_disk((1, 1));
    assert!(node.drawn().is_some() && node.has_more());
    node.on_arrival(snapshot);
    while !node.has_read() {
        node.run(&mut stage.rng, &mut Output::default());
    }
    assert_eq!(node.drawn(), None);
    stage
        .nodes
        .get_mut(&leader)
        .unwrap()
        .on_snapshot_sent(late, true);
    stage.tick(Options::ELECTION_TICKS);
    assert_eq!(stage.nodes[&late].machine, stage.nodes[&leader].machine);
}

/// The members of a cluster, and a GiB of items with values of this length.
pub(super) fn gib(value: usize, members: u64) -> (Roster, Machine) {
    items_of((1 << 30) / (value as u64 + 40), value, members)
}

/// The members of a cluster, and this number of items with values of this length.
pub(super) fn items_of(count: u64, value: usize, members: u64) -> (Roster, Machine) {
    let member = |id| Member {
        id,
        address: format!("node-{id}"),
    };
    let roster = Roster::first(&Members::new((1..=members).map(member)).unwrap());
    let mut machine = Machine::new(1, roster.cluster());
    machine.apply(2, &Request::OPEN.to_bytes()).unwrap();
    let client = 2_u64.wrapping_add(roster.cluster());
    for number in 1..=count {
        let name = Name {
            client,
            number,
            first: number,
        };
        let key = format!(
            "key-{:012}",
            number.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 24
        );
        let value = vec![7; value];
        let request = Request::write(name, key.as_bytes(), Operation::Put(&value));
        machine.apply(number + 2, &request.to_bytes()).unwrap();
    }
    (roster, machine)
}

/// A node with these items.
pub(super) fn node_with(roster: Roster, machine: &Machine) -> Node<u32> {
    let remains = Remains {
        promises: HardState {
            term: 1,
            commit: machine.applied(),
            ..HardState::default()
        },
        base: (machine.applied(), 1),
        entries: Vec::new(),
        items: None,
    };
    let image = Image::new(Log::resume(roster, remains), machine);
    Node::new(1, image, Options::DEFAULT)
}

/// Prints how long writes take while an image is made.
#[test]
#[ignore = "takes 5 GiB and needs a quiet machine: cargo test --release -p dunlin-replica --lib \
            gib -- --ignored --nocapture"]
fn an_image_of_a_gib_delays_no_write_by_a_millisecond() {
    for value in [1 << 10, 1 << 20] {
        let (roster, machine) = gib(value, 1);
        let mut node = node_with(roster, &machine).with_disk();
        drop(machine);
        let (mut rng, mut saved) = (Rng::new(1), Saved::default());
        let mut times = Vec::new();
        let mut image = None;
        for asker in 0.. {
            let begin = std::time::Instant::now();
            match node.leads() {
                true => node.on_write(Request::OPEN.to_bytes(), asker),
                false => node.on_tick(),
            }
            let mut out = Output::default();
            node.run(&mut rng, &mut out);
            let answered = node.applied();
            if node.leads() && node.drawn().is_some() {
                times.push(begin.elapsed());
            }
            for work in out.work {
                match work {
                    Work::Write(write) => saved.number = write.number,
                    Work::Checkpoint(items) => image = Some(items),
                }
            }
            node.on_saved(saved);
            if image.is_some() {
                break;
            }
            if answered > 3 && times.is_empty() {
                node.shorten();
            }
        }
        times.sort_unstable();
        let (median, most) = (times[times.len() / 2], times[times.len() - 1]);
        let bytes = image.unwrap().image.len();
        println!(
            "values of {value} bytes: {bytes} bytes in {} slices; median {median:?}, most {most:?}",
            times.len()
        );
        assert!(most.as_millis() < 1, "{most:?}");
    }
}
