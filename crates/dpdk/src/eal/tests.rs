//! The arguments, and the checks before the attempt, without DPDK.

use super::*;
use crate::rules::tests::FUNCTIONS;

fn strings(list: &[&str]) -> Vec<String> {
    list.iter().map(|&it| it.to_owned()).collect()
}

#[test]
fn no_file_is_made_with_or_without_huge_pages() {
    let with = arguments(&[], &[0, 3]);
    assert!(with.contains(&"--in-memory".to_owned()));
    assert!(with.contains(&"--no-telemetry".to_owned()));
    assert!(with.contains(&"--lcores=0@(0,3)".to_owned()));
    let without = arguments(&strings(&["--no-huge", "-m", "64"]), &[0]);
    assert!(without.contains(&"--no-shconf".to_owned()));
    assert!(!without.contains(&"--in-memory".to_owned()));
    assert_eq!(without[without.len() - 3..], ["--no-huge", "-m", "64"]);
}

#[test]
fn given_arguments_replace_ours() {
    for given in [
        &["-l", "1"][..],
        &["-l1"],
        &["--lcores=1"],
        &["--lcores", "1"],
        &["--lco=1"],
    ] {
        let all = arguments(&strings(given), &[0]);
        assert!(!all.contains(&"--lcores=0@(0)".to_owned()), "{all:?}");
    }
    let all = arguments(&strings(&["--log-level=8", "--file-prefix", "x"]), &[0]);
    assert!(all.contains(&"--lcores=0@(0)".to_owned()), "{all:?}");
    let prefixes = all.iter().filter(|it| it.starts_with("--file-prefix"));
    assert_eq!(prefixes.count(), 1);
}

#[test]
fn dpdk_is_not_asked_for_more_huge_pages_than_are_free() {
    let folder = std::env::temp_dir().join(format!("dunlin-hugepages-{}", std::process::id()));
    for (pool, free) in [("hugepages-2048kB", "10\n"), ("hugepages-1048576kB", "1\n")] {
        std::fs::create_dir_all(folder.join(pool)).unwrap();
        std::fs::write(folder.join(pool).join("free_hugepages"), free).unwrap();
    }
    // One GiB and twenty MiB are free.
    let outcome = |given: &[&str]| check(&strings(given), &folder);
    for fits in [
        &[][..],
        &["-m", "1044"],
        &["-m1044"],
        &["--socket-mem=1000,44"],
        &["--no-huge", "-m", "5000"],
    ] {
        assert!(outcome(fits).is_ok(), "{fits:?}");
    }
    for too_many in [
        &["-m", "1045"][..],
        &["-m1045"],
        &["--socket-mem=1000,45"],
        &["--socket-mem", "1000,45"],
        &["--socket-m=2000"],
    ] {
        let error = outcome(too_many).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::OutOfMemory, "{too_many:?}");
        assert!(error.to_string().contains("1044 MiB are free"), "{error}");
    }
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn faults_that_are_known_before_the_start_prevent_it() {
    let none = Path::new("/nothing/here");
    let kind = |given: &[&str]| check(&strings(given), none).map_err(|error| error.kind());
    assert_eq!(kind(&[]), Err(io::ErrorKind::OutOfMemory));
    assert_eq!(kind(&["--no-huge"]), Ok(()));
    for refused in [
        &["--help"][..],
        &["--hel"],
        &["-h"],
        &["-vh"],
        &["--log-level=help"],
        &["--log-level", "help"],
        &["--log=help"],
        &["--proc-type=secondary"],
        &["--proc-type", "auto"],
        &["--proc=secondary"],
    ] {
        let given = [&["--no-huge"], refused].concat();
        let outcome = kind(&given);
        assert_eq!(outcome, Err(io::ErrorKind::InvalidInput), "{refused:?}");
    }
    for usable in [
        &["--proc-type=primary"][..],
        &["-v", "--log-level=lib.eal:8"],
    ] {
        let given = [&["--no-huge"], usable].concat();
        assert_eq!(kind(&given), Ok(()), "{usable:?}");
    }
}

#[test]
fn a_failed_start_is_final() {
    let failed = Outcome::Failed("it was so".to_owned());
    let earlier = strings(&["--no-huge"]);
    for given in [&earlier[..], &[]] {
        let error = again(&earlier, &failed, given).unwrap_err();
        assert_eq!(error.to_string(), "it was so");
    }
}

#[test]
fn other_arguments_are_refused_and_the_error_shows_both() {
    let [earlier, later] = ["64", "128"].map(|megabytes| strings(&["--no-huge", "-m", megabytes]));
    let running = Outcome::Running(&FUNCTIONS);
    assert!(again(&earlier, &running, &earlier).is_ok());
    let error = again(&earlier, &running, &later).unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::InvalidInput);
    let said = error.to_string();
    assert!(said.contains("64") && said.contains("128"), "{said}");
}
