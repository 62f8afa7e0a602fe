//! At every cell size, a lane delivers every message once and in order, and never holds more
//! messages than it has cells.

use super::*;
use crate::baselines::sys;

fn with_lane(shape: Shape, body: impl FnOnce(Writer<'_>, Reader<'_>)) {
    let (_file, name) = sys::create_shared(shape.bytes()).unwrap();
    let (ours, theirs) = (
        Shared::map(&name, shape.bytes()).unwrap(),
        Shared::map(&name, shape.bytes()).unwrap(),
    );
    // SAFETY: this is the only pair of ends of a lane that was just made.
    unsafe { body(Writer::new(&ours, 0, shape), Reader::new(&theirs, 0, shape)) };
}

#[test]
fn a_cell_has_as_many_lines_as_its_message_needs() {
    let lines = |size| Shape { cells: 8, size }.lines();
    assert_eq!([8, 56, 64, 120, 256, 1024].map(lines), [1, 1, 2, 2, 5, 17]);
}

#[test]
fn a_full_ring_refuses_and_an_empty_one_has_nothing() {
    with_lane(Shape { cells: 8, size: 8 }, |mut writer, mut reader| {
        assert_eq!(reader.read(|_| ()), None);
        for lap in 0..3 {
            for number in 0..8 {
                assert!(writer.write(|out| out.fill(lap * 8 + number)));
            }
            assert!(!writer.write(|_| panic!("a full ring is written")));
            for number in 0..8 {
                assert_eq!(reader.read(|bytes| bytes[7]), Some(lap * 8 + number));
            }
            assert_eq!(reader.read(|_| ()), None);
        }
    });
}

#[test]
fn a_run_that_does_not_fit_stays_and_one_that_fits_is_read_in_order() {
    let shape = Shape {
        cells: 8,
        size: 120,
    };
    with_lane(shape, |mut writer, mut reader| {
        let mut out = Burst::new(shape, 8);
        let mut into = Burst::new(shape, 8);
        assert!(!reader.read_run(&mut into, 8));
        for lap in 0..5 {
            for number in 0..5 {
                out.push().fill(lap * 5 + number);
            }
            assert!(writer.write_run(&mut out) && out.len() == 0);
            for _ in 0..4 {
                out.push().fill(99);
            }
            assert!(!writer.write_run(&mut out) && out.len() == 4, "three fit");
            out = Burst::new(shape, 8);
            assert!(reader.read_run(&mut into, 3) && into.len() == 3);
            assert_eq!(reader.read(|bytes| bytes[119]), Some(lap * 5 + 3));
            assert_eq!(into.get(2), [lap * 5 + 2; 120]);
            assert!(reader.read_run(&mut into, 3) && into.len() == 1);
            assert_eq!(into.get(0), [lap * 5 + 4; 120]);
            assert!(!reader.read_run(&mut into, 3));
        }
    });
}

#[test]
fn runs_cross_threads_whole_and_in_order() {
    let shape = Shape {
        cells: 16,
        size: 56,
    };
    let (_file, name) = sys::create_shared(shape.bytes()).unwrap();
    const RUNS: u64 = 3_000;
    // Runs whose lengths cycle from one to seven messages.
    let len = |run: u64| run % 7 + 1;
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let memory = Shared::map(&name, shape.bytes()).unwrap();
            // SAFETY: the only writer of this lane.
            let mut writer = unsafe { Writer::new(&memory, 0, shape) };
            let mut burst = Burst::new(shape, 8);
            let mut number = 0;
            for run in 0..RUNS {
                for _ in 0..len(run) {
                    crate::harness::work::fill(burst.push(), number);
                    number += 1;
                }
                while !writer.write_run(&mut burst) {
                    std::thread::yield_now();
                }
            }
        });
        let memory = Shared::map(&name, shape.bytes()).unwrap();
        // SAFETY: the only reader of this lane.
        let mut reader = unsafe { Reader::new(&memory, 0, shape) };
        let mut burst = Burst::new(shape, 4);
        let mut number = 0;
        while number < (0..RUNS).map(len).sum() {
            if !reader.read_run(&mut burst, 16) {
                std::thread::yield_now();
            }
            for index in 0..burst.len() {
                let message = burst.get(index);
                assert!(
                    crate::harness::work::is_request(message, number),
                    "{number}"
                );
                number += 1;
            }
        }
    });
}

#[test]
fn messages_cross_threads_whole_and_in_order() {
    let shape = Shape {
        cells: 16,
        size: 120,
    };
    let (_file, name) = sys::create_shared(shape.bytes()).unwrap();
    const MESSAGES: u64 = 20_000;
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let memory = Shared::map(&name, shape.bytes()).unwrap();
            // SAFETY: the only writer of this lane.
            let mut writer = unsafe { Writer::new(&memory, 0, shape) };
            for number in 0..MESSAGES {
                while !writer.write(|out| crate::harness::work::fill(out, number)) {
                    std::thread::yield_now();
                }
            }
        });
        let memory = Shared::map(&name, shape.bytes()).unwrap();
        // SAFETY: the only reader of this lane.
        let mut reader = unsafe { Reader::new(&memory, 0, shape) };
        for number in 0..MESSAGES {
            let is_right = loop {
                match reader.read(|bytes| crate::harness::work::is_request(bytes, number)) {
                    Some(is_right) => break is_right,
                    None => std::thread::yield_now(),
                }
            };
            assert!(is_right, "message {number}");
        }
    });
}
