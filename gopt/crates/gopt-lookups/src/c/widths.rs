//! How wide the marked C look-ups were compiled. Read by the build script, too, which gives each
//! file to gopt once for every width.

/// Numbers of items in flight for which there is C code. None is more than
/// [`gopt::MAX_WIDTH`](https://docs.rs/gopt).
pub const WIDTHS: [usize; 9] = [1, 2, 4, 8, 16, 24, 32, 48, 64];
