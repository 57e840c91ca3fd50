//! What the operating system offers to the programs: programs on `$PATH` ([`search_path`]), and
//! output files that are not regular files ([`special_file`]).

pub mod search_path;
pub mod special_file;
