//! Everything that touches a disk: all SQL and all file formats.
//!
//! Takes `now` as an argument and decides nothing; is concrete, without a trait. Tests use it for
//! real in a temporary folder.
#![forbid(unsafe_code)]

pub mod guard;
pub mod logins;
pub mod seal;
pub mod sentinel;
