//! Pixels of windows as columns: `columns.h`.

use crate::arguments::ColumnsArgument;
use crate::launch::{Bound, code, each, of_floats, small};
use mxrt_ops::{KernelForm, Signature};

pub(crate) fn bind(form: &KernelForm, signature: &Signature<'_>) -> Option<Bound> {
    let output = signature.outputs.first()?;
    let (windows, names) = match form {
        KernelForm::Columns(windows) => (windows, [c"columns_of_images"; 2]),
        KernelForm::ColumnSums(windows) => (windows, [c"sums_of_columns_f32", c"sums_of_columns_f64"]),
        _ => return None,
    };
    let name = of_floats(output.dtype, names)?;
    let n = output.shape.size();
    let argument = ColumnsArgument {
        to: 0,
        from: 0,
        n: n as i64,
        kernel: small(windows.kernel)?,
        stride: small(windows.stride)?,
        dilate: small(windows.dilate)?,
        pad: small(windows.pad)?,
        image: small(windows.image)?,
        windows: small(windows.windows)?,
        size: output.dtype.size() as i32,
        dtype: code(output.dtype),
    };
    Some(Bound::kernel(name, each(n), move |at| ColumnsArgument {
        to: at.outputs[0].0,
        from: at.inputs[0].0,
        ..argument
    }))
}
