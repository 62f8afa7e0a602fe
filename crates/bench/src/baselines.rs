//! Baselines: the machine's figures without the library. No code here uses the library, except
//! `frames`, which opens a DPDK device with it.

mod cells;
pub(crate) mod clock;
pub(crate) mod copy;
pub(crate) mod exchange;
#[cfg(feature = "full")]
pub(crate) mod frames;
pub mod ping;
mod plausible;
pub(crate) mod ring;
pub(crate) mod shm_rtt;
pub mod sys;
pub(crate) mod udp_rate;
pub(crate) mod udp_rtt;
pub(crate) mod wake;

use harness::process::Role;

/// The processes of all baselines.
pub(crate) const ROLES: &[Role] = &[
    clock::ROLE,
    copy::ROLE,
    exchange::ROLE,
    ring::WRITE,
    ring::READ,
    shm_rtt::PING,
    shm_rtt::ECHO,
    udp_rate::SEND,
    udp_rate::RECEIVE,
    udp_rtt::PING,
    udp_rtt::ECHO,
    wake::PING,
    wake::ECHO,
];
