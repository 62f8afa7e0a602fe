//! The program of `cargo xtask budget` built as a user builds one: a package outside the workspace
//! that depends on `dunlin` by path and uses cargo's default release profile. Its source is the
//! example of `dunlin-transport` that the workspace builds with its own profile, so the two differ
//! only in the profile. `xtask/src/budget/builds.rs` builds both.

// The program only uses the crates below the face; a user's program links the face as well.
use dunlin as _;

#[path = "../../../crates/transport/examples/shm_rpc.rs"]
mod shm_rpc;

fn main() {
    shm_rpc::main();
}
