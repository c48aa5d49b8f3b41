//! A miniature site for the tests of the whole binary: real processes, files, sockets and scrapes,
//! without the lab.

#![allow(
    dead_code,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::print_stderr,
    reason = "test support; no test binary uses all of it"
)]

pub(crate) mod files;
pub(crate) mod http;
pub(crate) mod model;
pub(crate) mod shop;
pub(crate) mod site;

pub(crate) use files::Wishes;
pub(crate) use site::{Site, wait_for};
