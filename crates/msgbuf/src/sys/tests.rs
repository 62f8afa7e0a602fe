//! Tests of `sys`.
