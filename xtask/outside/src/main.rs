//! The program of `cargo xtask budget` as a user has it: a package outside the workspace that
//! depends on `dunlin` by path and is built with cargo's default release profile. Its source is the
//! example of `dunlin-transport` that the workspace builds with its own profile, so the two differ
//! in nothing else. `xtask/src/budget/builds.rs` builds both.

// The program names the parts alone; a user links the face as well.
use dunlin as _;

#[path = "../../../crates/transport/examples/shm_rpc.rs"]
mod shm_rpc;

fn main() {
    shm_rpc::main();
}
