//! The proof: ten thousand calls without a single allocation.

use dunlin_core::transport::Transport;

use super::world::World;
use crate::counting;

/// Number of calls after which no part of the endpoint grows any more.
const WARM_UP: u64 = 3_000;
/// Calls that are counted.
const CALLS: u64 = 10_000;

/// Runs rounds of calls, and fails if one of them allocates after the warm-up.
pub fn prove<T: Transport>(world: &mut World<T>, round: fn(&mut World<T>)) {
    run_until(world, WARM_UP, round);
    let mut count = 0;
    let start = world.client.app().completed;
    while world.client.app().completed < start + CALLS {
        count += counting::allocations_in(|| round(world));
        assert_eq!(
            count,
            0,
            "the first came from\n{}",
            counting::first_allocation()
        );
    }
}

fn run_until<T: Transport>(world: &mut World<T>, calls: u64, round: fn(&mut World<T>)) {
    let start = world.client.app().completed;
    while world.client.app().completed < start + calls {
        round(world);
    }
}

/// Defines a test for every kind of call. The function `$world` takes a number of sessions and
/// makes the two endpoints, over the transport to test.
#[macro_export]
macro_rules! prove_every_kind {
    ($world:ident) => {
        $crate::prove_every_kind! {
            $world: dispatch, deferred, nested, batch, background, errors, slow, backlog, deadlines,
            cancels, cancels_behind_a_full_window, probes, losses, holds
        }
    };
    ($world:ident: $($kind:ident),*) => {
        $(
            #[test]
            fn $kind() {
                $crate::allocations::prove(&mut $world(3), $crate::allocations::kinds::$kind);
            }
        )*

        /// Checks that the counter counts and that the calls succeed; otherwise the proofs would be
        /// worthless.
        #[test]
        fn an_allocation_is_seen() {
            use $crate::counting;
            // Even in a build without debug information, a stack trace names this function.
            #[inline(never)]
            fn allocate() {
                drop(std::hint::black_box(Box::new(1)));
            }
            let one = counting::allocations_in(allocate);
            assert_eq!(one, 1);
            assert!(counting::first_allocation().contains("an_allocation_is_seen"));
            let mut world = $world(2);
            $crate::allocations::kinds::dispatch(&mut world);
            $crate::allocations::kinds::nested(&mut world);
            assert_eq!(world.client.app().succeeded, 16);
            assert_eq!(world.server.app().succeeded, 8);
        }
    };
}
