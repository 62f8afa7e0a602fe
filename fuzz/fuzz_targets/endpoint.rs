//! Any bytes as steps in the life of two endpoints: calls, packets, faults, clocks. What must hold
//! stands in `dunlin_testkit::life`, of which property tests run the same.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    dunlin_testkit::life::endpoint(bytes);
});
