//! The look-ups in C, over the tables that Rust made, with the same algorithms, results and
//! surrounding work. The sources are in `c/`; the build script gives the marked ones to gopt for C.
//!
//! Invariants: the layout of all values that Rust gives to C is checked at compile time (`layout`).
//! C reads only tables that their constructors filled (`tables`), and only keys that were checked.
//! Called by the experiment `gopt bench`.

mod automata;
mod ffi;
mod layout;
mod tables;
mod widths;

pub use automata::OrderInC;
pub use widths::WIDTHS;

use crate::Lookup;
use crate::work::{Handled, Packet};

/// The C code that runs.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum CForm {
    /// One item after the other.
    Plain,
    /// The marked code, made interleaved by gopt for C.
    Gopt,
    /// Group prefetching, written by hand.
    Hand,
}

/// A table whose look-ups exist in C as well.
pub trait InC: Lookup + Sized {
    /// Looks all keys up, and stops at the shorter of `keys` and `out`. `width` is the number of
    /// items in flight; [`CForm::Plain`] ignores it.
    ///
    /// # Panics
    /// If `width` is not one of [`WIDTHS`], or if [`Lookup::find`] panics for a key.
    fn tight_in_c(&self, form: CForm, width: usize, keys: &[Self::Key], out: &mut [Self::Value]);

    /// Like [`InC::tight_in_c`], with the work of a packet handler for each item.
    ///
    /// # Panics
    /// As [`InC::tight_in_c`].
    fn handler_in_c(
        &self,
        form: CForm,
        width: usize,
        packets: &[Packet<Self::Key>],
        out: &mut [Handled<Self::Value>],
    );
}

impl<T: tables::Table> InC for T {
    fn tight_in_c(&self, form: CForm, width: usize, keys: &[T::Key], out: &mut [T::Value]) {
        for &key in keys {
            self.check_key(key);
        }
        let function = ffi::function(T::tight(), form, width);
        ffi::call(self, function, width, keys, out);
    }

    fn handler_in_c(
        &self,
        form: CForm,
        width: usize,
        packets: &[Packet<T::Key>],
        out: &mut [Handled<T::Value>],
    ) {
        for packet in packets {
            self.check_key(packet.key);
        }
        let function = ffi::function(T::handler(), form, width);
        ffi::call(self, function, width, packets, out);
    }
}

#[cfg(test)]
mod tests;
