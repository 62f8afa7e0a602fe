//! After a panic anywhere in a batch, every look-up in flight and every value is dropped once.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};

use gopt::Batch;

/// A token. The cell counts how many tokens are alive.
struct Token<'a>(&'a Cell<i32>);

impl<'a> Token<'a> {
    fn new(alive: &'a Cell<i32>) -> Self {
        alive.set(alive.get() + 1);
        Token(alive)
    }
}

impl Drop for Token<'_> {
    fn drop(&mut self) {
        self.0.set(self.0.get() - 1);
    }
}

/// The place where a batch of forty items panics.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum PanicIn {
    Nowhere,
    Start,
    AfterMark,
    Lookup,
    Done,
    Items,
}

/// Runs a batch that panics at item 17 in `place`; returns the number of values that it passed on.
fn run(alive: &Cell<i32>, place: PanicIn, width: usize, in_order: bool) -> Result<u32, ()> {
    let panic_in = |here: PanicIn, item: u32| assert!(item != 17 || place != here, "asked to");
    let handed_on = Cell::new(0);
    let items = (0..40_u32).inspect(|&item| panic_in(PanicIn::Items, item));
    let lookup = |item: u32| {
        panic_in(PanicIn::Lookup, item);
        let token = Token::new(alive);
        async move {
            let _held = Token::new(token.0);
            panic_in(PanicIn::Start, item);
            for _ in 0..item % 5 + 1 {
                gopt::switch().await;
                panic_in(PanicIn::AfterMark, item);
            }
            (item, token)
        }
    };
    let done = |(item, _token): (u32, Token<'_>)| {
        panic_in(PanicIn::Done, item);
        handed_on.set(handed_on.get() + 1);
    };
    let batch = Batch::<16>::with_width(width).expect("not zero, not more than 16");
    catch_unwind(AssertUnwindSafe(|| {
        if in_order {
            batch.in_order(items, lookup, done);
        } else {
            batch.for_each(items, lookup, |_, value| done(value));
        }
    }))
    .map(|()| handed_on.get())
    .map_err(drop)
}

#[test]
fn nothing_outlives_a_panic() {
    use PanicIn::{AfterMark, Done, Items, Lookup, Nowhere, Start};
    for width in [1, 2, 7, 16] {
        for in_order in [false, true] {
            for place in [Nowhere, Start, AfterMark, Lookup, Done, Items] {
                let alive = Cell::new(0);
                let outcome = run(&alive, place, width, in_order);
                let expected = if place == Nowhere { Ok(40) } else { Err(()) };
                assert_eq!(outcome, expected, "{place:?}");
                assert_eq!(alive.get(), 0, "{place:?}, width {width}");
            }
        }
    }
}
