//! Products by cuBLASLt, where the settings name it.

use crate::launch::{cuda, device};
use crate::providers::LibraryStep;
use mxrt_cuda::{CudaDevice, Factor, MatrixProduct, ProductMath, ProductOperands, Provider, provider_settings};
use mxrt_engine::device::DeviceError;
use mxrt_engine::{DeviceCtx, DevicePtr, OpError};
use mxrt_kernels::elementwise::Unary;
use mxrt_ops::{DeviceOperands, KernelForm, MatrixSteps, Precision, Signature, SumEpilogue};
use mxrt_tensor::DType;

/// Bytes that the address of every array is a multiple of.
const ALIGNED: usize = 16;

/// A product of matrices that are stored row by row: to the library, which counts column by column,
/// it is that of the transposed ones in the other order.
struct ProductStep {
    /// none where the library cannot express it
    product: Option<MatrixProduct>,
    /// left operand, right operand, result: number of the array, byte where the matrix begins
    places: [(usize, usize); 3],
    alpha: f32,
    epilogue: SumEpilogue,
}

pub(crate) fn offer(form: &KernelForm, signature: &Signature<'_>) -> Option<Box<dyn LibraryStep>> {
    let KernelForm::Product { batch, size, operands, alpha, epilogue } = form else { return None };
    let bytes = signature.inputs.first()?.dtype.size();
    Some(Box::new(ProductStep {
        product: product(*batch, *size, operands, epilogue, signature),
        places: operands.map(|matrix| (matrix.array, matrix.first * bytes)),
        alpha: *alpha as f32,
        epilogue: epilogue.clone(),
    }))
}

impl LibraryStep for ProductStep {
    fn provider(&self) -> Provider {
        Provider::CublasLt
    }

    fn serves(&self, device: &CudaDevice) -> Result<bool, DeviceError> {
        self.product.as_ref().map_or(Ok(false), |product| Ok(device.product_plan(product)?.is_some()))
    }

    fn enqueue(&self, ctx: &DeviceCtx<'_>, at: &DeviceOperands<'_>) -> Result<bool, OpError> {
        let Some(product) = &self.product else { return Ok(false) };
        let open = ctx.engine().device(ctx.device())?;
        let plan = device(ctx)?.product_plan(product);
        let plan = plan.map_err(|error| open.op_error(&error, "choosing an algorithm of cuBLASLt"))?;
        let Some(plan) = plan else { return Ok(false) };
        let workspace = if plan.workspace() > 0 { ctx.scratch(plan.workspace())? } else { DevicePtr(0) };
        let [(a, left), (b, right), (_, result)] = self.places;
        let input = |number: Option<usize>| number.map_or(0, |number| at.inputs[number].0);
        let operands = ProductOperands {
            factors: [at.inputs[b].offset(right).0, at.inputs[a].offset(left).0],
            result: at.outputs[0].offset(result).0,
            residual: input(self.epilogue.residual),
            bias: input(self.epilogue.bias),
            workspace: workspace.0,
            alpha: self.alpha,
            beta: self.epilogue.factor.unwrap_or(1.0) as f32,
        };
        // SAFETY: addresses of arrays of the running op, which hold what the form says.
        ctx.submit(|backend, stream| unsafe { cuda(backend)?.multiply(stream, &plan, &operands) })?;
        Ok(true)
    }
}

/// The product in the library's terms; none if it has no words for it.
fn product(
    batch: [usize; 2],
    [m, n, k]: [usize; 3],
    operands: &[MatrixSteps; 3],
    epilogue: &SumEpilogue,
    signature: &Signature<'_>,
) -> Option<MatrixProduct> {
    let math = math(signature)?;
    let relu = match epilogue.activation {
        None => false,
        Some(Unary::Relu) => true,
        Some(_) => return None,
    };
    let (batch, [left, right, result]) = joined(batch, operands)?;
    let [a, b, c] = operands;
    if [m, n, k, batch].contains(&0) || (epilogue.residual.is_some() && c.first != 0) {
        return None;
    }
    let factors = [factor([n, k], b, right)?, factor([k, m], a, left)?];
    let result = factor([n, m], c, result).filter(|result| !result.transposed)?;
    let bytes = signature.inputs.first()?.dtype.size();
    let apart = batch == 1 || result.batch_step >= (n.max(m) as i64);
    apart.then_some(MatrixProduct {
        size: [n, m, k].map(|extent| extent as u64),
        batch: i32::try_from(batch).ok()?,
        math,
        factors,
        result,
        bias: epilogue.bias.is_some(),
        residual: epilogue.residual.is_some(),
        relu,
        aligned: [b, a, c].map(|matrix| alignment(matrix.first * bytes)),
    })
}

/// The way of computing operands of one type.
fn math(signature: &Signature<'_>) -> Option<ProductMath> {
    let dtype = signature.inputs.first()?.dtype;
    let alike = signature.inputs.iter().chain(signature.outputs).all(|t| t.dtype == dtype);
    match dtype {
        _ if !alike => None,
        DType::F16 => Some(ProductMath::Half),
        DType::F32 if signature.options.precision == Precision::Bf16 => Some(ProductMath::Brain),
        DType::F32 if provider_settings().tf32 => Some(ProductMath::Tf32),
        DType::F32 => Some(ProductMath::Single),
        _ => None,
    }
}

/// Number of products, and steps between the matrices of each operand; none if they are not in one
/// row.
fn joined([outer, inner]: [usize; 2], operands: &[MatrixSteps; 3]) -> Option<(usize, [isize; 3])> {
    let steps = |axis: usize| operands.map(|matrix| matrix.steps[axis]);
    match (outer, inner) {
        (1, 1) => Some((1, [0; 3])),
        (1, inner) => Some((inner, steps(1))),
        (outer, 1) => Some((outer, steps(0))),
        (outer, inner) => {
            let is_one = |matrix: &MatrixSteps| matrix.steps[0] == matrix.steps[1] * inner as isize;
            operands.iter().all(is_one).then(|| (outer * inner, steps(1)))
        }
    }
}

/// A matrix with these numbers of rows and columns to the library, whose columns are the rows of the
/// form.
fn factor([rows, columns]: [usize; 2], matrix: &MatrixSteps, batch_step: isize) -> Option<Factor> {
    let [.., column_step, row_step] = matrix.steps;
    // The step of an axis with one element is any number.
    let of_rows = (columns == 1).then_some(rows as isize).or(Some(column_step));
    let of_columns = (rows == 1).then_some(columns as isize).or(Some(row_step));
    let by_columns = of_rows.filter(|step| (rows == 1 || row_step == 1) && *step >= rows as isize);
    let by_rows = of_columns.filter(|step| (columns == 1 || column_step == 1) && *step >= columns as isize);
    let (transposed, step) = match (by_columns, by_rows) {
        (Some(step), _) => (false, step),
        (None, Some(step)) => (true, step),
        (None, None) => return None,
    };
    (batch_step >= 0).then_some(Factor { transposed, step: step as i64, batch_step: batch_step as i64 })
}

/// Bytes that an address is a multiple of, so far after the beginning of an array.
fn alignment(offset: usize) -> u32 {
    if offset == 0 { ALIGNED as u32 } else { 1 << offset.trailing_zeros().min(ALIGNED.trailing_zeros()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matrix(steps: [isize; 4]) -> MatrixSteps {
        MatrixSteps { array: 0, first: 0, steps }
    }

    #[test]
    fn matrices_are_read_by_columns_or_by_rows_and_others_not_at_all() {
        let of = |extents, steps| factor(extents, &matrix(steps), 0).map(|f| (f.transposed, f.step));
        // Rows of the form are columns of the library.
        assert_eq!(of([5, 3], [0, 0, 5, 1]), Some((false, 5)));
        assert_eq!(of([5, 3], [0, 0, 9, 1]), Some((false, 9)));
        assert_eq!(of([5, 3], [0, 0, 1, 3]), Some((true, 3)));
        assert_eq!(of([5, 3], [0, 0, 10, 2]), None);
        assert_eq!(of([5, 3], [0, 0, 0, 1]), None);
        assert_eq!(of([5, 3], [0, 0, -5, 1]), None);
        // The step of an axis with one element means nothing.
        assert_eq!(of([1, 3], [0, 0, 1, 7]), Some((false, 1)));
        assert_eq!(of([5, 1], [0, 0, 0, 1]), Some((false, 5)));
        assert_eq!(of([1, 1], [0, 0, 0, 0]), Some((false, 1)));
    }

    #[test]
    fn batches_are_one_if_their_matrices_lie_in_one_row() {
        let heads = |outer| [matrix([outer, 4, 8, 1]), matrix([3 * 4, 4, 8, 1]), matrix([12, 4, 8, 1])];
        assert_eq!(joined([2, 3], &heads(12)), Some((6, [4; 3])));
        assert_eq!(joined([2, 3], &heads(13)), None);
        assert_eq!(joined([2, 1], &heads(13)), Some((2, [13, 12, 12])));
        assert_eq!(joined([1, 3], &heads(13)), Some((3, [4; 3])));
    }

    #[test]
    fn an_address_has_the_alignment_of_its_offset() {
        assert_eq!([0, 32, 8, 6, 1].map(alignment), [16, 16, 8, 2, 1]);
    }
}
