//! Arrays without operators, dense and sparse, in one program, which is linked once.

mod arrays;
mod sparse;
