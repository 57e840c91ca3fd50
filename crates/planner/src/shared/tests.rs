//! Tests of the shared budget.
