//! No memory is allocated for an RPC once the endpoint is set up, whatever becomes of it (design
//! §5): each kind of call runs until everything has grown as far as it grows, and then 10 000
//! times more while the allocator counts. This is over a transport in memory; the tests of
//! `dunlin-transport` do the same over shared memory.

mod counting;
mod kinds;
mod lossy;
mod memory;
mod proof;
mod world;

use memory::{Memory, PEER};
use world::World;

#[global_allocator]
static ALLOCATOR: counting::Counting = counting::Counting;

fn world(sessions: usize) -> World<Memory> {
    World::new(memory::pair(), [PEER; 2], sessions)
}

proof::every_kind!();
