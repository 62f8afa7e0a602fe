//! Both sides of a ring in one thread, and a side that lies.

use super::*;

const AT: Offsets = Offsets {
    producer: 0,
    consumer: 64,
    flags: 128,
    entries: 192,
};

/// Both sides of a new ring, and its memory.
fn ring<E: RingEntry>(count: u32) -> (Producer<E>, Consumer<E>, Memory<E>) {
    let mapping = Mapping::anonymous(AT.mapping_len::<E>(count)).unwrap();
    let memory = Memory::of(Arc::new(mapping), &AT, count).unwrap();
    let sides = (Producer::new(memory.clone()), Consumer::new(memory.clone()));
    (sides.0, sides.1, memory)
}

fn desc(number: u32) -> Desc {
    Desc {
        addr: u64::from(number) << 33 | 5,
        len: number,
        options: number & 1,
    }
}

#[test]
fn a_descriptor_lies_in_memory_as_the_kernel_declares_it() {
    let (mut producer, _, memory) = ring::<Desc>(2);
    let wanted = libc::xdp_desc {
        addr: 0x0102_0304_0506_0708,
        len: 0x1112_1314,
        options: 1,
    };
    assert!(producer.push(Desc {
        addr: wanted.addr,
        len: wanted.len,
        options: wanted.options,
    }));
    // SAFETY: a descriptor was written there, and no other thread has the memory.
    let found: libc::xdp_desc = unsafe { memory.words.cast().read() };
    assert_eq!(
        (found.addr, found.len, found.options),
        (wanted.addr, wanted.len, wanted.options)
    );
}

#[test]
fn entries_pass_in_order_around_the_ring() {
    let (mut producer, mut consumer, _) = ring::<Desc>(4);
    let (mut sent, mut got) = (0, 0);
    let rounds = if cfg!(miri) { 20 } else { 200 };
    for round in 0..rounds {
        for _ in 0..=round % 4 {
            assert!(producer.push(desc(sent)));
            sent += 1;
        }
        assert_eq!(consumer.available(5), 0, "not published");
        producer.publish();
        let shown = consumer.available(1);
        assert_eq!(shown, sent - got);
        for ahead in 0..shown {
            assert_eq!(consumer.peek(ahead), Some(desc(got + ahead)));
        }
        assert_eq!(consumer.peek(shown), None);
        while let Some(found) = consumer.pop() {
            assert_eq!(found, desc(got));
            got += 1;
        }
        consumer.release();
        assert_eq!(producer.waiting(), 0);
    }
    assert!(sent > rounds);
    assert!(!producer.is_broken() && !consumer.is_broken());
}

#[test]
fn places_and_entries_are_shown_up_to_the_end_of_memory() {
    let (mut producer, mut consumer, _) = ring::<Desc>(4);
    let mut sent = 0;
    for (places, entries) in [(4, 3), (1, 1), (4, 4), (4, 2), (2, 1), (1, 1)] {
        assert_eq!(producer.places().len(), places);
        for place in producer.places().take(entries) {
            place.write(desc(sent));
            sent += 1;
        }
        let entries = u32::try_from(entries).unwrap();
        producer.advance(entries);
        assert_eq!(consumer.entries().len(), 0, "not published");
        producer.publish();
        assert_eq!(consumer.available(1), entries);
        let found: Vec<_> = consumer.entries().collect();
        let wanted: Vec<_> = (sent - entries..sent).map(desc).collect();
        assert_eq!(found, wanted);
        consumer.advance(entries);
        consumer.release();
        assert_eq!(producer.waiting(), 0);
    }
}

#[test]
fn no_entry_is_taken_that_was_not_shown() {
    let (mut producer, mut consumer, _) = ring::<u64>(4);
    for number in 0..3 {
        assert!(producer.push(number));
    }
    producer.publish();
    assert_eq!(consumer.available(1), 3);
    consumer.advance(2);
    assert_eq!(consumer.entries().collect::<Vec<_>>(), [2]);
    consumer.advance(5);
    assert_eq!(consumer.entries().len(), 0);
    consumer.release();
    assert_eq!(producer.waiting(), 0);
    assert!(!producer.is_broken());
}

#[test]
fn a_full_ring_takes_nothing_until_entries_are_released() {
    let (mut producer, mut consumer, _) = ring::<u64>(4);
    for number in 0..4 {
        assert!(producer.push(number));
    }
    assert!(!producer.push(4));
    producer.publish();
    assert_eq!(consumer.available(1), 4);
    assert_eq!(consumer.pop(), Some(0));
    assert!(!producer.push(4), "taken, but not released");
    consumer.release();
    assert!(producer.push(4));
    assert!(!producer.push(5));
}

#[test]
fn positions_wrap() {
    let (_, _, memory) = ring::<u64>(4);
    for position in [memory.producer(), memory.consumer()] {
        position.store(u32::MAX - 1, Ordering::Relaxed);
    }
    let (mut producer, mut consumer) = (Producer::new(memory.clone()), Consumer::new(memory));
    for number in 0..20 {
        assert!(producer.push(number));
        producer.publish();
        assert_eq!(consumer.available(1), 1);
        assert_eq!(consumer.pop(), Some(number));
        consumer.release();
    }
}

#[test]
fn a_producer_at_an_impossible_position_breaks_the_ring() {
    for lie in [5, 6, u32::MAX, u32::MAX - 100, 1 << 31] {
        let (mut producer, mut consumer, memory) = ring::<u64>(4);
        assert!(producer.push(1));
        producer.publish();
        assert_eq!(consumer.available(1), 1);
        memory.producer().store(lie, Ordering::Relaxed);
        assert_eq!(consumer.available(2), 0, "{lie}");
        assert!(consumer.is_broken());
        assert_eq!(consumer.pop(), None);
        // A correct position does not repair the ring.
        memory.producer().store(2, Ordering::Relaxed);
        assert_eq!(consumer.available(1), 0);
    }
}

#[test]
fn a_consumer_at_an_impossible_position_breaks_the_ring() {
    for lie in [4, 5, u32::MAX, 1 << 31] {
        let (mut producer, _, memory) = ring::<u64>(4);
        for number in 0..3 {
            assert!(producer.push(number));
        }
        producer.publish();
        memory.consumer().store(lie, Ordering::Relaxed);
        assert_eq!(producer.room(4), 0, "{lie}");
        assert!(producer.is_broken());
        assert!(!producer.push(9));
        memory.consumer().store(3, Ordering::Relaxed);
        assert!(!producer.push(9), "an honest position does not mend it");
    }
}

#[test]
fn a_part_outside_of_the_mapping_is_refused() {
    let mapping = Arc::new(Mapping::anonymous(4096).unwrap());
    let of = |at: Offsets, count| Memory::<Desc>::of(mapping.clone(), &at, count).is_some();
    assert!(of(AT, 64));
    assert!(!of(AT, 256), "the last entry is outside");
    assert!(!of(AT, 48), "no power of two");
    assert!(!of(
        Offsets {
            producer: 4096,
            ..AT
        },
        4
    ));
    assert!(!of(Offsets { flags: 2, ..AT }, 4), "not aligned");
    assert!(!of(
        Offsets {
            entries: usize::MAX - 7,
            ..AT
        },
        4
    ));
}

#[test]
fn a_consumer_asks_for_a_wakeup_and_takes_it_back() {
    let (producer, consumer, _) = ring::<u64>(4);
    assert!(!producer.wants_wakeup());
    consumer.ask_for_wakeup(true);
    assert!(producer.wants_wakeup());
    consumer.ask_for_wakeup(false);
    assert!(!producer.wants_wakeup());
}
