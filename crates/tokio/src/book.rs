//! The page of the book with code that uses this crate; `cargo test --doc` compiles that code.

#[doc = include_str!("../../../docs/tokio.md")]
mod page {}
