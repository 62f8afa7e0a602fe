//! No code: `tests/services` has the tests of the key-value service, the sequencer and the ordered
//! index over real transports. They are in their own crate because they wait more than they
//! compute, and their endpoints compile in a quarter of the time without optimization. Cargo
//! chooses the optimization for a whole package, and the histories of these services, which run in
//! the simulator, need it (`docs/decisions/weight.md`).
