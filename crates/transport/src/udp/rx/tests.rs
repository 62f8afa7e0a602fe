//! Tests of `rx`.
