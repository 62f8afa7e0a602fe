//! Tests of swift.
