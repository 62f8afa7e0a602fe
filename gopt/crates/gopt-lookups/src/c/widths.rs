//! The widths for which the marked C look-ups are compiled. The build script reads this file, too,
//! and gives each C file to gopt once for every width.

/// Numbers of items in flight for which there is C code. All are at most
/// [`gopt::MAX_WIDTH`](https://docs.rs/gopt).
pub const WIDTHS: [usize; 9] = [1, 2, 4, 8, 16, 24, 32, 48, 64];
