//! Timers, and futures that are spawned.

use std::cell::RefCell;
use std::rc::Rc;
use std::time::{Duration, Instant};

use dunlin::{Caller, Nexus};
use futures::future::{Either, select};

use crate::local::local;

#[test]
fn timers_fire_in_order_and_not_early() {
    let mut local = local(&Nexus::bind("127.0.0.1:0").unwrap());
    let begin = Instant::now();
    let fired = Rc::new(RefCell::new(Vec::new()));
    let told = Rc::clone(&fired);
    local.block_on(|cx| async move {
        // Each timer is a future of its own. On a busy machine several may be due at once; these
        // fire in order, too.
        for ms in [5, 1, 3] {
            let (clock, fired) = (cx.clone(), Rc::clone(&told));
            cx.spawn(async move {
                clock.sleep(Duration::from_millis(ms)).await;
                fired.borrow_mut().push(ms);
            });
        }
        while told.borrow().len() < 3 {
            cx.sleep(Duration::from_micros(100)).await;
        }
    });
    assert!(
        begin.elapsed() >= Duration::from_millis(5),
        "{:?}",
        begin.elapsed()
    );
    assert_eq!(*fired.borrow(), [1, 3, 5]);
}

#[test]
fn dropped_timers_neither_fire_nor_pile_up() {
    let mut local = local(&Nexus::bind("127.0.0.1:0").unwrap());
    local.block_on(|cx| async move {
        for _ in 0..10_000 {
            let short = cx.sleep(Duration::from_micros(1));
            let long = cx.sleep(Duration::from_secs(3600));
            match select(short, long).await {
                Either::Left(_) => {}
                Either::Right(_) => panic!("an hour has passed"),
            }
        }
    });
    assert!(local.timers() < 200, "{} timers are kept", local.timers());
}

#[test]
fn spawned_futures_run_beside_the_others() {
    let mut local = local(&Nexus::bind("127.0.0.1:0").unwrap());
    let sum = Rc::new(RefCell::new(0));
    local.block_on(|cx| {
        let sum = Rc::clone(&sum);
        async move {
            for number in 1..=10 {
                let (inner, sum) = (cx.clone(), Rc::clone(&sum));
                cx.spawn(async move {
                    inner.sleep(Duration::from_micros(10)).await;
                    *sum.borrow_mut() += number;
                });
            }
            while *sum.borrow() < 55 {
                cx.sleep(Duration::from_micros(50)).await;
            }
        }
    });
    assert_eq!(*sum.borrow(), 55);
}

/// A task that spawns itself again and again does not starve the other tasks.
#[test]
fn spawning_without_end_starves_no_task() {
    fn again(cx: Caller) {
        let next = cx.clone();
        cx.spawn(async move { again(next) });
    }
    let nexus = Nexus::bind("127.0.0.1:0").unwrap();
    let mut local = local(&nexus);
    local.block_on(|cx| async move {
        again(cx.clone());
        cx.sleep(Duration::from_millis(2)).await;
    });
}
