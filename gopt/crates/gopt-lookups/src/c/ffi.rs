//! The functions of the C side, and the one place that calls them.
//!
//! Invariant: a list has the forms of one look-up in one shape, in the order of `translation_unit`
//! in the build script: plain, hand, and the marked form at each of [`WIDTHS`].

use std::ffi::c_void;

use super::tables::Table;
use super::{CForm, WIDTHS};

/// Forms of a look-up in one shape.
const FORMS: usize = 2 + WIDTHS.len();

/// A form. Its arguments are the table in C's layout, the width, the items, places for the results
/// (one for each item), and the number of items.
type Function = unsafe extern "C" fn(*const c_void, usize, *const c_void, *mut c_void, usize);

/// All forms of a look-up in one shape.
pub(super) type Functions = [Function; FORMS];

// SAFETY: the build script makes a list of this name, length and type in each translation unit,
// and nothing writes to them.
unsafe extern "C" {
    pub(super) safe static gopt_pointer_chasing_tight: Functions;
    pub(super) safe static gopt_pointer_chasing_handler: Functions;
    pub(super) safe static gopt_cuckoo_tight: Functions;
    pub(super) safe static gopt_cuckoo_handler: Functions;
    pub(super) safe static gopt_ipv4_tight: Functions;
    pub(super) safe static gopt_ipv4_handler: Functions;
    pub(super) safe static gopt_ipv6_tight: Functions;
    pub(super) safe static gopt_ipv6_handler: Functions;
    pub(super) safe static gopt_mica_tight: Functions;
    pub(super) safe static gopt_mica_handler: Functions;
    pub(super) safe static gopt_btree_tight: Functions;
    pub(super) safe static gopt_btree_handler: Functions;
}

/// The function of a form at a width.
pub(super) fn function(functions: &Functions, form: CForm, width: usize) -> Function {
    let known = WIDTHS.iter().position(|&known| known == width);
    match form {
        CForm::Plain => functions[0],
        CForm::Hand => {
            known.expect("the width is one of WIDTHS");
            functions[1]
        }
        CForm::Gopt => functions[2 + known.expect("the width is one of WIDTHS")],
    }
}

/// Runs a form on as many items as there are places for results. The items' keys were checked. `I`
/// and `O` are the types that the function takes: keys and values, or packets and their results.
pub(super) fn call<T: Table, I, O>(
    table: &T,
    function: Function,
    width: usize,
    items: &[I],
    out: &mut [O],
) {
    let in_c = table.in_c();
    let len = items.len().min(out.len());
    // SAFETY: `Table` promises that `in_c` is what the function expects, and describes memory that
    // lives as long as `table` is borrowed. There are `len` items to read, and places for `len`
    // results; the function keeps no pointer.
    unsafe {
        function(
            (&raw const in_c).cast(),
            width,
            items.as_ptr().cast(),
            out.as_mut_ptr().cast(),
            len,
        );
    }
}
