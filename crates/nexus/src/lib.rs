//! One nexus per process: the control plane's sockets, worker threads, wake-ups and the real
//! clock (design §9, §10). The state machines it drives are in `dunlin_core::control`.

mod clock;
mod doorbell;
mod ffi;

pub use clock::TscClock;
