//! Tests of `tx`.
