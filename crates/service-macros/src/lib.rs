//! The attribute `service`: it makes stubs and glue of a trait that names methods, their numbers
//! and messages. It only writes names and types; the code behind them is in `dunlin-service`.
//!
//! `parse.rs` reads the trait and reports its faults, `expand.rs` writes the code.
#![forbid(unsafe_code)]

mod expand;
mod parse;

use proc_macro::TokenStream;

/// Makes client stubs and server glue of a trait; see the crate `dunlin-service`.
///
/// `#[service(codec = CODEC)]`; each method has `#[method(NUMBER)]` or `#[notify(NUMBER)]`, with
/// `codec = CODEC` if its own differs. A method has one argument, its message, and no receiver.
/// `crate = PATH` says where `dunlin-service` is, if not at `::dunlin::service`.
#[proc_macro_attribute]
pub fn service(options: TokenStream, item: TokenStream) -> TokenStream {
    let service = parse::Service::parse(options.into(), item.into());
    let code = service.map_or_else(|error| error.to_compile_error(), |it| expand::code(&it));
    code.into()
}
