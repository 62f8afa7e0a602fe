//! Tests of `regions`: look-ups, ids, descriptions, and readers against a writer.

use super::*;
use crate::table::{ROWS, row_of};
use crate::{MsgBuf, Pool, PoolConfig};
use std::sync::atomic::{AtomicBool, Ordering};

fn pool(readable: bool) -> Pool {
    let config = PoolConfig {
        readable,
        first_region_bytes: 1 << 16,
        ..PoolConfig::default()
    };
    Pool::new(config).expect("the configuration is valid")
}

fn alloc(pool: &mut Pool, len: usize) -> MsgBuf {
    pool.alloc(len).expect("the pool has room")
}

#[test]
fn a_region_is_known_as_long_as_it_lives() {
    let mut pool = pool(true);
    let buf = alloc(&mut pool, 8);
    let lent = buf.lend();
    let info = info(lent.region()).expect("the region is alive");
    assert!(info.len >= 1 << 16);
    assert_ne!(info.backing, Backing::User);
    assert_eq!(info.fd.is_some(), info.backing != Backing::Private);
    drop(pool);
    assert!(
        super::info(lent.region()).is_some(),
        "the msgbuf keeps its region"
    );
    drop(buf);
    assert!(super::info(lent.region()).is_none());
    assert_eq!(read(lent, &mut Vec::new()), Err(Stale::Revoked));
    // SAFETY: no other thread knows this pool, so nothing frees the region during the call.
    assert!(unsafe { resolve(lent) }.is_none());
}

#[test]
fn no_region_has_the_id_none() {
    assert!(info(RegionId::NONE).is_none());
}

#[test]
fn a_row_of_the_table_is_used_again_under_another_id() {
    let mut pool = pool(false);
    let mut last = alloc(&mut pool, 1).lend().region();
    let rounds = if cfg!(miri) { 20 } else { ROWS + 20 };
    let first = pool.adopt(vec![0]).expect("a row is free").lend();
    for _ in 0..rounds {
        let buf = pool.adopt(vec![0]).expect("a row is free");
        let id = buf.lend().region();
        assert_ne!(row_of(id), 0);
        assert_ne!(id, last);
        last = id;
    }
    assert!(info(first.region()).is_none());
    assert_eq!(read(first, &mut Vec::new()), Err(Stale::Revoked));
}

#[test]
fn a_read_appends_the_bytes_or_changes_nothing() {
    let mut readable = pool(true);
    let mut buf = alloc(&mut readable, 3);
    buf.fill(b"abc").expect("three bytes fit");
    let lent = buf.lend();
    let mut out = b"x".to_vec();
    assert_eq!(read(lent, &mut out), Ok(()));
    assert_eq!(out, b"xabc");
    buf.revoke();
    assert_eq!(read(lent, &mut out), Err(Stale::Revoked));
    assert_eq!(out, b"xabc");

    let buf = alloc(&mut pool(false), 3);
    assert_eq!(read(buf.lend(), &mut out), Err(Stale::NotReadable));
    assert!(Stale::NotReadable.to_string().contains("readable: true"));
    assert!(Stale::Revoked.to_string().contains("revoked"));
}

#[test]
fn only_lent_bytes_inside_the_region_have_a_name() {
    let mut pool = pool(true);
    let buf = alloc(&mut pool, 8);
    let lent = buf.lend();
    let len =
        u32::try_from(info(lent.region()).expect("the region is alive").len).expect("it is short");
    let forged = [
        BufRef {
            offset: len,
            ..lent
        },
        BufRef {
            offset: u32::MAX,
            len: u32::MAX,
            ..lent
        },
        BufRef {
            block: u32::MAX,
            ..lent
        },
        BufRef {
            generation: lent.generation ^ 2,
            ..lent
        },
        BufRef {
            generation: 1,
            block: lent.block + 1,
            ..lent
        },
    ];
    for forged in forged {
        assert_eq!(
            read(forged, &mut Vec::new()),
            Err(Stale::Revoked),
            "{forged:?}"
        );
        // SAFETY: this thread owns the pool, and the result is not used.
        assert!(unsafe { resolve(forged) }.is_none(), "{forged:?}");
    }
}

/// The writer changes the whole message between loans, while a reader copies it. The reader gets
/// one complete message, or finds that the name is stale.
#[test]
fn a_reader_never_sees_a_message_change() {
    let (len, rounds) = if cfg!(miri) { (50, 30) } else { (60_000, 1000) };
    let mut pool = pool(true);
    let mut buf = alloc(&mut pool, len);
    let newest = std::sync::Mutex::new(BufRef::EMPTY);
    let finished = AtomicBool::new(false);
    let seen = std::thread::scope(|scope| {
        let reader = scope.spawn(|| {
            let (mut seen, mut out) = (0, Vec::new());
            while !finished.load(Ordering::Acquire) {
                out.clear();
                let name = *newest.lock().expect("no thread panics");
                match read(name, &mut out) {
                    Ok(()) => {
                        assert_eq!(out.len(), name.len());
                        assert!(
                            out.iter().all(|byte| *byte == out[0]),
                            "the copy mixes two messages"
                        );
                        seen += 1;
                    }
                    Err(Stale::Revoked) => {}
                    Err(Stale::NotReadable) => panic!("the pool is not readable"),
                }
                #[cfg(miri)]
                std::thread::yield_now();
            }
            seen
        });
        for round in 0..rounds {
            buf.data_mut()
                .fill(u8::try_from(round % 251).expect("the remainder is below 251"));
            *newest.lock().expect("no thread panics") = buf.lend();
            // The time between lending and the next write varies, so that reads begin at every
            // stage of it.
            for _ in 0..(round % 16) * if cfg!(miri) { 1 } else { 500 } {
                std::hint::spin_loop();
            }
            if round % 16 == 0 {
                std::thread::yield_now();
            }
        }
        finished.store(true, Ordering::Release);
        reader.join().expect("the reader does not panic")
    });
    assert!(cfg!(miri) || seen > 0, "no message was ever read");
}
