//! Passes offers over a UNIX socket, as the nexus does, in a few lines.

use std::io::{Read, Write};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::net::UnixStream;

use dunlin_transport::connect::{MAX_OFFER_FDS, Offer};

/// Room for the descriptors and the header in front of them, aligned as the kernel wants it.
#[repr(C, align(8))]
struct Control([u8; 64]);

/// Sends an offer: one message with the lengths and the descriptors, then the bytes.
pub(crate) fn send(socket: &mut UnixStream, offer: &Offer) {
    let raw: Vec<RawFd> = offer.fds.iter().map(AsRawFd::as_raw_fd).collect();
    let mut head = [
        u8::try_from(offer.bytes.len()).unwrap(),
        u8::try_from(raw.len()).unwrap(),
    ];
    let bytes = size_of_val(raw.as_slice());
    let mut control = Control([0; 64]);
    let mut piece = libc::iovec {
        iov_base: head.as_mut_ptr().cast(),
        iov_len: head.len(),
    };
    // SAFETY: the message points to locals that outlive the call, and the control buffer has room
    // for `MAX_OFFER_FDS` descriptors.
    unsafe {
        let mut message: libc::msghdr = std::mem::zeroed();
        message.msg_iov = &raw mut piece;
        message.msg_iovlen = 1;
        if !raw.is_empty() {
            let len = u32::try_from(bytes).unwrap();
            message.msg_control = control.0.as_mut_ptr().cast();
            message.msg_controllen = libc::CMSG_SPACE(len) as usize;
            let header = libc::CMSG_FIRSTHDR(&raw const message);
            (*header).cmsg_level = libc::SOL_SOCKET;
            (*header).cmsg_type = libc::SCM_RIGHTS;
            (*header).cmsg_len = libc::CMSG_LEN(len) as usize;
            let data = libc::CMSG_DATA(header);
            data.copy_from_nonoverlapping(raw.as_ptr().cast(), bytes);
        }
        assert_eq!(libc::sendmsg(socket.as_raw_fd(), &raw const message, 0), 2);
    }
    socket.write_all(&offer.bytes).unwrap();
}

/// Receives an offer.
pub(crate) fn receive(socket: &mut UnixStream) -> Offer {
    let mut head = [0_u8; 2];
    let mut control = Control([0; 64]);
    let mut piece = libc::iovec {
        iov_base: head.as_mut_ptr().cast(),
        iov_len: head.len(),
    };
    let mut raw = [-1; MAX_OFFER_FDS];
    // SAFETY: as for sending; what the kernel puts into the control buffer is one header and as
    // many descriptors as the head says.
    let fds = unsafe {
        let mut message: libc::msghdr = std::mem::zeroed();
        message.msg_iov = &raw mut piece;
        message.msg_iovlen = 1;
        message.msg_control = control.0.as_mut_ptr().cast();
        message.msg_controllen = control.0.len();
        let flags = libc::MSG_CMSG_CLOEXEC | libc::MSG_WAITALL;
        assert_eq!(
            libc::recvmsg(socket.as_raw_fd(), &raw mut message, flags),
            2
        );
        let count = usize::from(head[1]);
        if count > 0 {
            let header = libc::CMSG_FIRSTHDR(&raw const message);
            let data: *const RawFd = libc::CMSG_DATA(header).cast();
            data.copy_to_nonoverlapping(raw.as_mut_ptr(), count);
        }
        raw[..count]
            .iter()
            .map(|&fd| OwnedFd::from_raw_fd(fd))
            .collect()
    };
    let mut bytes = vec![0; usize::from(head[0])];
    socket.read_exact(&mut bytes).unwrap();
    Offer { bytes, fds }
}
