//! Factorisations of matrices and products with triangular ones: `linalg.h`.

use crate::arguments::{
    CholeskyArgument, EigenArgument, FactorsArgument, KroneckerColumnsArgument, LogSumsArgument, OPERANDS,
    OrthonormalArgument, SquaredArgument, TrianglesArgument, TriangularArgument,
};
use crate::launch::{Bound, code, each, each_group, known, launch, of_floats, small};
use mxrt_cuda::Grid;
use mxrt_engine::{DeviceCtx, DevicePtr, FailureKind, OpError};
use mxrt_kernels::KernelError;
use mxrt_kernels::linalg::{TriangularKind, TriangularProduct};
use mxrt_ops::{KernelForm, MatrixForm, Signature, Triangle};
use mxrt_tensor::DType;
use std::ffi::CStr;

pub(crate) fn bind(form: &KernelForm, signature: &Signature<'_>) -> Option<Bound> {
    if let KernelForm::KroneckerColumns = form {
        return bind_kronecker_columns(signature);
    }
    let KernelForm::Matrices(form) = *form else { return None };
    match form {
        MatrixForm::ExtractTriangles(triangle) => bind_triangles(triangle, true, signature),
        MatrixForm::MakeTriangles(triangle) => bind_triangles(triangle, false, signature),
        MatrixForm::LogSums { order } => bind_log_sums(order, signature),
        MatrixForm::Triangular(product) => bind_triangular(product, signature),
        MatrixForm::Cholesky { order, lower } => bind_cholesky(order, lower, signature),
        MatrixForm::CholeskyInverse { order, lower } => bind_cholesky_inverse(order, lower, signature),
        MatrixForm::Determinants { order, logarithms } => bind_determinants(order, logarithms, signature),
        MatrixForm::Inverses { order } => bind_inverses(order, signature),
        MatrixForm::SymmetricEigen { order } => bind_eigen(order, signature),
        MatrixForm::Orthonormal { size } => bind_orthonormal(size, signature),
    }
}

const SOLUTION: [&CStr; 2] = [c"triangular_solution_f32", c"triangular_solution_f64"];

fn bind_kronecker_columns(signature: &Signature<'_>) -> Option<Bound> {
    let (inputs, output) = (signature.inputs, signature.outputs.first()?);
    let name = of_floats(output.dtype, [c"kronecker_columns_f32", c"kronecker_columns_f64"])?;
    let n = output.shape.size();
    let mut argument = KroneckerColumnsArgument {
        to: 0,
        from: [0; OPERANDS],
        n: n as i64,
        columns: *output.shape.last()? as i64,
        heights: [1; OPERANDS],
        count: inputs.len() as i32,
        dtype: code(output.dtype),
    };
    if inputs.len() > OPERANDS {
        return None;
    }
    argument.heights.iter_mut().zip(inputs).for_each(|(height, input)| *height = input.shape[0] as i64);
    Some(Bound::kernel(name, each(n), move |at| {
        let mut argument = argument;
        argument.to = at.outputs[0].0;
        argument.from.iter_mut().zip(at.inputs).for_each(|(from, input)| *from = input.0);
        argument
    }))
}

fn bind_triangles(triangle: Triangle, extract: bool, signature: &Signature<'_>) -> Option<Bound> {
    let (input, output) = (signature.inputs.first().filter(|t| known(t))?, signature.outputs.first()?);
    let n = if extract { input.shape.size() } else { output.shape.size() };
    let argument = TrianglesArgument {
        to: 0,
        from: 0,
        n: n as i64,
        count: triangle.count as i64,
        far: triangle.far as i64,
        order: triangle.order as i64,
        upper: i32::from(triangle.upper),
        extract: i32::from(extract),
        size: input.dtype.size() as i32,
        dtype: code(input.dtype),
    };
    Some(Bound::kernel(c"triangles", each(n), move |at| TrianglesArgument {
        to: at.outputs[0].0,
        from: at.inputs[0].0,
        ..argument
    }))
}

fn bind_log_sums(order: usize, signature: &Signature<'_>) -> Option<Bound> {
    let (input, output) = (signature.inputs.first().filter(|t| known(t))?, signature.outputs.first()?);
    let (n, dtype) = (output.shape.size(), code(input.dtype));
    Some(Bound::kernel(c"log_sums", each(n), move |at| LogSumsArgument {
        to: at.outputs[0].0,
        from: at.inputs[0].0,
        n: n as i64,
        order: order as i64,
        dtype,
        unused: 0,
    }))
}

impl TriangularArgument {
    /// Makes the argument, without addresses, for matrices `a` that are not turned, with columns in
    /// rows of `columns` numbers.
    fn new(order: usize, columns: usize, dtype: DType) -> TriangularArgument {
        let (order, columns) = (order as i64, columns as i64);
        TriangularArgument {
            to: 0,
            a: 0,
            b: 0,
            solution: 0,
            swaps: 0,
            status: 0,
            n: 0,
            order,
            columns,
            a_down: order,
            a_right: 1,
            down: columns,
            right: 1,
            alpha: 1.0,
            lower: 1,
            unit: 0,
            dtype: code(dtype),
            unused: 0,
        }
    }

    /// Turns the matrices `a`.
    fn turned(self) -> TriangularArgument {
        TriangularArgument { a_down: self.a_right, a_right: self.a_down, ..self }
    }
}

fn bind_triangular(product: TriangularProduct, signature: &Signature<'_>) -> Option<Bound> {
    let TriangularProduct { kind, n: order, other, rightside, lower, transpose, alpha } = product;
    let (input, output) = (signature.inputs.first()?, signature.outputs.first()?);
    let dtype = input.dtype;
    let plain = TriangularArgument { alpha, ..TriangularArgument::new(order, other, dtype) };
    // B op(A) is the transpose of op(A)^T B^T.
    let turned = transpose != rightside;
    let mut argument = if turned { plain.turned() } else { plain };
    argument.lower = i32::from(lower != turned);
    if rightside {
        (argument.down, argument.right) = (1, order as i64);
    }
    let n = output.shape.size();
    if kind == TriangularKind::Matrix {
        argument.n = n as i64;
        let name = of_floats(dtype, [c"triangular_product_f32", c"triangular_product_f64"])?;
        return Some(Bound::kernel(name, each(n), move |at| TriangularArgument {
            to: at.outputs[0].0,
            a: at.inputs[0].0,
            b: at.inputs[1].0,
            ..argument
        }));
    }
    let columns = n.checked_div(order).unwrap_or(0);
    argument.n = columns as i64;
    let name = of_floats(dtype, SOLUTION)?;
    // Solutions in half precision are computed in single precision, apart from the result.
    let apart = (dtype == DType::F16).then_some(n * size_of::<f32>());
    Some(Bound::new(move |ctx, at| {
        let Some(grid) = each(columns) else { return Ok(()) };
        let (to, solution) = match apart {
            Some(bytes) => (at.outputs[0].0, ctx.scratch(bytes)?.0),
            None => (0, at.outputs[0].0),
        };
        let (a, b) = (at.inputs[0].0, at.inputs[1].0);
        launch(ctx, name, grid, &TriangularArgument { to, a, b, solution, ..argument })
    }))
}

/// A word for the first matrix of a batch that a kernel complains about.
fn status(ctx: &DeviceCtx<'_>, reason: &'static str) -> Result<DevicePtr, OpError> {
    ctx.status_word(move |said| {
        let error = KernelError::Matrix { matrix: said.saturating_sub(1) as usize, reason };
        OpError::new(FailureKind::Operator, error.to_string())
    })
}

/// The number of square matrices of input 0; none for matrices without elements.
fn batch(order: usize, signature: &Signature<'_>) -> Option<usize> {
    let size = order.checked_mul(order)?;
    Some(signature.inputs.first()?.shape.size().checked_div(size).unwrap_or(0))
}

fn bind_cholesky(order: usize, lower: bool, signature: &Signature<'_>) -> Option<Bound> {
    let name = of_floats(signature.inputs.first()?.dtype, [c"cholesky_f32", c"cholesky_f64"])?;
    let matrices = batch(order, signature)?;
    Some(Bound::new(move |ctx, at| {
        let Some(grid) = each_group(matrices) else { return Ok(()) };
        let argument = CholeskyArgument {
            to: at.outputs[0].0,
            from: at.inputs[0].0,
            status: status(ctx, "is not positive definite")?.0,
            matrices: matrices as i64,
            order: order as i64,
            lower: i32::from(lower),
            unused: 0,
        };
        launch(ctx, name, grid, &argument)
    }))
}

fn bind_cholesky_inverse(order: usize, lower: bool, signature: &Signature<'_>) -> Option<Bound> {
    let input = signature.inputs.first()?;
    let (solution_name, name) =
        (of_floats(input.dtype, SOLUTION)?, of_floats(input.dtype, [c"squared_f32", c"squared_f64"])?);
    let (n, columns, bytes) = (input.shape.size(), batch(order, signature)? * order, input.bytes());
    let plain = TriangularArgument { n: columns as i64, ..TriangularArgument::new(order, order, input.dtype) };
    // An upper factor is the lower one, turned.
    let argument = if lower { plain } else { plain.turned() };
    Some(Bound::new(move |ctx, at| {
        let (Some(of_columns), Some(of_numbers)) = (each(columns), each(n)) else { return Ok(()) };
        let solution = ctx.scratch(bytes)?.0;
        let status = status(ctx, "has a zero on its diagonal: it is not a factor that potrf gives")?.0;
        let argument = TriangularArgument { a: at.inputs[0].0, solution, status, ..argument };
        launch(ctx, solution_name, of_columns, &argument)?;
        let argument = SquaredArgument { to: at.outputs[0].0, from: solution, n: n as i64, order: order as i64 };
        launch(ctx, name, of_numbers, &argument)
    }))
}

/// A block for each matrix, with the number of a column.
fn each_matrix(matrices: usize) -> Option<Grid> {
    each_group(matrices).map(|grid| Grid { shared_bytes: size_of::<i32>() as u32, ..grid })
}

fn bind_determinants(order: usize, logarithms: bool, signature: &Signature<'_>) -> Option<Bound> {
    let (input, output) = (signature.inputs.first()?, signature.outputs.first()?);
    let name = of_floats(input.dtype, FACTORISE)?;
    small([order])?;
    let (matrices, bytes) = (output.shape.size(), input.bytes());
    Some(Bound::new(move |ctx, at| {
        let Some(grid) = each_matrix(matrices) else { return Ok(()) };
        let argument = FactorsArgument {
            factors: ctx.scratch(bytes.max(1))?.0,
            from: at.inputs[0].0,
            swaps: 0,
            sign: at.outputs[0].0,
            logarithm: if logarithms { at.outputs[1].0 } else { 0 },
            matrices: matrices as i64,
            order: order as i64,
        };
        launch(ctx, name, grid, &argument)
    }))
}

const FACTORISE: [&CStr; 2] = [c"factorise_f32", c"factorise_f64"];

fn bind_inverses(order: usize, signature: &Signature<'_>) -> Option<Bound> {
    let input = signature.inputs.first()?;
    let (name, solution_name) = (of_floats(input.dtype, FACTORISE)?, of_floats(input.dtype, SOLUTION)?);
    small([order])?;
    let (matrices, bytes) = (batch(order, signature)?, input.bytes());
    let columns = matrices * order;
    let lower = TriangularArgument { n: columns as i64, ..TriangularArgument::new(order, order, input.dtype) };
    Some(Bound::new(move |ctx, at| {
        let (Some(grid), Some(of_columns)) = (each_matrix(matrices), each(columns)) else { return Ok(()) };
        let memory = ctx.scratch(bytes + columns * size_of::<i32>())?;
        let (factors, swaps, solution) = (memory.0, memory.offset(bytes).0, at.outputs[0].0);
        let argument = FactorsArgument {
            factors,
            from: at.inputs[0].0,
            swaps,
            sign: 0,
            logarithm: 0,
            matrices: matrices as i64,
            order: order as i64,
        };
        launch(ctx, name, grid, &argument)?;
        let status = status(ctx, "is singular and has no inverse")?.0;
        launch(ctx, solution_name, of_columns, &TriangularArgument { a: factors, solution, status, ..lower })?;
        let upper = TriangularArgument { b: solution, lower: 0, unit: 1, ..lower };
        launch(ctx, solution_name, of_columns, &TriangularArgument { a: factors, solution, swaps, ..upper })
    }))
}

fn bind_orthonormal([rows, columns]: [usize; 2], signature: &Signature<'_>) -> Option<Bound> {
    let input = signature.inputs.first()?;
    let name = of_floats(input.dtype, [c"orthonormal_f32", c"orthonormal_f64"])?;
    let (matrices, bytes) = (input.shape.size().checked_div(rows.checked_mul(columns)?).unwrap_or(0), input.bytes());
    Some(Bound::new(move |ctx, at| {
        let Some(grid) = each_group(matrices) else { return Ok(()) };
        let argument = OrthonormalArgument {
            q: at.outputs[0].0,
            l: at.outputs[1].0,
            work: ctx.scratch(bytes)?.0,
            from: at.inputs[0].0,
            matrices: matrices as i64,
            rows: rows as i64,
            columns: columns as i64,
        };
        launch(ctx, name, grid, &argument)
    }))
}

fn bind_eigen(order: usize, signature: &Signature<'_>) -> Option<Bound> {
    let input = signature.inputs.first()?;
    let names = [
        of_floats(input.dtype, [c"tridiagonal_f32", c"tridiagonal_f64"])?,
        of_floats(input.dtype, [c"rotate_vectors_f32", c"rotate_vectors_f64"])?,
        of_floats(input.dtype, [c"order_vectors_f32", c"order_vectors_f64"])?,
    ];
    small([order])?;
    let (matrices, bytes, size) = (batch(order, signature)?, input.bytes(), input.dtype.size());
    // Numbers of each matrix in double precision: see `EigenNumbers` of the text.
    let numbers = matrices.checked_mul(4 * order + 1)?.checked_mul(size_of::<f64>())?;
    let lines = matrices * 3 * order * size;
    Some(Bound::new(move |ctx, at| {
        let (Some(grid), Some(ordering)) = (each_group(matrices), each_group((matrices * order).div_ceil(8))) else {
            return Ok(());
        };
        let memory = ctx.scratch(numbers + 2 * bytes + lines)?;
        let work = memory.offset(numbers);
        let argument = EigenArgument {
            vectors: at.outputs[0].0,
            values: at.outputs[1].0,
            from: at.inputs[0].0,
            work: work.0,
            rows: work.offset(bytes).0,
            lines: work.offset(2 * bytes).0,
            numbers: memory.0,
            status: status(ctx, "has eigenvalues that did not converge")?.0,
            matrices: matrices as i64,
            order: order as i64,
        };
        let rotating = Grid { shared_bytes: 2 * size_of::<i32>() as u32, ..grid };
        launch(ctx, names[0], grid, &argument)?;
        launch(ctx, names[1], rotating, &argument)?;
        launch(ctx, names[2], ordering, &argument)
    }))
}
