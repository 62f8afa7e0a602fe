//! Any bytes in a shared-memory ring, its consumer's line and a doorbell, between the steps of both
//! ends. The properties stand in `dunlin_transport::shm::check`, which the property tests of the
//! transport crate share.
#![no_main]

libfuzzer_sys::fuzz_target!(|program: &[u8]| {
    dunlin_transport::shm::check::ring(program);
});
