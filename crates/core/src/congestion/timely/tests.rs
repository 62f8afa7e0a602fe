//! Tests of timely.
