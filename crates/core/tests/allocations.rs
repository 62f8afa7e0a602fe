//! An endpoint allocates no memory for an RPC once it is set up, whatever the RPC's fate. This test
//! uses a transport in memory; the tests of `dunlin-transport` do the same over shared memory.

use dunlin_testkit::allocations::{Memory, World};
use dunlin_testkit::counting::Counting;

#[global_allocator]
static ALLOCATOR: Counting = Counting;

fn world(sessions: usize) -> World<Memory> {
    World::new(Memory::pair(), [Memory::PEER; 2], sessions)
}

dunlin_testkit::prove_every_kind!(world);
