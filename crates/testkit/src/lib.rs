//! Endpoints in one thread with a clock, a network and workers that a test moves, for integration
//! tests and fuzz targets; and small tools for every test, such as addresses and directories.
//!
//! | module | what it owns |
//! |---|---|
//! | [`clock`], [`workers`] | time and background jobs that a test moves |
//! | [`session`], [`packet`] | sessions without a control plane; bytes of packets |
//! | [`wire`], [`pair`] | two endpoints, and frames between them that a test can take and change |
//! | [`corpus`] | the inputs with which fuzz targets begin |
//! | [`forger`] | packets of an attacker that knows a token |
//! | [`stranger`] | an attacker at the control port, without a nexus |
//! | [`life`] | two endpoints under random steps, and checkers of everything that they promise |
//! | [`allocations`], [`counting`] | proofs that nothing allocates, over any transport |
//! | [`instructions`] | the clock and the turns of programs whose instructions are counted |
//! | [`linear`] | whether some order explains a history of operations |
//! | [`histories`] | histories as files, for a checker in another language |
//! | [`random`], [`seeds`] | numbers from a seed; runs of many seeds |
//! | [`address`] | loopback addresses that no other test uses |
//! | [`child`], [`wait`] | the program of a test in its own process; waits for other processes |
//! | [`network`] | two network namespaces of the kernel, with a link between them |
//! | [`descriptors`] | as many open files as a test needs |
//! | [`folder`] | a folder for files, which is removed after its test |
//! | [`user`] | a thread whose sockets belong to another user |
//!
//! Invariant: nothing but [`wait`], [`child`] and [`clock::WallClock`] reads the machine's clock,
//! and all random numbers come from seeds that the caller gives.

pub mod address;
pub mod allocations;
pub mod child;
pub mod clock;
pub mod corpus;
pub mod counting;
pub mod descriptors;
pub mod folder;
pub mod forger;
pub mod histories;
pub mod instructions;
pub mod life;
pub mod linear;
pub mod network;
pub mod packet;
pub mod pair;
pub mod random;
pub mod seeds;
pub mod session;
pub mod stranger;
pub mod user;
pub mod wait;
pub mod wire;
pub mod workers;

/// Prints why a test does not run here. Fails if every test must run.
///
/// # Panics
/// If `DUNLIN_NO_SKIP` is 1.
pub fn skip(why: &str) {
    let allowed = std::env::var_os("DUNLIN_NO_SKIP").is_none_or(|value| value != "1");
    assert!(allowed, "DUNLIN_NO_SKIP is set, and: {why}");
    println!("skipped: {why}");
}
