//! Any bytes as steps in the life of two endpoints: calls, packets, faults, clocks. What must hold
//! stands in `dunlin_core::check`, which the property test of the core crate shares.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    dunlin_core::check::endpoint(bytes);
});
