//! Tests of `regions`.
