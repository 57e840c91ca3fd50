//! Integration tests: the two programs as their users run them.

mod schemas;
