//! Puts any bytes into a shared-memory ring, its consumer's line and a doorbell, between the steps
//! of both ends. The properties are in `dunlin_transport::shm::check`; the property tests of the
//! transport crate check them too.
#![no_main]

libfuzzer_sys::fuzz_target!(|program: &[u8]| {
    dunlin_transport::shm::check::ring(program);
});
