//! A program that an operator detaches. Needs root.

use std::os::fd::AsRawFd;
use std::sync::Arc;

use dunlin_testkit::network::Network;

use super::*;
use crate::ffi::maps::pair;
use crate::sharing::Offer;

/// Detaches the program, as `bpftool link detach` does.
fn detach(steering: &Steering) {
    const LINK_DETACH: libc::c_int = 34;
    let link = steering.link().unwrap();
    let mut attributes = [pair(link.as_raw_fd().cast_unsigned(), 0)];
    // SAFETY: the command reads numbers alone.
    unsafe { ffi::bpf(LINK_DETACH, &mut attributes) }.unwrap();
}

#[test]
fn owners_of_a_detached_program_share_a_new_link() {
    let Some(network) = Network::new() else {
        return;
    };
    network.left.run(|| {
        let index = ffi::interface_index(c"link0").unwrap();
        let mode = Mode::Generic;
        let first = Arc::new(Steering::load().unwrap());
        first.attach(index, mode).unwrap();
        let offer = Offer::make(index, mode, &first).unwrap();
        let (second, _) = sharing::adopt(index, Instant::now() + PATIENCE).unwrap();
        let second = Arc::new(second);
        assert!(first.is_attached(index) && second.is_attached(index));
        detach(&first);
        assert!(!first.is_attached(index) && !second.is_attached(index));
        attach_again(&first, index, mode).unwrap();
        assert!(first.is_attached(index) && !second.is_attached(index));
        attach_again(&second, index, mode).unwrap();
        assert!(second.is_attached(index));
        // A new process attaches the offered program again, and others find that one first.
        detach(&first);
        let third = Arc::new(adopt_or_attach(index, mode).unwrap());
        assert!(third.is_attached(index) && !first.is_attached(index));
        let offers = [&third, &second].map(|it| Offer::make(index, mode, it).unwrap());
        for owner in [&first, &second] {
            attach_again(owner, index, mode).unwrap();
            assert!(owner.is_attached(index));
        }
        // The other owners end, and the program stays.
        drop((offer, offers, first, third));
        assert_eq!(network.left.xdp_programs(), 1);
        detach(&second);
        // The process finds its own offer, of the detached program. It must not take that for
        // another process that has attached the program.
        let _offer = Offer::make(index, mode, &second).unwrap();
        let stranger = Steering::load().unwrap();
        stranger.attach(index, mode).unwrap();
        let refused = attach_again(&second, index, mode).unwrap_err();
        assert_eq!(refused.kind(), io::ErrorKind::ResourceBusy, "{refused}");
    });
}
