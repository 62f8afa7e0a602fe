//! Two devices of net_ring, each of which receives what the other sends. The command line of DPDK
//! makes only devices that receive their own packets, so this calls the driver (`rte_eth_ring.h`).

use std::ffi::{CStr, c_char, c_int, c_uint, c_void};

/// The names of the libraries of DPDK 22.11, which DPDK has loaded.
const RINGS: &CStr = c"librte_ring.so.23";
const DRIVER: &CStr = c"librte_net_ring.so.23";

/// Entries of a ring, and the NUMA node of its memory: any.
const ENTRIES: c_uint = 1024;
const ANY_NODE: c_int = -1;

type CreateRing = unsafe extern "C" fn(*const c_char, c_uint, c_int, c_uint) -> *mut c_void;
type MakeDevice = unsafe extern "C" fn(
    *const c_char,
    *const *mut c_void,
    c_uint,
    *const *mut c_void,
    c_uint,
    c_uint,
) -> c_int;

/// Makes both devices, and returns their names. DPDK must run.
pub(crate) fn devices() -> [String; 2] {
    // SAFETY: DPDK declares these functions with these types.
    let (create, make) = unsafe {
        (
            std::mem::transmute::<*mut c_void, CreateRing>(symbol(RINGS, c"rte_ring_create")),
            std::mem::transmute::<*mut c_void, MakeDevice>(symbol(DRIVER, c"rte_eth_from_rings")),
        )
    };
    let ring = |name: &CStr| {
        // SAFETY: a string and numbers.
        let ring = unsafe { create(name.as_ptr(), ENTRIES, ANY_NODE, 0) };
        assert!(!ring.is_null(), "there is memory for a ring");
        ring
    };
    let (there, back) = (ring(c"there"), ring(c"back"));
    for (name, rx, tx) in [(c"near", back, there), (c"far", there, back)] {
        // SAFETY: a string, and two lists of one live ring each.
        let port = unsafe { make(name.as_ptr(), &raw const rx, 1, &raw const tx, 1, 0) };
        assert!(port >= 0, "the driver makes a device");
    }
    ["near", "far"].map(|name| format!("net_ring_{name}"))
}

fn symbol(library: &CStr, name: &CStr) -> *mut c_void {
    let flags = libc::RTLD_NOW | libc::RTLD_NOLOAD;
    // SAFETY: a string; the library is already loaded, and stays loaded.
    let handle = unsafe { libc::dlopen(library.as_ptr(), flags) };
    assert!(!handle.is_null(), "DPDK 22.11 has loaded {library:?}");
    // SAFETY: a live library and a string.
    let at = unsafe { libc::dlsym(handle, name.as_ptr()) };
    assert!(!at.is_null(), "the library has {name:?}");
    at
}
