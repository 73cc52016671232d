//! Results of calls.

use crate::NDArray;
use smallvec::SmallVec;
use std::ops::Deref;
use std::sync::Arc;

/// The results of a call, by position (it is a slice of arrays) or by name.
///
/// ```
/// # fn look(y: mxrt::Outputs) -> Result<(), mxrt::Error> {
/// let scores: Vec<f32> = y[0].to_vec()?;
/// if let Some(boxes) = y.get_named("boxes_output") {
///     let guard = boxes.read()?;
///     let elements: &[f32] = guard.tensor().as_slice()?;
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Outputs {
    arrays: SmallVec<[NDArray; 2]>,
    names: Arc<[String]>,
}

impl Outputs {
    pub(super) fn new(arrays: SmallVec<[NDArray; 2]>, names: Arc<[String]>) -> Outputs {
        Outputs { arrays, names }
    }

    /// The output of this name.
    pub fn get_named(&self, name: &str) -> Option<&NDArray> {
        self.arrays.get(self.names.iter().position(|known| known == name)?)
    }

    /// Names and arrays.
    pub fn named(&self) -> impl Iterator<Item = (&str, &NDArray)> {
        self.names.iter().map(String::as_str).zip(&self.arrays)
    }
}

impl Deref for Outputs {
    type Target = [NDArray];
    fn deref(&self) -> &[NDArray] {
        &self.arrays
    }
}

impl IntoIterator for Outputs {
    type Item = NDArray;
    type IntoIter = smallvec::IntoIter<[NDArray; 2]>;
    fn into_iter(self) -> Self::IntoIter {
        self.arrays.into_iter()
    }
}

impl<'a> IntoIterator for &'a Outputs {
    type Item = &'a NDArray;
    type IntoIter = std::slice::Iter<'a, NDArray>;
    fn into_iter(self) -> Self::IntoIter {
        self.arrays.iter()
    }
}

impl std::fmt::Debug for Outputs {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_map().entries(self.named()).finish()
    }
}

/// A copy of an array as one of the crate `ndarray`, after waiting for it.
///
/// # Errors
/// The failure of the array, or kind `Type` if its elements have another type.
#[cfg(feature = "ndarray")]
pub fn to_ndarray<T: mxrt_tensor::Element>(array: &NDArray) -> Result<ndarray::ArrayD<T>, crate::Error> {
    let elements = array.to_vec()?;
    ndarray::ArrayD::from_shape_vec(ndarray::IxDyn(array.shape()), elements)
        .map_err(|error| crate::Error::new(mxrt_engine::FailureKind::Shape, error.to_string()))
}
