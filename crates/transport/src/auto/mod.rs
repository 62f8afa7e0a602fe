//! The `auto` transport: shared memory and UDP in one endpoint, chosen for each peer (design §12).
//!
//! An offer has a part for each transport. The side that accepts chooses shared memory if the peer
//! is on this host and every step of the set-up works, and UDP otherwise; the answer names the
//! choice. If the offering side then cannot complete shared memory, its next offer to that endpoint
//! holds UDP alone. The control plane carries each part as an offer of its own kind, so an endpoint
//! that has only `shm` or only `udp` can be reached too.
//!
//! The top bit of a [`PeerId`] tells the transports apart: it is set for UDP. All frames of a burst
//! come from one of them. A look at the socket costs a system call, which may take as long as a
//! whole round trip over shared memory; [`turns`](crate::turns) decides when to look.
//!
//! [`PeerId`]: dunlin_core::transport::PeerId

mod connect;
mod offer;
mod rx;
mod tx;
mod uses;

use std::io;

use dunlin_core::transport::{Halves, Limits, Transport};

pub use self::rx::AutoRx;
pub use self::tx::AutoTx;
use crate::shm::{self, Shm};
use crate::udp::{self, Udp};

/// Options of both transports.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Options {
    /// Shared memory. If it cannot be opened, the endpoint uses UDP alone.
    pub shm: shm::Options,
    /// UDP.
    pub udp: udp::Options,
}

/// Shared memory and UDP as one transport.
#[derive(Clone, Copy, Debug)]
pub struct Auto;

impl Transport for Auto {
    type Rx = AutoRx;
    type Tx = AutoTx;
}

impl Auto {
    /// Opens an endpoint on both transports.
    ///
    /// Packets have the data size of the transport that carries them ([`Connect::data_size`]). The
    /// endpoint's limit is that of shared memory, even for packets over UDP: under a larger limit,
    /// an answer could ask for packets that this side's rings cannot hold.
    ///
    /// [`Connect::data_size`]: crate::connect::Connect::data_size
    ///
    /// # Errors
    /// As [`Udp::open`]; and `InvalidInput` for options of shared memory outside their limits.
    pub fn open(options: &Options) -> io::Result<Halves<AutoRx, AutoTx>> {
        let shm = match Shm::open(options.shm) {
            Ok(shm) => shm,
            Err(shm::OpenError::Os(why)) => return Self::open_without_shm(&options.udp, why),
            Err(wrong) => return Err(io::Error::new(io::ErrorKind::InvalidInput, wrong)),
        };
        let udp = Udp::open(&udp::Options {
            data_size: options.udp.data_size.min(shm.limits.data_size),
            loopback_data_size: options.udp.loopback_data_size.min(shm.limits.data_size),
            ..options.udp.clone()
        })?;
        Ok(Halves {
            rx: AutoRx::new(Some(shm.rx), udp.rx),
            tx: AutoTx::new(Some(shm.tx), udp.tx),
            limits: Limits {
                data_size: shm.limits.data_size,
                rx_queue: udp.limits.rx_queue.min(shm.limits.rx_queue),
                // Over shared memory only credits limit packets; rates are for the network.
                line_rate: udp.limits.line_rate,
            },
        })
    }

    fn open_without_shm(
        options: &udp::Options,
        why: io::Error,
    ) -> io::Result<Halves<AutoRx, AutoTx>> {
        let Halves { rx, tx, limits } = Udp::open(options)?;
        let (rx, mut tx) = (AutoRx::new(None, rx), AutoTx::new(None, tx));
        tx.offered.on_not_opened(why.into());
        Ok(Halves { rx, tx, limits })
    }
}

#[cfg(test)]
mod tests;
