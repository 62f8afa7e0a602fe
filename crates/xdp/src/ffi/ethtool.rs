//! Commands of `ethtool` (`SIOCETHTOOL`, `netdevice(7)`), with which a driver is asked about a
//! device.

use std::io;
use std::os::fd::AsRawFd;

use libc::c_char;

/// The request in which the kernel finds the name of the interface and the command
/// (`struct ifreq`).
#[repr(C)]
struct Request {
    name: [c_char; libc::IF_NAMESIZE],
    command: *mut u8,
    /// The rest of the kernel's union.
    rest: [u8; 16],
}

/// Gives a command to the driver of the interface with this number in the calling thread's network
/// namespace. The answer replaces the command.
///
/// # Safety
/// `command` is as long as the kernel reads and writes for the command that it begins with.
///
/// # Errors
/// The driver's; `Unsupported` if it does not know the command.
pub(crate) unsafe fn ask(index: u32, command: &mut [u8]) -> io::Result<()> {
    let mut request = Request {
        name: [0; libc::IF_NAMESIZE],
        command: command.as_mut_ptr(),
        rest: [0; 16],
    };
    // SAFETY: the room has the length that the function needs.
    let found = unsafe { libc::if_indextoname(index, request.name.as_mut_ptr()) };
    if found.is_null() {
        return Err(io::Error::last_os_error());
    }
    let socket = super::socket(libc::AF_INET, libc::SOCK_DGRAM, 0)?;
    // SAFETY: a live request, whose command has the length for which the caller vouches.
    super::check(unsafe { libc::ioctl(socket.as_raw_fd(), libc::SIOCETHTOOL, &raw mut request) })
}
