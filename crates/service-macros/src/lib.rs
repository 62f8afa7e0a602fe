//! The attribute `service` turns a trait, which gives methods, their numbers and messages, into
//! stubs and glue. It writes only names and types; the code that they use is in `dunlin-service`.
//!
//! `parse.rs` reads the trait and reports its faults, `expand.rs` writes the code. `shape.rs` is
//! the derive `Shape`.
#![forbid(unsafe_code)]

mod expand;
mod parse;
mod shape;

use proc_macro::TokenStream;

/// Turns a trait into client stubs and server glue; see the crate `dunlin-service`.
///
/// Its form is `#[service(codec = CODEC)]`. Each method has `#[method(NUMBER)]` or
/// `#[notify(NUMBER)]`, with `codec = CODEC` if it uses another codec. A method has one argument,
/// its message, and no receiver. `base = NUMBER` adds a number to the numbers of all methods, so
/// that one endpoint can serve several services. `send` also makes a server whose futures may run
/// on any thread, such as a thread of a runtime. `crate = PATH` gives the path of `dunlin-service`,
/// if that is not `::dunlin::service`.
#[proc_macro_attribute]
pub fn service(options: TokenStream, item: TokenStream) -> TokenStream {
    let service = parse::Service::parse(options.into(), item.into());
    let code = service.map_or_else(|error| error.to_compile_error(), |it| expand::code(&it));
    code.into()
}

/// Implements `dunlin::service::reflect::Shape` for a structure whose fields implement it.
/// `#[shape(crate = PATH)]` gives the path of `dunlin-service`, if that is not `::dunlin::service`.
#[proc_macro_derive(Shape, attributes(shape))]
pub fn shape(item: TokenStream) -> TokenStream {
    let code = shape::code(item.into());
    code.unwrap_or_else(|error| error.to_compile_error()).into()
}
