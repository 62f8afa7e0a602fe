//! Gives up the privileges that the daemon of `setup` does not need (`capabilities(7)`).

use std::io;

use libc::{c_int, c_ulong};

/// `CAP_NET_ADMIN`, `CAP_NET_RAW`, `CAP_IPC_LOCK` and `CAP_BPF`.
const KEPT: [u32; 4] = [12, 13, 14, 39];
/// `CAP_SETPCAP`, with which a process may lower its bounding set.
const SETPCAP: u32 = 8;
/// More capabilities than any kernel has.
const MOST: u32 = 64;
/// The version of the interface, whose sets have 64 bits in two halves.
const VERSION: u32 = 0x2008_0522;

/// Lower and upper halves of the effective, permitted and inheritable sets.
type Sets = [[u32; 3]; 2];

/// Keeps the capabilities of the calling thread that AF_XDP needs, and gives up all others for
/// ever. A thread of root becomes one of `user`, with the group of the same number and no other, so
/// that it may not open the files of root. Threads that it starts later have no more privileges
/// than it has.
///
/// # Errors
/// The kernel's.
pub(crate) fn keep_those_of_xdp(user: u32) -> io::Result<()> {
    let mut sets = Sets::default();
    capability_call(libc::SYS_capget, &mut sets)?;
    if has(&sets, SETPCAP) {
        let given_up = (0..MOST).filter(|bit| !KEPT.contains(bit));
        for bit in given_up {
            // The kernel refuses numbers that it does not know; there is nothing to give up.
            let _ = control(libc::PR_CAPBSET_DROP, c_ulong::from(bit));
        }
    }
    control(libc::PR_SET_NO_NEW_PRIVS, 1)?;
    if super::descriptors::user() == 0 {
        // The permitted set stays; the effective one is empty until it is set below.
        control(libc::PR_SET_KEEPCAPS, 1)?;
        become_user(user)?;
        control(libc::PR_SET_KEEPCAPS, 0)?;
    }
    for (half, [effective, permitted, inheritable]) in sets.iter_mut().enumerate() {
        *permitted &= mask(half);
        *effective = *permitted;
        *inheritable = 0;
    }
    capability_call(libc::SYS_capset, &mut sets)
}

/// Changes the calling thread's user to this one, and its groups to the group of the same number.
/// The calls of the C library would change all threads, also those of programs that only call this
/// crate.
fn become_user(user: u32) -> io::Result<()> {
    for (call, numbers) in [
        // No groups: their number, and no list.
        (libc::SYS_setgroups, [0, 0, 0]),
        (libc::SYS_setresgid, [user; 3]),
        (libc::SYS_setresuid, [user; 3]),
    ] {
        let [a, b, c] = numbers.map(u64::from);
        // SAFETY: the calls take numbers, or a null pointer to an empty list.
        let rc = unsafe { libc::syscall(call, a, b, c) };
        super::check(c_int::try_from(rc).unwrap_or(-1))?;
    }
    Ok(())
}

/// The kept capabilities with numbers from 32 times `half` on.
fn mask(half: usize) -> u32 {
    let bits = KEPT.iter().filter(|bit| **bit as usize / 32 == half);
    bits.fold(0, |mask, bit| mask | 1 << (bit % 32))
}

fn has(sets: &Sets, bit: u32) -> bool {
    sets[bit as usize / 32][0] >> (bit % 32) & 1 != 0
}

/// `capget(2)` or `capset(2)` of the calling thread.
fn capability_call(call: libc::c_long, sets: &mut Sets) -> io::Result<()> {
    let mut header = [VERSION, 0];
    // SAFETY: this version of both calls reads the header and reads or writes both halves, which
    // are live. The kernel may write its version into the header.
    let rc = unsafe { libc::syscall(call, header.as_mut_ptr(), sets.as_mut_ptr()) };
    super::check(c_int::try_from(rc).unwrap_or(-1))
}

/// `prctl(2)` with one number.
fn control(option: c_int, value: c_ulong) -> io::Result<()> {
    let zero: c_ulong = 0;
    // SAFETY: these options take numbers.
    super::check(unsafe { libc::prctl(option, value, zero, zero, zero) })
}

#[cfg(test)]
mod tests;
