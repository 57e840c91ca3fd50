//! Each class of drift, on clusters small enough to hold in the head.
