//! A kernel that gives back frames that it does not have, and pieces that do not lie within a
//! frame.

use super::*;

fn part() -> Part {
    Umem::new(MIN_FRAMES).unwrap().split(1).0.shared()
}

/// Plays a kernel that writes to a frame.
fn write(part: &Part, addr: u64, bytes: &[u8]) {
    let addr = usize::try_from(addr).unwrap();
    assert!(addr + bytes.len() <= part.region_bytes());
    // SAFETY: within the region; nothing shows the place.
    unsafe {
        let to = part.ledger.umem.base().add(addr);
        std::ptr::copy_nonoverlapping(bytes.as_ptr(), to, bytes.len());
    }
}

fn desc(addr: u64, len: u32) -> Desc {
    Desc {
        addr,
        len,
        options: 0,
    }
}

/// Takes a frame back with its bytes.
fn take(part: &mut Part, desc: Desc) -> Result<Piece, Bad> {
    let frame = part.take_back(desc.addr)?;
    Part::piece(frame, desc)
}

#[test]
fn a_frame_goes_to_the_kernel_and_back_with_its_bytes() {
    let mut part = part();
    let addr = part.lend(3).unwrap();
    assert_eq!(addr, 3 * FRAME as u64);
    write(&part, addr + 100, b"hello");
    let piece = take(&mut part, desc(addr + 100, 5)).unwrap();
    assert_eq!(part.bytes(piece), b"hello");
    assert_eq!(part.bytes(piece.part(1, 3)), b"ell");
    assert_eq!(part.bytes(piece.part(4, 9)), b"o");
    assert_eq!(part.bytes(piece.part(9, 9)), b"");
}

#[test]
fn both_halves_share_no_frame() {
    let (receiving, sending) = Umem::new(MIN_FRAMES).unwrap().split(1);
    let (mut part, mut supply) = (receiving.shared(), sending[0].own());
    let lend = |frame| part.lend(frame).unwrap();
    let received: Vec<u64> = (0..receiving.count()).map(lend).collect();
    let sent: Vec<u64> = supply.rooms().map(|(addr, _)| addr).collect();
    supply.lend(sent.len());
    for addr in received {
        assert!(!supply.take_back(|back| back.take(addr)));
        assert!(part.take_back(addr).is_ok());
    }
    for addr in sent {
        assert_eq!(part.take_back(addr), Err(Bad::Outside));
        assert!(supply.take_back(|back| back.take(addr)));
    }
}

#[test]
fn addresses_outside_of_the_region_are_refused() {
    let mut part = part();
    for addr in [
        u64::MAX,
        1 << 32,
        u64::from(MIN_FRAMES) * FRAME as u64,
        u64::MAX << 12,
    ] {
        assert_eq!(part.take_back(addr), Err(Bad::Outside), "{addr:#x}");
    }
}

#[test]
fn a_piece_beyond_its_frame_is_refused_and_the_frame_is_ours() {
    let mut part = part();
    for (at, len) in [(0, 4097), (4095, 2), (1, u32::MAX), (256, 4096)] {
        let addr = part.lend(0).unwrap();
        assert_eq!(take(&mut part, desc(addr + at, len)), Err(Bad::Length));
    }
    let addr = part.lend(0).unwrap();
    assert!(take(&mut part, desc(addr + 256, 3840)).is_ok());
}

#[test]
fn a_frame_comes_back_once_and_is_lent_once() {
    let mut part = part();
    assert_eq!(part.take_back(0), Err(Bad::NotLent));
    let addr = part.lend(0).unwrap();
    assert_eq!(part.lend(0), None);
    assert_eq!(part.take_back(addr + 17), Ok(0));
    assert_eq!(part.take_back(addr), Err(Bad::NotLent));
    assert_eq!(part.lend(MIN_FRAMES), None, "no such frame");
}

#[test]
#[should_panic(expected = "the kernel has this frame")]
fn a_frame_that_the_kernel_has_is_not_read() {
    let mut part = part();
    let piece = Piece {
        frame: 0,
        at: 0,
        len: 1,
    };
    assert_eq!(part.bytes(piece), [0]);
    part.lend(0).unwrap();
    part.bytes(piece);
}

#[test]
fn a_shared_frame_belongs_to_the_endpoint_that_takes_it_back() {
    let (receiving, shares) = Umem::new(MIN_FRAMES).unwrap().split(4);
    let (mut one, mut other) = (receiving.shared(), receiving.shared());
    let addr = one.lend(5).unwrap();
    assert_eq!(other.lend(5), None);
    let piece = take(&mut other, desc(addr + 7, 3)).unwrap();
    assert_eq!(other.bytes(piece), [0; 3]);
    assert_eq!(one.take_back(addr), Err(Bad::NotLent));
    assert_eq!(one.kept().len(), MIN_FRAMES as usize / 2);
    let starts: Vec<u64> = shares.iter().map(Ledger::start).collect();
    let share = u64::from(MIN_FRAMES / 8) * FRAME as u64;
    assert_eq!(starts, [4, 5, 6, 7].map(|number| number * share));
}

#[test]
fn a_region_of_too_few_frames_is_refused() {
    assert!(Umem::new(MIN_FRAMES - 1).is_err());
    assert!(Umem::new(MAX_FRAMES + 1).is_err());
}
