//! Files of rows and of parameters, and iterators over them, in one program, which is linked once.
//! Files next to this folder are programs of their own: their tests fork the process, or count its
//! threads or memory.

#[path = "../common/mod.rs"]
mod common;

mod cores;
mod csv;
mod libsvm;
mod params_format;
mod stubs;
