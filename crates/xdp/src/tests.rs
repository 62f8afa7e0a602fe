//! The kernel in user space that the tests of several files share.

pub(crate) mod model;
