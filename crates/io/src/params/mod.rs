//! Parameter lists, the `.params` files of `mx.nd.save` and `mx.nd.load`.
//!
//! A file is indexed first: every record and every name is checked against the size of the file
//! before memory for content is taken. Then each array's bytes are read straight into the memory of
//! its own array.

mod error;
mod format;
mod index;
mod raw;
mod read;
mod save;
mod source;
mod sparse;

pub use error::ParamsError;
pub use raw::{load_raw, save_raw};
pub use read::{load, load_all, load_all_from_bytes, load_from_bytes};
pub use save::{save, save_to_bytes};

use mxrt_tensor::NDArray;

/// The content of a parameter file.
#[derive(Clone, Debug)]
pub enum Params {
    /// Arrays without names.
    List(Vec<NDArray>),
    /// Arrays with names, in the order of the file. Of a file that was loaded by [`load`] or
    /// [`load_from_bytes`] a name occurs once.
    Named(Vec<(String, NDArray)>),
}

impl Default for Params {
    /// No arrays, which have names.
    fn default() -> Params {
        Params::Named(Vec::new())
    }
}

impl Params {
    /// Number of arrays.
    pub fn len(&self) -> usize {
        match self {
            Params::List(arrays) => arrays.len(),
            Params::Named(arrays) => arrays.len(),
        }
    }

    /// True when there are no arrays.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The array of that name.
    pub fn get(&self, name: &str) -> Option<&NDArray> {
        match self {
            Params::List(_) => None,
            Params::Named(arrays) => arrays.iter().find(|(n, _)| n == name).map(|(_, array)| array),
        }
    }
}

/// Meaning of shapes: whether zero axes are a scalar (numpy's way) or nothing at all (MXNet's older
/// way).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum NpShape {
    /// The older way. Of files written under np-shape, scalars are refused.
    #[default]
    Off,
    /// np-shape for this thread (`with np_shape(True)`, `npx.set_np()`); files of the older way are
    /// refused.
    ThreadLocal,
    /// np-shape for the whole process; files of both ways are accepted.
    Global,
}

impl NpShape {
    fn is_on(self) -> bool {
        self != NpShape::Off
    }
}
