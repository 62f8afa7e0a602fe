//! RPCs between two endpoints over shared memory, in one thread and with a clock that only counts,
//! so that every run executes the same instructions. `cargo xtask budget` runs this program under
//! callgrind and compares the counts with `budget.toml`; `xtask/outside` builds it as a program
//! outside the workspace.
//!
//! ```text
//! cargo run --release -p dunlin-transport --example shm_rpc -- \
//!     [SIZE] [IN_FLIGHT] [SESSIONS] [COUNT] [deadline]
//! ```
//!
//! `SIZE` is 8, 32, 56, 200 or 1000 bytes each way, or 32 with a deadline on every call. If
//! `IN_FLIGHT` is 0, the program counts `COUNT` idle iterations of each endpoint; otherwise `COUNT`
//! RPCs. The last printed line is the number of counted RPCs or iterations.

#[path = "rpc/mod.rs"]
mod rpc;

use dunlin_testkit::instructions::argument;
use dunlin_transport::connect::{EndpointUid, PeerInfo, meet};
use dunlin_transport::shm::{Options, Shm};

use rpc::{End, Plan, run};

pub(crate) fn main() {
    let plan = Plan {
        in_flight: usize::try_from(argument(1, 1)).expect("few"),
        sessions: usize::try_from(argument(2, 4)).expect("few"),
        count: argument(3, 100_000),
    };
    let ends = ends();
    let counted = match (argument(0, 32), std::env::args().nth(5).as_deref()) {
        (8, None) => run::<Shm, Shm, 8, false>(&plan, ends),
        (32, None) => run::<Shm, Shm, 32, false>(&plan, ends),
        (32, Some("deadline")) => run::<Shm, Shm, 32, true>(&plan, ends),
        (56, None) => run::<Shm, Shm, 56, false>(&plan, ends),
        (200, None) => run::<Shm, Shm, 200, false>(&plan, ends),
        (1000, None) => run::<Shm, Shm, 1000, false>(&plan, ends),
        other => panic!("{other:?}: not one of the lengths 8, 32, 56, 200 and 1000"),
    };
    println!("{counted}");
}

/// Two ends of a channel, as two processes would have them.
fn ends() -> (End<Shm>, End<Shm>) {
    let [mut near, mut far] =
        [(); 2].map(|()| Shm::open(Options::default()).expect("shared memory"));
    let infos = [1, 2].map(|uid| PeerInfo::of_this_host(EndpointUid([uid; 16])));
    let met = meet::<Shm>([&mut near, &mut far], &infos);
    let [to_far, to_near] = met.expect("the ends fit each other");
    ((near, to_far), (far, to_near))
}
