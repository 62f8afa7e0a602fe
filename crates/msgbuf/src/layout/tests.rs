//! Tests of `layout`.
