//! Tests of `pool`.
