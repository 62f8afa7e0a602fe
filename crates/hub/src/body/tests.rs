//! Requests that are encoded, moved, sent and sent again.

use dunlin_msgbuf::{AllocError, Pool, PoolConfig};

use super::*;

fn pool() -> Pool {
    Pool::new(PoolConfig::default()).unwrap()
}

fn write(body: &mut Body, gap: usize, message: &[u8]) {
    body.write(gap, message.len(), |out| out.copy_from_slice(message));
}

/// The request of an attempt, and whether it was copied.
fn request(body: &mut Body, pool: &mut Pool, may_have_two: bool) -> (MsgBuf, bool) {
    let mut is_copied = false;
    let request = body.request(may_have_two, |len| {
        is_copied = true;
        pool.alloc(len)
    });
    (request.unwrap(), is_copied)
}

#[test]
fn only_the_first_call_of_a_slot_is_copied() {
    let (mut body, mut pool) = (Body::default(), pool());
    for number in 0..3_u8 {
        write(&mut body, 8, &[number; 40]);
        let (sent, is_copied) = request(&mut body, &mut pool, false);
        assert_eq!(sent.data()[8..], [number; 40]);
        assert_eq!(is_copied, number == 0);
        assert!(body.put_back(sent).is_none());
        body.end(4096);
    }
}

#[test]
fn a_repeat_sends_what_the_first_attempt_sent() {
    let (mut body, mut pool) = (Body::default(), pool());
    for _ in 0..2 {
        write(&mut body, 0, b"again");
        for _ in 0..3 {
            let (sent, _) = request(&mut body, &mut pool, false);
            assert_eq!(sent.data(), b"again");
            assert!(body.put_back(sent).is_none());
        }
        body.end(4096);
    }
}

#[test]
fn two_attempts_at_once_have_copies() {
    let (mut body, mut pool) = (Body::default(), pool());
    for _ in 0..3 {
        write(&mut body, 0, b"both");
        let (one, is_copied) = request(&mut body, &mut pool, true);
        let (other, _) = request(&mut body, &mut pool, true);
        assert!(is_copied);
        assert_eq!([one.data(), other.data()], [b"both"; 2]);
        let spare = [body.put_back(one), body.put_back(other)];
        spare.into_iter().flatten().for_each(|it| pool.recycle(it));
        body.end(4096);
    }
}

#[test]
fn a_message_moves_when_its_front_gets_another_length() {
    let (mut body, mut pool) = (Body::default(), pool());
    // First in other memory, then in the msgbuf.
    for _ in 0..2 {
        write(&mut body, 8, b"message");
        for gap in [0, 24, 16, 16, 8] {
            body.set_gap(gap);
            assert_eq!(body.message(), b"message");
        }
        let (sent, _) = request(&mut body, &mut pool, false);
        assert_eq!(sent.data()[8..], *b"message");
        assert!(body.put_back(sent).is_none());
        body.end(4096);
    }
    // It no longer fits the msgbuf.
    write(&mut body, 0, b"message");
    body.set_gap(1 << 20);
    assert_eq!(body.message(), b"message");
    let (sent, is_copied) = request(&mut body, &mut pool, false);
    assert!(is_copied);
    assert_eq!(sent.data()[1 << 20..], *b"message");
}

#[test]
fn a_slot_keeps_no_large_memory() {
    let (mut body, mut pool) = (Body::default(), pool());
    write(&mut body, 0, &[7; 100_000]);
    let (sent, _) = request(&mut body, &mut pool, false);
    assert!(body.put_back(sent).is_none());
    body.end(4096);
    assert!(body.buf.is_none());
    assert!(body.memory.capacity() <= 4096);
    pool.trim();
    assert_eq!(pool.outstanding(), 0);
}

#[test]
fn a_call_without_memory_can_be_tried_again() {
    let (mut body, mut pool) = (Body::default(), pool());
    write(&mut body, 0, b"later");
    let refused = body.request(false, |_| Err(AllocError::NoMemory));
    assert_eq!(refused.unwrap_err(), AllocError::NoMemory);
    assert_eq!(request(&mut body, &mut pool, false).0.data(), b"later");
}

/// The caller drops the call while an attempt has the msgbuf.
#[test]
fn a_slot_whose_msgbuf_is_away_takes_the_next_call() {
    let (mut body, mut pool) = (Body::default(), pool());
    write(&mut body, 0, b"one");
    let (first, _) = request(&mut body, &mut pool, false);
    assert!(body.put_back(first).is_none());
    let (away, _) = request(&mut body, &mut pool, false);
    body.end(4096);
    write(&mut body, 0, b"two");
    let (sent, is_copied) = request(&mut body, &mut pool, false);
    assert!(is_copied);
    assert_eq!(sent.data(), b"two");
    assert_eq!(away.data(), b"one");
}
