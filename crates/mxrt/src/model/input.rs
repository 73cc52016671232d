//! Inputs as callers pass them.

use crate::{Context, DType, NDArray, Shape};
use mxrt_engine::WrongInput;
use mxrt_engine::{Engine, FailureKind, OpError};
use mxrt_tensor::{Element, TensorType};
use std::borrow::Cow;

/// An input of a call: an [`NDArray`], or elements of the caller's that are copied.
///
/// ```
/// use mxrt::Input;
///
/// let image = Input::from(([1, 2], &[0.5f32, 1.5]));
/// let words = Input::from(([3], vec![7i64, 8, 9]));
/// ```
#[derive(Clone, Debug)]
pub struct Input<'a>(CallerInput<'a>);

#[derive(Clone, Debug)]
enum CallerInput<'a> {
    Array(Cow<'a, NDArray>),
    /// row-major elements
    Elements {
        dtype: DType,
        shape: Shape,
        bytes: Cow<'a, [u8]>,
    },
}

impl Input<'_> {
    /// The array on this device.
    pub(super) fn into_array(self, engine: &'static Engine, context: Context) -> Result<NDArray, OpError> {
        match self.0 {
            CallerInput::Array(array) if std::ptr::eq(array.engine(), engine) => Ok(array.into_owned()),
            CallerInput::Array(_) => {
                let message = "the array belongs to another engine than the model; make it with Model::array, or \
                    load the model with ModelBuilder::engine";
                Err(OpError::new(FailureKind::Value, message))
            }
            CallerInput::Elements { dtype, shape, bytes } => {
                let (elements, tensor) = (bytes.len() / dtype.size(), TensorType { dtype, shape });
                if tensor.checked_bytes() != Some(bytes.len()) {
                    let wanted = tensor.shape.checked_size().map_or("too many".to_owned(), |size| size.to_string());
                    let message = format!(
                        "got {elements} elements for the shape {}, which has {wanted}: pass as many",
                        tensor.shape
                    );
                    let wrong = WrongInput {
                        name: String::new(),
                        got: Some(format!("{elements} elements")),
                        wanted: Some(format!("{wanted} elements")),
                    };
                    return Err(OpError::new(FailureKind::Shape, message).input(wrong));
                }
                NDArray::from_bytes(engine, context, tensor, &bytes)
            }
        }
    }

    fn elements<T: Element>(shape: Shape, elements: Cow<'_, [T]>) -> Input<'_> {
        let bytes = match elements {
            Cow::Borrowed(elements) => Cow::Borrowed(bytemuck::cast_slice(elements)),
            Cow::Owned(elements) => Cow::Owned(bytemuck::cast_slice(&elements).to_vec()),
        };
        Input(CallerInput::Elements { dtype: T::DTYPE, shape, bytes })
    }
}

impl<'a> From<&'a NDArray> for Input<'a> {
    fn from(array: &'a NDArray) -> Input<'a> {
        Input(CallerInput::Array(Cow::Borrowed(array)))
    }
}

impl From<NDArray> for Input<'_> {
    fn from(array: NDArray) -> Self {
        Input(CallerInput::Array(Cow::Owned(array)))
    }
}

impl<'a, S: Into<Shape>, T: Element> From<(S, &'a [T])> for Input<'a> {
    fn from((shape, elements): (S, &'a [T])) -> Input<'a> {
        Input::elements(shape.into(), Cow::Borrowed(elements))
    }
}

impl<'a, S: Into<Shape>, T: Element, const N: usize> From<(S, &'a [T; N])> for Input<'a> {
    fn from((shape, elements): (S, &'a [T; N])) -> Input<'a> {
        Input::elements(shape.into(), Cow::Borrowed(elements))
    }
}

impl<'a, S: Into<Shape>, T: Element> From<(S, &'a Vec<T>)> for Input<'a> {
    fn from((shape, elements): (S, &'a Vec<T>)) -> Input<'a> {
        Input::elements(shape.into(), Cow::Borrowed(elements))
    }
}

impl<S: Into<Shape>, T: Element> From<(S, Vec<T>)> for Input<'_> {
    fn from((shape, elements): (S, Vec<T>)) -> Self {
        Input::elements(shape.into(), Cow::Owned(elements))
    }
}

#[cfg(feature = "ndarray")]
mod of_ndarray {
    use super::{Cow, Element, Input, Shape};
    use ndarray::{ArrayBase, ArrayView, Data, Dimension};

    impl<'a, T: Element, D: Dimension> From<ArrayView<'a, T, D>> for Input<'a> {
        /// Borrows the view if its elements are stored row by row, and copies them into that order
        /// otherwise.
        fn from(view: ArrayView<'a, T, D>) -> Input<'a> {
            let shape = Shape::new(view.shape());
            match view.to_slice() {
                Some(elements) => Input::elements(shape, Cow::Borrowed(elements)),
                None => Input::elements(shape, Cow::Owned(view.iter().copied().collect())),
            }
        }
    }

    impl<'a, T: Element, S: Data<Elem = T>, D: Dimension> From<&'a ArrayBase<S, D>> for Input<'a> {
        fn from(array: &'a ArrayBase<S, D>) -> Input<'a> {
            array.view().into()
        }
    }
}
