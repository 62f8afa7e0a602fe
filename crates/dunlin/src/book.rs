//! The pages of the book with code that uses this crate; `cargo test --doc` compiles that code.
//! Most of that code is in functions that nothing here calls. Tests of the package `dunlin-book`
//! call the functions of pages with recipes.

#[doc = include_str!("../../../docs/async.md")]
mod futures {}
#[doc = include_str!("../../../docs/channel.md")]
mod channels {}
#[doc = include_str!("../../../docs/configuration.md")]
mod configuration {}
#[doc = include_str!("../../../docs/getting-started.md")]
mod getting_started {}
#[doc = include_str!("../../../docs/poll.md")]
mod poll {}
#[doc = include_str!("../../../docs/reflection.md")]
mod reflection {}
#[doc = include_str!("../../../docs/server.md")]
mod servers {}
#[doc = include_str!("../../../docs/services.md")]
mod services {}
#[doc = include_str!("../../../docs/tuning.md")]
mod tuning {}
