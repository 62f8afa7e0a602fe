//! Directories that can and cannot be used, and logs that are read back. `tests/room.rs` has disks
//! with little room, `tests/syncs.rs` has a disk whose syncs fail, `tests/newer.rs` has data of
//! newer versions, and `tests/older.rs` has a backup of an older one.

#![allow(
    clippy::unwrap_used,
    clippy::cast_possible_truncation,
    reason = "a test that cannot go on fails; its indices are small"
)]

mod newer;
mod older;
mod room;
mod syncs;

use std::fs;

use dunlin_testkit::folder::Folder as Scratch;
use raft::eraftpb::{Entry, HardState};

use super::files::Files;
use super::*;
use crate::machine::Machine;
use crate::node::Node;
use crate::options::Options;
use crate::replica::{Replica, SeatError};
use crate::wire::{Member, Members, Name, Operation, Request, Roster};
use crate::work::{Items, LogWrite, Remains};

fn members() -> Roster {
    let member = |id| Member {
        id,
        address: format!("host-{id}:1"),
    };
    Roster::first(&Members::new((1..=3).map(member)).unwrap())
}

fn entry(index: u64, term: u64) -> Entry {
    Entry {
        index,
        term,
        data: vec![index as u8; 40].into(),
        ..Entry::default()
    }
}

fn write(number: u64, entries: Vec<Entry>) -> LogWrite {
    let last = entries.last().map_or(1, |entry| entry.index);
    LogWrite {
        number,
        promises: HardState {
            term: 7,
            vote: 2,
            commit: last,
            ..HardState::default()
        },
        entries,
        items: None,
    }
}

fn store(folder: &Scratch) -> (Store<Files>, Option<Remains>) {
    let limits = Limits {
        file_bytes: 2048,
        purge_bytes: 8192,
        part_bytes: 100,
    };
    let open = || {
        let files = std::sync::Arc::new(Files);
        Store::open(&folder.join("log"), files, limits, (1, 1))
    };
    // Another test may have just started a child process, which shares the lock of a log that was
    // dropped since, until the child runs its own program.
    for _ in 0..50 {
        match open() {
            Err(Loss::Incomplete(error)) if error.contains("lock file") => {}
            opened => return opened.unwrap(),
        }
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    open().unwrap()
}

/// Saves the items that the log has begun to save.
fn finish<F: raft_engine::env::FileSystem>(log: &mut Store<F>) {
    log.do_chores();
    while log.has_part() {
        log.save(&[]).unwrap();
        log.do_chores();
    }
}

fn indices(remains: &Remains) -> Vec<u64> {
    remains.entries.iter().map(|entry| entry.index).collect()
}

#[test]
fn a_log_that_is_opened_again_has_its_entries_and_promises() {
    let folder = Scratch::new("store-again");
    let (mut log, remains) = store(&folder);
    assert_eq!(remains, None);
    let writes = [
        write(1, (2..=5).map(|index| entry(index, 6)).collect()),
        write(2, vec![entry(4, 7), entry(5, 7)]),
    ];
    log.save(&writes).unwrap();
    drop(log);
    let remains = store(&folder).1.unwrap();
    assert_eq!((remains.base, remains.items.clone()), ((1, 1), None));
    assert_eq!(remains.promises, writes[1].promises);
    let expected = [entry(2, 6), entry(3, 6), entry(4, 7), entry(5, 7)];
    assert_eq!(remains.entries, expected);
}

#[test]
fn a_checkpoint_shortens_the_log_and_frees_files() {
    let folder = Scratch::new("store-checkpoint");
    let (mut log, _) = store(&folder);
    for index in 2..=200 {
        log.save(&[write(index, vec![entry(index, 7)])]).unwrap();
        if index % 50 == 0 {
            log.begin(Items {
                applied: index,
                base: (index - 10, 7),
                image: vec![index as u8; 333],
            });
        }
        log.do_chores();
    }
    finish(&mut log);
    assert_eq!(log.checkpoints(), 4);
    let files = fs::read_dir(folder.join("log")).unwrap().count();
    assert!(files < 9, "{files} files");
    drop(log);
    let remains = store(&folder).1.unwrap();
    assert_eq!(
        (remains.base, indices(&remains)),
        ((190, 7), (191..=200).collect())
    );
    assert_eq!(remains.items, Some((200, vec![200; 333])));
}

#[test]
fn the_items_of_a_leader_replace_the_log() {
    let folder = Scratch::new("store-items");
    let (mut log, _) = store(&folder);
    let entries = (2..=20).map(|index| entry(index, 6)).collect();
    log.save(&[write(1, entries)]).unwrap();
    let restore = |number, applied, entries| LogWrite {
        items: Some(Items {
            applied,
            base: (applied, 7),
            image: vec![9; 250],
        }),
        ..write(number, entries)
    };
    // After the place of the items, the log has entries of another leader.
    log.save(&[restore(2, 15, Vec::new())]).unwrap();
    drop(log);
    let (mut log, remains) = store(&folder);
    let remains = remains.unwrap();
    assert_eq!((remains.base, indices(&remains)), ((15, 7), Vec::new()));
    assert_eq!(remains.items, Some((15, vec![9; 250])));
    // There may also be a gap between the log's last entry and the place.
    let after = vec![entry(101, 7), entry(102, 7)];
    log.save(&[write(3, vec![entry(16, 7)]), restore(4, 100, after)])
        .unwrap();
    drop(log);
    let remains = store(&folder).1.unwrap();
    assert_eq!(
        (remains.base, indices(&remains)),
        ((100, 7), vec![101, 102])
    );
}

#[test]
fn a_log_without_an_entry_that_counts_is_refused() {
    let folder = Scratch::new("store-loss");
    let (mut log, _) = store(&folder);
    for index in 2..=100 {
        log.save(&[write(index, vec![entry(index, 7)])]).unwrap();
    }
    drop(log);
    // Remove the first of several files.
    let first = folder.join("log/0000000000000001.raftlog");
    fs::remove_file(first).unwrap();
    let limits = Limits::DEFAULT;
    let opened = Store::open(
        &folder.join("log"),
        std::sync::Arc::new(Files),
        limits,
        (1, 1),
    );
    let why = format!("{:?}", opened.map(|_| ()).unwrap_err());
    assert!(why.contains("entries 2 to 100"), "{why}");
}

/// Flips a byte of a log's only file.
fn damage(folder: &Scratch, place: usize) {
    let file = folder.join("log/0000000000000001.raftlog");
    let mut bytes = fs::read(&file).unwrap();
    bytes[place] ^= 1;
    fs::write(&file, bytes).unwrap();
}

/// Writes and acknowledges the entries from 2 to `last`, and returns where each ends in the log's
/// file.
fn acknowledged(folder: &Scratch, last: u64) -> Vec<usize> {
    let file = folder.join("log/0000000000000001.raftlog");
    let mut ends = Vec::new();
    for index in 2..=last {
        let (mut log, _) = open_log(folder).unwrap();
        log.save(&[write(index, vec![entry(index, 7)])]).unwrap();
        log.acknowledge();
        // When the engine closes its file, it truncates the file to its length.
        drop(log);
        ends.push(fs::metadata(&file).unwrap().len().try_into().unwrap());
    }
    ends
}

fn open_log(folder: &Scratch) -> Result<(Store<Files>, Option<Remains>), Loss> {
    let path = folder.join("log");
    Store::open(&path, std::sync::Arc::new(Files), Limits::DEFAULT, (1, 1))
}

#[test]
fn damage_to_an_acknowledged_write_is_not_taken_for_a_torn_write() {
    // Damage in the middle of the last file, and in the last write.
    for damaged in [3, 8] {
        let folder = Scratch::new("store-damage");
        let ends = acknowledged(&folder, 10);
        damage(&folder, ends[damaged - 1] + 1);
        for _ in 0..2 {
            let why = format!("{:?}", open_log(&folder).map(|_| ()).unwrap_err());
            let ends = format!("ends with write {damaged}, and write 9 was acknowledged");
            assert!(why.contains(&ends), "{why}");
        }
    }
}

#[test]
fn a_log_that_is_emptied_is_refused() {
    let folder = Scratch::new("store-emptied");
    acknowledged(&folder, 4);
    fs::remove_file(folder.join("log/0000000000000001.raftlog")).unwrap();
    let why = format!("{:?}", open_log(&folder).map(|_| ()).unwrap_err());
    assert!(why.contains("ends with write 0"), "{why}");
}

#[test]
fn a_torn_write_that_was_not_acknowledged_is_dropped() {
    let folder = Scratch::new("store-torn");
    let ends = acknowledged(&folder, 5);
    let (mut log, _) = open_log(&folder).unwrap();
    log.save(&[write(6, vec![entry(6, 7)])]).unwrap();
    drop(log);
    damage(&folder, ends[3] + 1);
    let remains = open_log(&folder).unwrap().1.unwrap();
    assert_eq!(indices(&remains), [2, 3, 4, 5]);
}

#[test]
fn a_torn_mark_leaves_the_previous_one() {
    let folder = Scratch::new("store-mark");
    acknowledged(&folder, 5);
    let path = folder.join("log.mark");
    let good = fs::read(&path).unwrap();
    let number = || {
        mark::Mark::open(&path, &Files)
            .unwrap()
            .map(|it| it.number())
    };
    assert_eq!(number().unwrap(), 4);
    let newest = if good[8] == 4 { 0 } else { 512 };
    for (places, left) in [(&[newest][..], Some(3)), (&[0, 512], None)] {
        let mut bytes = good.clone();
        places.iter().for_each(|place| bytes[place + 12] ^= 1);
        fs::write(&path, bytes).unwrap();
        assert_eq!(number().ok(), left);
    }
    assert!(format!("{:?}", open_log(&folder).map(|_| ())).contains("mark"));
}

fn refusal(path: &std::path::Path) -> String {
    open(path, 5).map(|_| ()).unwrap_err().to_string()
}

#[test]
fn a_directory_is_used_by_one_process_and_holds_one_replica() {
    let folder = Scratch::new("folder-use");
    let path = folder.join("replica");
    let mut first = open(&path, 2).unwrap();
    assert!(first.id == 2 && first.seat.is_none());
    assert!(refusal(&path).contains("in use by a running process"));
    first.disk.take_seat(&members()).unwrap();
    drop(first);
    let second = open(&path, 5).unwrap();
    assert_eq!(
        (second.id, second.seat.map(|it| it.0)),
        (2, Some(members()))
    );
}

#[test]
fn a_directory_that_cannot_be_used_is_left_as_it_is() {
    let folder = Scratch::new("folder-bad");
    let foreign = folder.join("foreign");
    fs::create_dir(&foreign).unwrap();
    fs::write(foreign.join("letter"), b"dear").unwrap();
    assert!(refusal(&foreign).contains("not those of a replica"));
    assert_eq!(fs::read_dir(&foreign).unwrap().count(), 1);

    let path = folder.join("replica");
    let mut opened = open(&path, 2).unwrap();
    opened.disk.take_seat(&members()).unwrap();
    drop(opened);
    let good = fs::read(path.join("replica")).unwrap();
    let with = |place: usize, byte: u8| {
        let mut bytes = good.clone();
        bytes[place] = byte;
        fs::write(path.join("replica"), bytes).unwrap();
        refusal(&path)
    };
    assert!(with(8, 2).contains("data of format 2"));
    assert!(with(0, b'x').contains("not a file of a replica"));
    assert!(with(16, 9).contains("its number is not one of its members'"));
    fs::write(path.join("replica"), &good).unwrap();
    fs::remove_dir_all(path.join("log")).unwrap();
    assert!(refusal(&path).contains("its log is gone"));
}

/// A backup of a directory with some entries.
fn backup(folder: &Scratch) -> Backup {
    let path = folder.join("survivor");
    let mut opened = open(&path, 2).unwrap();
    opened.disk.take_seat(&members()).unwrap();
    drop(opened);
    Backup::of_directory(&path).unwrap()
}

#[test]
fn each_restore_makes_another_replica_that_waits_for_a_cluster() {
    let folder = Scratch::new("backup-twice");
    let backup = backup(&folder);
    let path = folder.join("restored");
    backup.restore(&path, 11).unwrap();
    let first = open(&path, 5).unwrap();
    assert!(first.id == 11 && first.seat.is_none());
    let digest = first.restored.as_ref().unwrap().digest();
    // The replica takes its seat, and then loses its disk.
    let disk = first.disk;
    let replica = Replica::with_disk(first.id, None, disk, Options::DEFAULT);
    let mut replica = replica.begin_with(first.restored);
    let member = |id| Member {
        id,
        address: format!("host-{id}:1"),
    };
    let members = Members::new([11, 12, 13].map(member)).unwrap();
    let other = members.clone().begin_with(digest + 1);
    assert_eq!(replica.on_bootstrap(other), Err(SeatError::OtherItems));
    assert_eq!(
        replica.on_bootstrap(members.clone()),
        Err(SeatError::OtherItems)
    );
    let begun = members.clone().begin_with(digest);
    assert_eq!(replica.on_bootstrap(begun.clone()), Ok(()));
    assert_eq!(replica.on_bootstrap(members.clone()), Ok(()), "it has it");
    assert_eq!(replica.status().applied, backup.applied());
    drop(replica);
    let again = open(&path, 5).unwrap();
    let (roster, image) = again.seat.unwrap();
    assert_eq!((again.id, roster.get(11).is_some()), (11, true));
    let node: Node<u32> = Node::new(11, image, Options::DEFAULT);
    assert_eq!(node.roster(), &Roster::first(&begun));
    drop(again.disk);
    fs::remove_dir_all(&path).unwrap();
    backup.restore(&path, 14).unwrap();
    let revived = open(&path, 5).unwrap();
    assert_eq!(revived.id, 14);
    let replica = Replica::with_disk(14, None, revived.disk, Options::DEFAULT);
    let mut replica = replica.begin_with(revived.restored);
    assert_eq!(replica.on_bootstrap(begun), Err(SeatError::Stranger));
    let joining = Roster::first(&members).for_joining(member(14));
    assert_eq!(replica.on_join(joining), Err(SeatError::OtherItems));
}

#[test]
fn a_backup_that_is_cut_off_or_changed_is_refused() {
    let mut machine = Machine::new(1, 0);
    let name = Name {
        client: 2,
        number: 1,
        first: 1,
    };
    let put = Operation::PutFor(60_000, b"value");
    let requests = [Request::OPEN, Request::write(name, b"key", put)];
    for (index, request) in (2..).zip(requests) {
        machine.apply(index, &request.to_bytes()).unwrap();
    }
    let backup = Backup::of(&machine);
    assert_eq!(backup.keys(), 1);
    let bytes = backup.to_bytes();
    assert_eq!(Backup::decode(&bytes).as_ref(), Ok(&backup));
    for end in 0..bytes.len() {
        assert!(Backup::decode(&bytes[..end]).is_err(), "cut off at {end}");
    }
    assert!(Backup::decode(&[&bytes[..], &[0]].concat()).is_err());
    assert_eq!(Backup::decode(b"dear"), Err(BackupError::Foreign));
    let cut = Backup::decode(&bytes[..bytes.len() - 1]);
    assert_eq!(cut, Err(BackupError::Damaged));
    for place in 0..bytes.len() {
        for bit in [1, 0x80] {
            let mut changed = bytes.clone();
            changed[place] ^= bit;
            assert!(Backup::decode(&changed).is_err(), "byte {place} ^ {bit}");
        }
    }
}

#[test]
fn a_restore_that_was_cut_off_is_refused() {
    let folder = Scratch::new("backup-cut");
    let backup = backup(&folder);
    let path = folder.join("restored");
    backup.restore(&path, 11).unwrap();
    let file = path.join("replica");
    let mut bytes = fs::read(&file).unwrap();
    bytes[9] = 0;
    fs::write(&file, bytes).unwrap();
    assert!(refusal(&path).contains("a restore into it was interrupted"));
    assert!(format!("{}", backup.restore(&path, 12).unwrap_err()).contains("already"));
}
