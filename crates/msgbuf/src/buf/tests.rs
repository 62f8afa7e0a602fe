//! Tests of `buf`.
