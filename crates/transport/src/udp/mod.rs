//! The `udp` transport: kernel UDP, which works everywhere (design §12).
//!
//! There is one non-blocking socket per endpoint, tied to the only peer while there is just one
//! (`tie`). When sending, packets to one peer share datagrams, datagrams share messages (`pack`),
//! and a burst is one system call (`tx`). When receiving, the half takes datagrams one by one while
//! there are few and in batches while there are many (`rx`). Small packets are copied once into a
//! staging buffer; the kernel gathers large ones from their msgbufs. Transmission is synchronous:
//! when `burst` returns, the kernel has its copy.
//!
//! The sender's address is ignored: it is easily forged, and core checks the token in each packet.
//! A stranger's datagram becomes a frame like any other, unless the socket is tied.
//!
//! Nothing here blocks, spins or allocates on the data path. Packets that cannot be sent are
//! dropped and counted. The transport also works without GSO and GRO; when an endpoint is opened,
//! it checks whether the kernel supports them.

mod addr;
mod block;
mod book;
mod buffers;
mod cmsg;
mod connect;
mod ffi;
mod messages;
mod offer;
mod options;
mod pack;
mod peers;
mod rx;
mod socket;
mod tie;
mod tx;

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use dunlin_core::transport::{Halves, Limits, MAX_INLINE, Transport};

pub use self::book::Book;
pub use self::options::{Ecn, MAX_DATAGRAM_BYTES, MIN_DATAGRAM_BYTES, Options, WINDOWS_BUFFERED};
pub use self::peers::{Reach, is_same, place_of};
pub use self::rx::UdpRx;
use self::socket::Socket;
pub use self::tx::UdpTx;

/// The most bytes in a packet apart from its data.
#[expect(clippy::cast_possible_truncation, reason = "56 bytes")]
const MAX_FRAMING: u32 = MAX_INLINE as u32;

/// Bytes before the data of a full packet.
#[expect(clippy::cast_possible_truncation, reason = "24 bytes")]
const HEADER_BYTES: u32 = dunlin_wire::HEADER_LEN as u32;

/// Kernel UDP as a transport.
#[derive(Clone, Copy, Debug)]
pub struct Udp;

impl Transport for Udp {
    type Rx = UdpRx;
    type Tx = UdpTx;
}

impl Udp {
    /// Opens an endpoint.
    ///
    /// # Errors
    /// `InvalidInput` for options outside their limits; otherwise the kernel's error when opening
    /// or binding the socket.
    pub fn open(options: &Options) -> io::Result<Halves<UdpRx, UdpTx>> {
        let socket = Arc::new(Socket::open(options)?);
        let limits = Limits {
            data_size: socket.largest,
            rx_queue: socket.rx_queue,
            line_rate: options.line_rate,
        };
        let packet = limits.data_size + MAX_FRAMING;
        let rx = UdpRx::new(Arc::clone(&socket), packet.max(socket.datagram));
        let tx = UdpTx::new(socket, options);
        Ok(Halves { rx, tx, limits })
    }
}

impl UdpRx {
    /// Address to which the socket is bound.
    pub fn local_addr(&self) -> SocketAddr {
        self.socket().bound
    }
}
