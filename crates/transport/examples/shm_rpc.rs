//! RPCs between two endpoints over shared memory, in one thread and with a clock that only counts,
//! so that every run executes the same instructions. `cargo xtask budget` runs it under callgrind
//! and compares it with `budget.toml`; `xtask/outside` builds it as a program outside the
//! workspace.
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

use dunlin_transport::connect::{Connect, EndpointUid, PeerInfo};
use dunlin_transport::shm::{Options, Shm};

use rpc::{End, Plan, run};

pub(crate) fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let number = |at: usize, default: u64| {
        let text = args.get(at);
        text.map_or(default, |text| text.parse().expect("a number"))
    };
    let plan = Plan {
        in_flight: usize::try_from(number(1, 1)).expect("few"),
        sessions: usize::try_from(number(2, 4)).expect("few"),
        count: number(3, 100_000),
    };
    let ends = ends();
    let counted = match (number(0, 32), args.get(4).map(String::as_str)) {
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

/// Two ends of a channel, like those of two processes.
fn ends() -> (End<Shm>, End<Shm>) {
    let open = || Shm::open(Options::default()).expect("shared memory");
    let (mut a, mut b) = (open(), open());
    let info = |uid| PeerInfo {
        endpoint: EndpointUid([uid; 16]),
        same_host: true,
        same_process: false,
        proves: true,
        local: None,
        remote: None,
    };
    let (pending, offer) = Shm::offer(&mut a.rx, &mut a.tx, &info(2)).expect("a new endpoint");
    let (to_a, answer) = Shm::accept(&mut b.rx, &mut b.tx, &info(1), offer).expect("a good offer");
    let to_b = Shm::complete(&mut a.rx, &mut a.tx, pending, answer).expect("a good answer");
    ((a, to_b), (b, to_a))
}
