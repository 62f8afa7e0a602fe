//! The `auto` transport: shared memory and UDP in one endpoint, chosen for each peer (design §12).
//! In this file, "UDP" means the [`Remote`] transport: UDP itself, or another transport that can
//! talk to peers over UDP.
//!
//! An offer has a part for each transport. The side that accepts chooses shared memory if the peer
//! is on this host and every step of the set-up works, and UDP otherwise; the answer names the
//! choice. If the offering side then cannot complete shared memory, its next offer to that endpoint
//! contains only UDP. The control plane carries each part as an offer of its own kind, so an
//! endpoint that has only `shm` or only `udp` can be reached too.
//!
//! The top bit of a [`PeerId`] tells the transports apart: it is set for UDP. All frames of a burst
//! come from one of them. A look at the socket costs a system call, which may take as long as a
//! whole round trip over shared memory; [`turns`](crate::turns) decides when to look.
//!
//! [`PeerId`]: dunlin_core::transport::PeerId

mod chosen;
mod connect;
mod erased;
mod offer;
mod released;
mod remote;
mod rx;
mod tx;
mod uses;

use std::io;
use std::marker::PhantomData;

use dunlin_core::transport::{Halves, Limits, Transport};

pub use self::chosen::{Chosen, ChosenRx, ChosenTx, OpenRemote, OpenedRemote, RemoteOptions};
pub use self::remote::Remote;
pub use self::rx::AutoRx;
pub use self::tx::AutoTx;
use crate::shm::{self, Shm};
use crate::udp;

/// Options of an `auto` endpoint.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Options {
    /// Shared memory. If it cannot be opened, the endpoint uses only UDP.
    pub shm: shm::Options,
    /// UDP, for peers of other hosts.
    pub udp: udp::Options,
    /// Another transport for peers of other hosts, which has the options in `udp` too; `None`: UDP.
    pub remote: Option<RemoteOptions>,
}

/// Shared memory and UDP as one transport; or shared memory and another transport that can talk to
/// peers over UDP.
#[derive(Clone, Copy, Debug)]
pub struct Auto<R = Chosen>(PhantomData<fn() -> R>);

impl<R: Remote> Transport for Auto<R> {
    type Rx = AutoRx<R>;
    type Tx = AutoTx<R>;
}

impl Auto {
    /// Opens an endpoint on both transports, as [`Auto::over`] does.
    ///
    /// # Errors
    /// Those of [`Udp::open`](crate::udp::Udp::open) or of the other transport, and `InvalidInput`
    /// for options of shared memory outside their limits.
    pub fn open(options: &Options) -> io::Result<HalvesOver<Chosen>> {
        Self::over(options.shm, |most| {
            let udp = options.udp.clone().with_data_up_to(most);
            Chosen::open(options.remote.as_ref(), udp)
        })
    }
}

/// Both halves of an `auto` endpoint.
pub type HalvesOver<R> = Halves<AutoRx<R>, AutoTx<R>>;

impl<R: Remote> Auto<R> {
    /// Opens an endpoint on shared memory, and on the transport that `open` opens. `open` gets the
    /// largest data size of a packet.
    ///
    /// Packets have the data size of the transport that carries them ([`Connect::data_size`]). The
    /// endpoint's limit is that of shared memory, even for packets over UDP: under a larger limit,
    /// an answer could ask for packets that this side's rings cannot hold.
    ///
    /// [`Connect::data_size`]: crate::connect::Connect::data_size
    ///
    /// # Errors
    /// Those of `open`; and `InvalidInput` for options of shared memory outside their limits. If
    /// the system refuses shared memory, the endpoint uses only the other transport.
    pub fn over(
        shm: shm::Options,
        open: impl FnOnce(u32) -> io::Result<Halves<R::Rx, R::Tx>>,
    ) -> io::Result<HalvesOver<R>> {
        const {
            assert!(
                remote::offers_as_udp::<R>(),
                "a remote transport offers as udp does"
            )
        };
        let shm = match Shm::open(shm) {
            Ok(shm) => shm,
            Err(shm::OpenError::Os(why)) => return Ok(Self::without_shm(open(u32::MAX)?, why)),
            Err(wrong) => return Err(io::Error::new(io::ErrorKind::InvalidInput, wrong)),
        };
        let remote = open(shm.limits.data_size)?;
        Ok(Halves {
            rx: AutoRx::new(Some(shm.rx), remote.rx),
            tx: AutoTx::new(Some(shm.tx), remote.tx),
            limits: Limits {
                data_size: shm.limits.data_size,
                rx_queue: remote.limits.rx_queue.min(shm.limits.rx_queue),
                // Over shared memory only credits limit packets; rates are for the network.
                line_rate: remote.limits.line_rate,
            },
        })
    }

    fn without_shm(remote: Halves<R::Rx, R::Tx>, why: io::Error) -> HalvesOver<R> {
        let Halves { rx, tx, limits } = remote;
        let (rx, mut tx) = (AutoRx::new(None, rx), AutoTx::new(None, tx));
        tx.offered.on_not_opened(why.into());
        Halves { rx, tx, limits }
    }
}

#[cfg(test)]
mod tests;
