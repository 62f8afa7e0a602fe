//! Tests of `snapshot`: a reader gets the written words, refuses broken files, and never panics.

use std::sync::Arc;

use proptest::prelude::*;

use super::*;
use crate::layout;
use crate::reader::source::bytes;
use crate::writer::{Block, Gauges, Head, Names, Page, Row};

/// Buckets that begin at 0 and at each power of two.
fn bounds() -> Vec<u64> {
    let powers = (0..40).map(|power| 1 << power);
    std::iter::once(0).chain(powers).collect()
}

fn names() -> Names {
    Names {
        nexus: vec!["peers_failed", "upgrades"],
        counters: vec!["rx_frames", "rx_packets"],
        drops: vec!["short", "version", "token"],
        transport: vec!["tx_packets"],
        histograms: vec!["call", "rtt"],
        buckets: bounds(),
        own_counters: vec!["kv_hits", "kv_misses"],
        own_gauges: vec!["kv_items"],
    }
}

/// The counts of a histogram with `number` times in the bucket of `time_ns`.
fn counts(time_ns: u64, number: u64) -> Vec<u64> {
    let bounds = bounds();
    let bucket = bounds.partition_point(|bound| *bound <= time_ns) - 1;
    let mut counts = vec![0; bounds.len()];
    counts[bucket] = number;
    counts
}

/// A page with one endpoint, and the bytes of its file.
fn page() -> (Arc<Page>, Block) {
    let page = Page::new("127.0.0.1:31850".parse().unwrap(), &names());
    let page = Arc::new(page.unwrap());
    let mut block = page.block().unwrap();
    fill(&mut block, 1);
    (page, block)
}

fn fill(block: &mut Block, number: u64) {
    let mut out = block.write(&Head {
        index: 3,
        transport: "shm+dpdk",
        clock_ns: number,
        rows: 1,
    });
    out.values([number, 0]);
    out.values([0, 0, number]);
    out.values([0]);
    out.gauges(&Gauges {
        sessions: number,
        calls: number,
        pool_bytes: number,
        pool_buffers: number,
        receiving_bytes: number,
    });
    out.histogram(0, &counts(0, 0));
    out.histogram(5_000 * number, &counts(5_000, number));
    out.row(&Row {
        rate: 11,
        place: place(),
        ..Row::default()
    });
    out.own(&[100 + number, 200, 300]);
    out.finish();
}

fn place() -> Whereabouts {
    Whereabouts {
        nexus: Some("[::c:0:0:0:d]:14".parse().unwrap()),
        endpoint: Some(14),
    }
}

/// The file without the blocks that were never used.
fn file_of(page: &Page) -> Vec<u8> {
    let mut file = page.file().try_clone().unwrap();
    let head = words(&mut file, 0, layout::HEADER).unwrap();
    let end = head[header::BLOCKS] + head[header::BLOCK_LEN] * head[header::BLOCKS_USED];
    bytes(&mut file, 0, usize::try_from(end).unwrap()).unwrap()
}

fn read(mut bytes: &[u8]) -> Result<Snapshot, ReadError> {
    Snapshot::read(&mut bytes)
}

/// Changes one word of the header.
fn with(bytes: &[u8], word: usize, value: u64) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    bytes[word * WORD..][..WORD].copy_from_slice(&value.to_le_bytes());
    bytes
}

#[test]
fn written_values_are_read() {
    let (page, _block) = page();
    page.write_nexus([9, 0]);
    let snapshot = Snapshot::read(&mut page.file().try_clone().unwrap()).unwrap();
    assert_eq!(snapshot.pid, u64::from(std::process::id()));
    assert_eq!(snapshot.address, "127.0.0.1:31850");
    assert_eq!(snapshot.nexus.get("peers_failed"), 9);
    let [endpoint] = &snapshot.endpoints[..] else {
        panic!("{snapshot:?}")
    };
    assert_eq!((endpoint.index, &endpoint.transport[..]), (3, "shm+dpdk"));
    assert_eq!(endpoint.counters.get("rx_frames"), 1);
    assert_eq!(endpoint.drops.total(), 1);
    assert_eq!(endpoint.gauges.total(), Gauges::NAMES.len() as u64);
    let own: Vec<(&str, u64)> = endpoint.own_counters.iter().collect();
    assert_eq!(own, [("kv_hits", 101), ("kv_misses", 200)]);
    assert_eq!(endpoint.own_gauges.get("kv_items"), 300);
    let rtt = endpoint.histogram("rtt").unwrap();
    assert_eq!((rtt.count(), rtt.mean()), (1, 5_000));
    assert_eq!(rtt.quantile(0.5), 4_096_u64.midpoint(8_191));
    assert_eq!(endpoint.histogram("call").unwrap().count(), 0);
    assert_eq!(endpoint.sessions.len(), 1);
    let session = &endpoint.sessions[0];
    assert_eq!(session.get("rate"), 11);
    assert_eq!(session.place, place());
    assert_eq!(session.numbers.iter().count(), 12, "{session:?}");
}

/// Files of releases without places, or with additional columns, can be read.
#[test]
fn columns_come_and_go_without_another_version() {
    let (page, _block) = page();
    let mut whole = file_of(&page);
    let at = |name: &[u8], bytes: &[u8]| bytes.windows(name.len()).position(|w| w == name);
    for (column, other) in [
        ("peer_ip_high", "of_the_future"),
        ("peer_port", "ordinary"),
        ("peer_endpoint", "moreover_this"),
    ] {
        let place = at(column.as_bytes(), &whole).unwrap();
        let other = &other.as_bytes()[..column.len().min(other.len())];
        let padded = [other, b"        "].concat();
        whole[place..place + column.len()].copy_from_slice(&padded[..column.len()]);
    }
    let snapshot = read(&whole).unwrap();
    let session = &snapshot.endpoints[0].sessions[0];
    assert_eq!(session.place, Whereabouts::default());
    assert_eq!(session.get("rate"), 11);
    assert_eq!(session.get("ordinary"), 14);
}

#[test]
fn the_block_of_an_endpoint_that_is_gone_is_hidden_and_reused() {
    let (page, block) = page();
    drop(block);
    let bytes = file_of(&page);
    assert!(read(&bytes).unwrap().endpoints.is_empty());
    let _again = page.block().unwrap();
    assert_eq!(file_of(&page).len(), bytes.len());
}

#[test]
fn a_truncated_file_is_refused_wherever_it_ends() {
    let (page, _block) = page();
    let whole = file_of(&page);
    assert!(read(&whole).is_ok());
    for end in (0..whole.len() - 64 * WORD).step_by(97) {
        let error = read(&whole[..end]).unwrap_err();
        assert!(
            matches!(error, ReadError::Truncated { .. }),
            "{end}: {error}"
        );
    }
}

#[test]
fn other_files_and_other_versions_are_refused() {
    let (page, _block) = page();
    let whole = file_of(&page);
    let version = read(&with(&whole, header::VERSION, 2));
    assert!(matches!(version, Err(ReadError::Version { found: 2 })));
    assert!(matches!(
        read(&with(&whole, header::MAGIC, 2)),
        Err(ReadError::NotOne)
    ));
    assert!(matches!(
        read(&with(&whole, header::BLOCK_LEN, 64)),
        Err(ReadError::Damaged(_))
    ));
    assert!(matches!(
        read(&with(&whole, header::TEXT_LEN, u64::MAX)),
        Err(ReadError::Damaged(_))
    ));
    assert!(read(&with(&whole, header::BLOCKS, u64::MAX - 7)).is_err());
}

#[test]
fn a_block_that_is_never_whole_is_reported() {
    let (page, mut block) = page();
    // Not finished, as if the endpoint's thread had been stopped here.
    let _ = block.write(&Head {
        index: 3,
        transport: "shm",
        clock_ns: 2,
        rows: 0,
    });
    let error = read(&file_of(&page)).unwrap_err();
    assert!(matches!(error, ReadError::Unfinished), "{error}");
}

#[test]
fn a_reading_never_mixes_two_moments() {
    let (page, mut block) = page();
    let mut file = page.file().try_clone().unwrap();
    let writer = std::thread::spawn(move || {
        for number in 2..20_000 {
            fill(&mut block, number);
            if number % 8 == 0 {
                std::thread::yield_now();
            }
        }
        block
    });
    while !writer.is_finished() {
        let Ok(snapshot) = Snapshot::read(&mut file) else {
            continue;
        };
        let endpoint = &snapshot.endpoints[0];
        let number = endpoint.clock_ns;
        assert_eq!(endpoint.counters.get("rx_frames"), number);
        assert_eq!(endpoint.drops.get("token"), number);
        assert_eq!(endpoint.histogram("rtt").unwrap().count(), number);
    }
    drop(writer.join().unwrap());
}

#[test]
fn histograms_are_exact_at_powers_of_two() {
    let times = [1, 1023, 1024, 5_000];
    let mut words = vec![times.iter().sum()];
    words.extend(bounds().iter().map(|_| 0));
    for time in times {
        words[bounds().partition_point(|bound| *bound <= time)] += 1;
    }
    let read = Histogram::take(&bounds(), &mut words.into_iter());
    let up_to: Vec<(u64, u64)> = read.up_to_powers_of_two().collect();
    assert!(up_to.contains(&(1023, 2)));
    assert!(up_to.contains(&(2047, 3)));
    assert_eq!(read.quantile(1.0), read.longest());
    assert_eq!(read.since(&read).count(), 0);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Reading broken bytes quickly gives an error or numbers, never a panic.
    #[test]
    fn broken_files_are_read_or_refused(
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..64),
        head in prop::collection::vec((0..layout::HEADER, any::<u64>()), 0..3),
        end in any::<prop::sample::Index>(),
    ) {
        let (page, _block) = page();
        let mut bytes = file_of(&page);
        for (place, byte) in changes {
            // Most of the important words are near the beginning.
            let place = place.index(bytes.len()) % 2048;
            bytes[place] = byte;
        }
        for (word, value) in head {
            bytes = with(&bytes, word, value);
        }
        bytes.truncate(end.index(bytes.len()) + 1);
        let _ = read(&bytes);
    }
}
