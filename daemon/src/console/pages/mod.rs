//! One file per page: a function from plain data to HTML, and a thin handler around it.

pub mod action;
pub mod approval;
pub mod approvals;
pub mod inbox;
pub mod incident;
pub mod login;
pub mod message;
pub mod prefs;
pub mod stream;

#[cfg(test)]
mod tests;
