//! Whole incidents for the tests, each made of what the tools would have brought.

mod cases;
mod world;
