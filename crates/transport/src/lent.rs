//! The bytes of a packet that an endpoint has lent to its transport, for transports that copy them
//! immediately: `udp`, `dunlin-xdp` and `dunlin-dpdk`.

use dunlin_msgbuf::{BufRef, regions};

/// The data bytes of a packet; `None` if the msgbuf was revoked.
///
/// ```
/// use dunlin_msgbuf::{BufRef, Pool, PoolConfig};
/// use dunlin_transport::lent::data_of;
/// let mut pool = Pool::new(PoolConfig::default()).unwrap();
/// let mut buf = pool.alloc(5).unwrap();
/// buf.fill(b"hello").unwrap();
/// let lent = buf.lend();
/// // SAFETY: this thread owns the msgbuf, and does not change it while the bytes are in use.
/// unsafe {
///     assert_eq!(data_of(lent), Some(&b"hello"[..]));
///     assert_eq!(data_of(BufRef::EMPTY), Some(&[][..]));
///     buf.revoke();
///     assert_eq!(data_of(lent), None);
/// }
/// ```
///
/// # Safety
/// The caller sends for the endpoint that owns the msgbuf, and uses the bytes only until the
/// endpoint learns from `done` that it may change them.
#[inline]
pub unsafe fn data_of<'a>(data: BufRef) -> Option<&'a [u8]> {
    if data.is_empty() {
        return Some(&[]);
    }
    // SAFETY: the region lives at least as long as the endpoint that owns its msgbuf.
    let at = unsafe { regions::resolve(data) }?;
    // SAFETY: `resolve` vouches for `data.len()` readable bytes until the msgbuf is revoked, and
    // the caller promises not to use them for longer.
    Some(unsafe { std::slice::from_raw_parts(at.as_ptr(), data.len()) })
}
