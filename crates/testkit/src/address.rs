//! Loopback addresses that only one test uses. On 127.0.0.1, another process may take a port
//! between the search for a free port and its use.

use std::net::TcpListener;
use std::sync::atomic::{AtomicU8, Ordering};

/// A loopback address that only this caller uses, with any port.
///
/// # Panics
/// After 255 calls in a process.
pub fn own_host() -> String {
    static HOSTS: AtomicU8 = AtomicU8::new(1);
    let [.., high, low] = std::process::id().to_be_bytes();
    let host = HOSTS.fetch_add(1, Ordering::Relaxed);
    assert_ne!(host, 0, "there is another address");
    // Addresses with a 0 here, such as 127.0.0.1, are in everyday use.
    format!("127.{}.{low}.{host}:0", high.max(1))
}

/// A `host:port` at which no server listens until the caller starts one.
///
/// # Panics
/// If the system has no port left.
pub fn free_port() -> String {
    let free = TcpListener::bind(own_host()).expect("a port is free");
    let address = free.local_addr().expect("it is bound");
    address.to_string()
}
