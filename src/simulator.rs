//! A cluster inside the process.

mod clock;
mod controllers;
mod load;
mod timings;

pub use clock::{VirtualClock, on_virtual_time};
pub use load::objects;
pub use timings::Timings;
