//! A process between a client and a server of this host. It changes the client's Hello, which then
//! claims to come from the server's own process, and the server's HelloAck, which then names the
//! relay's socket. It passes on everything else unchanged, including descriptors.

use std::io::{IoSlice, IoSliceMut, Read, Write};
use std::mem::MaybeUninit;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::{AsFd, OwnedFd};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr as UnixAddr, UnixListener, UnixStream};

use dunlin_testkit::stranger::{frame, hello};
use dunlin_wire::control::{Hello, Incarnation, MAX_FRAME, Message, frame_len};
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, recvmsg, sendmsg,
};

/// Maximum number of descriptors that accompany one message.
const MAX_FDS: usize = 16;

/// The server's identity, as the server itself reports it.
#[derive(Clone, Debug)]
pub(super) struct Truth {
    incarnation: Incarnation,
    pub(super) unix_name: String,
}

/// Accepts connections at `tcp`, and passes them on to the server at this address.
pub(super) fn run(tcp: &TcpListener, server: SocketAddr) {
    let truth = ask(server);
    let name = format!("dunlin-relay-{}", std::process::id());
    let unix = UnixListener::bind_addr(&UnixAddr::from_abstract_name(&name).unwrap()).unwrap();
    let (truth, name) = (&truth, &format!("\0{name}"));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for client in unix.incoming() {
                let server = connect_unix(&truth.unix_name);
                pass(client.unwrap().into(), server.into(), truth, name);
            }
        });
        for client in tcp.incoming() {
            let server = TcpStream::connect(server).unwrap();
            pass(client.unwrap().into(), server.into(), truth, name);
        }
    });
}

/// Connects to a process at its UNIX socket, by the name that the process has announced.
pub(super) fn connect_unix(name: &str) -> UnixStream {
    let address = UnixAddr::from_abstract_name(name.trim_start_matches('\0'));
    UnixStream::connect_addr(&address.unwrap()).unwrap()
}

/// Asks a server for its incarnation and its socket's name, which it gives to every process of its
/// host and user.
pub(super) fn ask(server: SocketAddr) -> Truth {
    let mut stream = TcpStream::connect(server).unwrap();
    stream.write_all(&frame(&hello(1))).unwrap();
    let mut input = vec![0; MAX_FRAME];
    let len = stream.read(&mut input).unwrap();
    match Message::decode(&input[..len]).unwrap() {
        Message::HelloAck(Hello {
            incarnation,
            unix_name,
            ..
        }) => Truth {
            incarnation,
            unix_name: unix_name.to_owned(),
        },
        other => panic!("{other:?}"),
    }
}

/// Begins to pass messages on between two ends. It puts the server's incarnation into the client's
/// Hello, and the relay's own socket into the server's answer.
fn pass(client: OwnedFd, server: OwnedFd, truth: &Truth, name: &str) {
    let Truth { incarnation, .. } = *truth;
    let other = (server.try_clone().unwrap(), client.try_clone().unwrap());
    std::thread::spawn(move || {
        copy(&client, &server, |first| match first {
            Message::Hello(hello) => frame(&Message::Hello(Hello {
                incarnation,
                ..hello
            })),
            other => frame(&other),
        })
    });
    let name = name.to_owned();
    std::thread::spawn(move || {
        copy(&other.0, &other.1, |first| match first {
            Message::HelloAck(hello) => frame(&Message::HelloAck(Hello {
                unix_name: &name,
                ..hello
            })),
            other => frame(&other),
        })
    });
}

/// Copies bytes and descriptors until one of the ends closes. `change` rewrites the first message.
fn copy(from: &OwnedFd, to: &OwnedFd, change: impl Fn(Message<'_>) -> Vec<u8>) {
    let mut first = Some(Vec::new());
    let mut bytes = vec![0; 64 << 10];
    while let Some((len, fds)) = receive(from, &mut bytes).filter(|(len, _)| *len > 0) {
        let Some(begun) = &mut first else {
            if send(to, &bytes[..len], &fds).is_none() {
                return;
            }
            continue;
        };
        begun.extend_from_slice(&bytes[..len]);
        if let Some(end) = frame_len(begun).unwrap() {
            let message = change(Message::decode(&begun[..end]).unwrap());
            let whole = [&message[..], &begun[end..]].concat();
            if send(to, &whole, &fds).is_none() {
                return;
            }
            first = None;
        }
    }
    // The other end must notice the close, too.
    let _ = rustix::net::shutdown(to, rustix::net::Shutdown::Both);
}

fn receive(from: &OwnedFd, bytes: &mut [u8]) -> Option<(usize, Vec<OwnedFd>)> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MAX_FDS))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let mut slices = [IoSliceMut::new(bytes)];
    let got = recvmsg(from, &mut slices, &mut control, RecvFlags::empty()).ok()?;
    let mut fds = Vec::new();
    for message in control.drain() {
        if let RecvAncillaryMessage::ScmRights(rights) = message {
            fds.extend(rights);
        }
    }
    Some((got.bytes, fds))
}

fn send(to: &OwnedFd, bytes: &[u8], fds: &[OwnedFd]) -> Option<()> {
    let borrowed: Vec<_> = fds.iter().map(AsFd::as_fd).collect();
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MAX_FDS))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    if !fds.is_empty() {
        assert!(control.push(SendAncillaryMessage::ScmRights(&borrowed)));
    }
    let mut rest = bytes;
    while !rest.is_empty() {
        let sent = sendmsg(to, &[IoSlice::new(rest)], &mut control, SendFlags::NOSIGNAL).ok()?;
        rest = &rest[sent..];
        control.clear();
    }
    Some(())
}
