//! Completions under a kernel that is honest, and one that is not.

use std::sync::Arc;

use crate::tests::model::{Kernel, Modelled, model};
use crate::transmit::frames::Frames;
use crate::umem::MIN_FRAMES;
use dunlin_packet::Header;
use dunlin_packet::check::{homes, peer_of};

/// Shares of the region, and frames of each share.
const SHARES: u32 = 4;
const SHARE: usize = MIN_FRAMES as usize / 2 / SHARES as usize;

fn header() -> Header {
    let to = homes()[0];
    Header::new(&to, peer_of(&to), [2, 0, 0, 0, 0, 9])
}

/// Two endpoints at one queue, each with its own transmit ring. The kernel completes their frames
/// in the ring that both share.
fn two() -> ([Frames; 2], Arc<Kernel>) {
    let Modelled {
        rings,
        shared,
        sending,
        kernel,
        ..
    } = model(SHARES);
    let other = crate::tests::model::transmit_ring(&kernel);
    let frames = |share: usize, tx| {
        let supply = sending[share].own();
        Frames::new(supply, share, tx, shared.clone(), kernel.clone())
    };
    ([frames(1, rings.tx), frames(3, other)], kernel)
}

/// Sends datagrams until no frame is free. Returns their number.
fn send_all(frames: &mut Frames) -> usize {
    let header = header();
    let mut count = 0;
    while let Some(mut open) = frames.open(&header) {
        assert!(frames.append(&mut open, b"a packet", &[]));
        assert!(frames.close(&open, &header.stamp(open.payload())));
        count += 1;
    }
    count
}

#[test]
fn completions_reach_the_endpoint_whose_frames_they_are() {
    let ([mut one, mut other], kernel) = two();
    for _ in 0..3 {
        assert_eq!(send_all(&mut one), SHARE);
        assert_eq!(send_all(&mut other), SHARE);
        kernel.complete();
        // `one` reads the ring, and the frames of `other` wait in its inbox.
        assert_eq!(send_all(&mut one), SHARE);
        assert_eq!(send_all(&mut other), SHARE);
        kernel.complete();
    }
    assert_eq!([one.met().bad, other.met().bad], [0, 0]);
}

#[test]
fn an_endpoint_that_stopped_costs_the_others_nothing() {
    let ([mut one, mut stopped], kernel) = two();
    assert_eq!(send_all(&mut stopped), SHARE);
    for _ in 0..20 {
        kernel.complete();
        assert_eq!(send_all(&mut one), SHARE);
    }
    // The stopped endpoint goes on with all of its frames.
    assert_eq!(send_all(&mut stopped), SHARE);
    assert_eq!([one.met().bad, stopped.met().bad], [0, 0]);
}

#[test]
fn an_inbox_does_not_grow_when_the_kernel_repeats_itself() {
    let ([mut one, mut other], kernel) = two();
    send_all(&mut other);
    let addr = kernel.ends().uncompleted[0];
    for _ in 0..10 {
        for _ in 0..MIN_FRAMES / 2 {
            kernel.lie_about_completion(addr);
        }
        send_all(&mut one);
    }
    // The first entry was right; both endpoints count some of the others.
    assert_eq!(send_all(&mut other), 1);
    assert!(one.met().bad > 0 && other.met().bad > 0);
    assert!(other.met().bad <= SHARE as u64);
}
