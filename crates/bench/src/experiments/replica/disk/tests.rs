//! The rate of the disk alone, and its file system.

use super::*;

#[test]
fn three_writers_sync_and_each_has_a_file() {
    let folder = Folder::new(&folder(), "writers").unwrap();
    let rate = rate_of_writers(folder.path(), 3000, Duration::from_millis(50)).unwrap();
    assert!(rate > 0.0, "{rate} syncs per second");
    let bytes = |place: usize| {
        let file = folder.path().join(format!("writer-{place}"));
        std::fs::metadata(file).unwrap().len()
    };
    assert!((0..REPLICAS).all(|place| bytes(place) >= 3000));
}

#[test]
fn the_kernel_names_the_file_system_of_a_directory() {
    assert_eq!(file_system(Path::new("/proc/self")).unwrap(), "proc");
    assert!(file_system(Path::new("/no such directory")).is_err());
}

#[test]
fn puts_share_the_syncs_between_two_looks() {
    let seen = |applied, syncs, micros| Seen {
        leads: true,
        term: 1,
        applied,
        syncs,
        sync_time: Duration::from_micros(micros),
    };
    let syncs = Syncs::between(&seen(10, 5, 100), &seen(110, 15, 300)).unwrap();
    assert!((syncs.puts - 10.0).abs() < 1e-9 && (syncs.mean_ns - 20_000.0).abs() < 1e-6);
    assert_eq!(syncs.bytes(), 10 * (HEAD + KEY + VALUE));
    assert!(Syncs::between(&seen(10, 5, 100), &seen(10, 5, 100)).is_err());
}
