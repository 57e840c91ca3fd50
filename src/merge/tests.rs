//! Laws, then tables.
