//! Reads any bytes as the stream of a memcached client, split at any places, with one partition or
//! several and with users or without, and as errands of another thread. The properties are in
//! `dunlin_memcached::check`; the property tests of that crate check them too.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    dunlin_memcached::check::any_cut(bytes);
    dunlin_memcached::check::any_login(bytes);
    dunlin_memcached::check::any_errands(bytes);
});
