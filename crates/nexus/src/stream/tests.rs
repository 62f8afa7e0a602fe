//! Frames whose bytes come in arbitrary pieces, descriptors with their frames, and every limit.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;

use dunlin_wire::control::Message;

use super::*;

fn heartbeat(counter: u64) -> Vec<u8> {
    let mut out = [0; MAX_FRAME];
    let length = Message::Heartbeat { counter }.encode(&mut out).unwrap();
    out[..length].to_vec()
}

fn pair() -> (UnixStream, Stream) {
    let (theirs, ours) = UnixStream::pair().unwrap();
    ours.set_nonblocking(true).unwrap();
    (theirs, Stream::new(ours.into(), false))
}

/// All frames that can be read now.
fn frames(stream: &mut Stream) -> Result<Vec<Vec<u8>>, Broken> {
    let mut frames = Vec::new();
    while stream.read(READ_TURN, |frame, _| {
        frames.push(frame.to_vec());
        true
    })? {}
    Ok(frames)
}

#[test]
fn frames_are_found_however_their_bytes_come() {
    let (mut theirs, mut stream) = pair();
    let sent: Vec<_> = (0..50).map(heartbeat).collect();
    let bytes = sent.concat();
    for size in [1, 3, 7, 1_000] {
        let mut got = Vec::new();
        for piece in bytes.chunks(size) {
            theirs.write_all(piece).unwrap();
            got.extend(frames(&mut stream).unwrap());
        }
        assert_eq!(got, sent);
    }
}

#[test]
fn half_a_frame_waits_and_takes_no_more_than_its_bytes() {
    let (mut theirs, mut stream) = pair();
    theirs.write_all(&heartbeat(1)[..9]).unwrap();
    assert_eq!(frames(&mut stream).unwrap().len(), 0);
    assert_eq!(stream.input.len(), 9);
}

#[test]
fn an_impossible_length_is_refused_at_once() {
    let (mut theirs, mut stream) = pair();
    theirs.write_all(&[0xFF; 4]).unwrap();
    assert_eq!(frames(&mut stream), Err(Broken));
}

#[test]
fn the_end_of_the_stream_is_reported() {
    let (theirs, mut stream) = pair();
    drop(theirs);
    assert_eq!(frames(&mut stream), Err(Broken));
}

#[test]
fn a_stream_that_sends_without_end_gives_the_others_their_turn() {
    let (mut theirs, mut stream) = pair();
    theirs.set_nonblocking(true).unwrap();
    let frame = heartbeat(0).repeat(100);
    while theirs.write_all(&frame).is_ok() {}
    let mut turn = || {
        let mut found = 0;
        let read = stream.read(READ_TURN, |_, _| {
            found += 1;
            true
        });
        assert_eq!(read, Ok(true));
        found
    };
    let turns = [turn(), turn()];
    assert!(
        turns.iter().all(|found| *found > 0 && found * 14 <= 1_100),
        "{turns:?}"
    );
}

#[test]
fn descriptors_stay_with_their_frame() {
    let (theirs, mut stream) = pair();
    let fd = || theirs.as_fd().try_clone_to_owned().unwrap();
    socket::send(theirs.as_fd(), &heartbeat(1), &[fd()]).unwrap();
    socket::send(theirs.as_fd(), &heartbeat(2), &[]).unwrap();
    socket::send(theirs.as_fd(), &heartbeat(3), &[fd(), fd()]).unwrap();
    // The kernel may deliver a frame without descriptors together with the next one, but never a
    // frame before its descriptors.
    let mut expected = [1, 0, 2].into_iter();
    while expected.len() > 0 {
        let read = stream.read(READ_TURN, |_, fds| {
            fds.drain(..expected.next().unwrap());
            true
        });
        assert_eq!(
            read,
            Ok(true),
            "descriptors were left over or came too late"
        );
    }
}

#[test]
fn descriptors_that_no_message_takes_break_the_stream() {
    let (theirs, mut stream) = pair();
    let fd = theirs.as_fd().try_clone_to_owned().unwrap();
    socket::send(theirs.as_fd(), &heartbeat(1), &[fd]).unwrap();
    assert_eq!(frames(&mut stream), Err(Broken));
}

#[test]
fn output_waits_for_the_reader_and_is_bounded() {
    let (mut theirs, mut stream) = pair();
    let frame = heartbeat(1);
    let mut queued = 0;
    // The socket's own buffer fills first.
    while stream.queue(&frame, Vec::new()).is_ok() {
        stream.flush().unwrap();
        queued += 1;
        let wanted = match stream.waiting() {
            0 => Interest::Read,
            waiting if waiting <= MAX_WAITING => Interest::ReadWrite,
            _ => Interest::Write,
        };
        assert_eq!(stream.wants(MAX_WAITING), wanted);
    }
    assert!(stream.waiting() + frame.len() > MAX_QUEUED);
    assert!(
        stream.output.cost() <= 2 * MAX_QUEUED,
        "the buffer costs as much as is counted"
    );
    theirs.set_nonblocking(true).unwrap();
    let mut bytes = vec![0; 1 << 20];
    let mut got = 0;
    while got < queued * frame.len() {
        match theirs.read(&mut bytes) {
            Ok(n) => got += n,
            Err(_) => stream.flush().unwrap(),
        }
    }
    assert_eq!(got, queued * frame.len());
    assert_eq!(stream.wants(MAX_WAITING), Interest::Read);
    assert!(
        stream.output.cost() <= 4096,
        "the buffer's memory is given back"
    );
}

#[test]
fn descriptors_leave_with_their_frame_when_the_socket_was_full() {
    let (mut theirs, mut stream) = pair();
    let fd = || stream_fd(&theirs);
    let plain = heartbeat(1);
    let mut before = 0;
    while stream.waiting() < 3 * plain.len() {
        stream.queue(&plain, Vec::new()).unwrap();
        stream.flush().unwrap();
        before += plain.len();
    }
    stream.queue(&plain, vec![fd()]).unwrap();
    stream.queue(&plain, Vec::new()).unwrap();
    stream.queue(&plain, vec![fd(), fd()]).unwrap();
    theirs.set_nonblocking(true).unwrap();
    // While the stream has no room for descriptors, it reads only the bytes before them, because
    // the kernel would discard the descriptors.
    let mut bytes = vec![0; before];
    while before > 0 {
        match theirs.read(&mut bytes[..before]) {
            Ok(got) => before -= got,
            Err(_) => stream.flush().unwrap(),
        }
    }
    stream.flush().unwrap();
    let mut reader = Stream::new(theirs.into(), false);
    let mut came = Vec::new();
    while reader
        .read(READ_TURN, |_, fds| {
            came.push(fds.drain(..).count());
            true
        })
        .unwrap_or(false)
    {}
    assert_eq!(came, [1, 0, 2]);
}

fn stream_fd(stream: &UnixStream) -> OwnedFd {
    stream.as_fd().try_clone_to_owned().unwrap()
}

#[test]
fn a_receiver_can_stop_in_the_middle() {
    let (mut theirs, mut stream) = pair();
    theirs
        .write_all(&[heartbeat(1), heartbeat(2)].concat())
        .unwrap();
    let mut seen = 0;
    stream
        .read(READ_TURN, |_, _| {
            seen += 1;
            false
        })
        .unwrap();
    assert_eq!(seen, 1);
}
