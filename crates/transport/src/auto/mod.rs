//! The `auto` transport: shared memory and UDP in one endpoint, chosen for each peer (design §12).
//!
//! An offer holds what both transports have to say. The side that accepts takes shared memory if
//! the peer is on this host and everything about it works, and UDP otherwise; the answer says
//! which. If the offering side then cannot complete shared memory, its next offer to that endpoint
//! holds UDP alone.
//!
//! The top bit of a [`PeerId`] tells the transports apart: it is set for UDP. A burst has frames of
//! one of them. Looking at the socket costs a system call, as much as a whole round trip over
//! shared memory may take; `turns` decides when it is worth it.
//!
//! [`PeerId`]: dunlin_core::transport::PeerId

mod connect;
mod offer;
mod rx;
mod turns;
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
    /// A session has one data size whatever carries it, so the limits are the smaller of both.
    ///
    /// # Errors
    /// As [`Udp::open`]; and `InvalidInput` for options of shared memory outside their limits.
    pub fn open(options: &Options) -> io::Result<Halves<AutoRx, AutoTx>> {
        let udp = Udp::open(&options.udp)?;
        let (shm_rx, shm_tx, limits) = match Shm::open(options.shm) {
            Ok(shm) => (Some(shm.rx), Some(shm.tx), smaller(udp.limits, shm.limits)),
            Err(shm::OpenError::Os(_)) => (None, None, udp.limits),
            Err(wrong) => return Err(io::Error::new(io::ErrorKind::InvalidInput, wrong)),
        };
        let rx = AutoRx::new(shm_rx, udp.rx);
        let tx = AutoTx::new(shm_tx, udp.tx);
        Ok(Halves { rx, tx, limits })
    }
}

fn smaller(udp: Limits, shm: Limits) -> Limits {
    Limits {
        data_size: udp.data_size.min(shm.data_size),
        rx_queue: udp.rx_queue.min(shm.rx_queue),
        // Shared memory has credits alone; rates are for the network.
        line_rate: udp.line_rate,
    }
}
