//! others
