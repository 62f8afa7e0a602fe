//! The program of `cargo xtask budget`, built as a user builds one: in a package outside the
//! workspace that depends on `dunlin` by path and uses cargo's default release profile. Its source
//! is an example of `dunlin-transport`, which the workspace also builds with its own profile, so
//! the two builds differ only in the profile. `xtask/src/budget/builds.rs` makes both.

// The program uses only the crates below the face, but a user's program also links the face.
use dunlin as _;

#[path = "../../../crates/transport/examples/shm_rpc.rs"]
mod shm_rpc;

fn main() {
    shm_rpc::main();
}
