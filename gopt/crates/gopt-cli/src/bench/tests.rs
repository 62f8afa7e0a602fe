//! Alarms about tables, and the refusal of a table for which there is no memory.

use super::*;
use options::{Lookup, Shape};

fn job(lookup: Lookup) -> Job {
    Job {
        lookup,
        shapes: vec![Shape::Tight],
        widths: vec![8],
        table_mib: 2048,
        runs: 1,
    }
}

fn made(bytes: u64, huge_bytes: u64) -> Made {
    Made {
        bytes,
        huge_bytes,
        lines: 1.25,
    }
}

#[test]
fn a_large_table_on_huge_pages_is_no_cause_for_alarm() {
    let job = job(Lookup::Cuckoo);
    let made = made(2 << 30, 2 << 30);
    assert_eq!(alarms(&job, made), Vec::<String>::new());
    let text = describe(&job, made);
    assert!(
        text.contains("2048 MiB") && text.contains("1.25 lines"),
        "{text}"
    );
}

#[test]
fn small_tables_and_small_pages_are_noted() {
    let job = job(Lookup::Cuckoo);
    let small = alarms(&job, made(1 << 30, 1 << 30));
    assert!(small[0].contains("may lie in the cache"), "{small:?}");
    let pages = alarms(&job, made(2 << 30, 1 << 20));
    assert!(
        pages[0].contains("1 of 2048 MiB are on huge pages"),
        "{pages:?}"
    );
    let ipv4 = alarms(&self::job(Lookup::Ipv4), made(2 << 30, 2 << 30));
    assert!(ipv4[0].contains("first level of 64 MiB"), "{ipv4:?}");
}

#[test]
fn tables_for_which_there_is_no_memory_are_refused() {
    ensure_memory(1).unwrap();
    let error = ensure_memory(1 << 20).unwrap_err().to_string();
    assert!(error.contains("a smaller --table-mib"), "{error}");
}
