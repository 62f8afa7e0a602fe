//! Tests of dcqcn.
