//! Sums of products over named axes: what dot, matmul, tensordot and einsum are.

use crate::prelude::*;
use mxrt_kernels::elementwise::{Binary, binary_broadcast};
use mxrt_kernels::gemm_plain::{Gemm, gemm};
use mxrt_kernels::isa::Isa;
use mxrt_kernels::reduce::{Reduction, reduce};
use mxrt_kernels::shape::copy_strided;
use mxrt_kernels::strides::contiguous;
use mxrt_kernels::{Float, Par};

/// The name of an axis.
pub(super) type Label = u32;

/// The axes of one operand.
#[derive(Clone, Debug)]
pub(super) struct Operand {
    pub labels: Vec<Label>,
    pub shape: Vec<usize>,
}

impl Operand {
    pub fn new(labels: impl IntoIterator<Item = Label>, shape: &[usize]) -> Operand {
        Operand { labels: labels.into_iter().collect(), shape: shape.to_vec() }
    }

    /// The extent of a label: that of its axes, of which those of size 1 are repeated.
    fn extent(&self, label: Label) -> Option<usize> {
        let axes = self.labels.iter().zip(&self.shape).filter(|(l, _)| **l == label).map(|(_, n)| *n);
        axes.reduce(|a, b| if a == 1 { b } else { a })
    }

    /// How far apart the elements of a label are: a diagonal where several axes have it.
    fn step(&self, label: Label, steps: &[isize]) -> isize {
        let axes = self.labels.iter().zip(&self.shape).zip(steps).filter(|((l, n), _)| **l == label && **n != 1);
        axes.map(|(_, step)| *step).sum()
    }

    /// The elements with the axes in this order.
    fn gathered<'a, T: Element>(
        &self,
        par: &dyn Par,
        x: &'a [T],
        order: &[Label],
        extents: &[usize],
    ) -> Result<ReadElements<'a, T>, OpError> {
        let own = contiguous(&self.shape);
        let steps: Vec<isize> = order.iter().map(|label| self.step(*label, &own)).collect();
        let same = order == self.labels && extents == self.shape;
        if same {
            return Ok(ReadElements::Borrowed(x));
        }
        let mut made = Scratch::new(par, extents.iter().product());
        copy_strided(par, x, 0, &steps, extents, &mut made).map_err(kernel_error)?;
        Ok(ReadElements::Made(made))
    }

    /// Copies the elements with the axes in this order.
    fn copied<T: Element>(
        &self,
        par: &dyn Par,
        x: &[T],
        order: &[Label],
        extents: &[usize],
        to: &mut [T],
    ) -> Result<(), OpError> {
        let own = contiguous(&self.shape);
        let steps: Vec<isize> = order.iter().map(|label| self.step(*label, &own)).collect();
        copy_strided(par, x, 0, &steps, extents, to).map_err(kernel_error)
    }
}

/// The extents of all labels; an error names two that contradict.
pub(super) fn extents_of(operands: &[Operand]) -> Result<Vec<(Label, usize)>, OpError> {
    let mut known: Vec<(Label, usize)> = Vec::new();
    for operand in operands {
        for (label, n) in operand.labels.iter().zip(&operand.shape) {
            match known.iter_mut().find(|(l, _)| l == label) {
                None => known.push((*label, *n)),
                Some((_, have)) if *have == *n || *n == 1 => {}
                Some((_, have)) if *have == 1 => *have = *n,
                Some((_, have)) => {
                    return Err(shape_error(format!(
                        "operands could not be multiplied: an axis that they share has size {have} and {n}"
                    )));
                }
            }
        }
    }
    Ok(known)
}

/// The sum over all labels that `out` lacks of the product of the operands, with the axes of `out`.
/// Products of matrices in float32 are computed in register tiles of `isa`.
pub(super) fn contract<T: Float>(
    par: &dyn Par,
    isa: Isa,
    operands: &[Operand],
    values: &[&[T]],
    out: &[Label],
    result: &mut [T],
) -> Result<(), OpError> {
    let (Some(first), Some(x)) = (operands.first(), values.first()) else { return Err(wrong_arity()) };
    let mut left = (first.clone(), ReadElements::Borrowed(x));
    for i in 1..operands.len() {
        // What no later operand and no result needs is summed now.
        let later = |label: &Label| out.contains(label) || operands[i + 1..].iter().any(|o| o.labels.contains(label));
        let kept = distinct(left.0.labels.iter().chain(&operands[i].labels).copied().filter(later));
        let product = Product::new(par, (&left.0, &left.1), (&operands[i], values[i]), &kept)?;
        if i + 1 == operands.len() && product.made.labels == out {
            product.run(par, isa, result);
            return Ok(());
        }
        let mut made = Scratch::new(par, product.size);
        product.run(par, isa, &mut made);
        let axes = product.made.clone();
        drop(product);
        left = (axes, ReadElements::Made(made));
    }
    let (operand, x) = left;
    let extent = |label: &Label| operand.extent(*label).unwrap_or(1);
    let summed = distinct(operand.labels.iter().filter(|label| !out.contains(label)).copied());
    let order: Vec<Label> = out.iter().copied().chain(summed.iter().copied()).collect();
    let extents: Vec<usize> = order.iter().map(extent).collect();
    let n: usize = summed.iter().map(extent).product();
    if n == 1 {
        return operand.copied(par, &x, &order, &extents, result);
    }
    let rows = operand.gathered(par, &x, &order, &extents)?;
    reduce(par, Reduction::Sum, &rows, &[result.len(), n], &[false, true], result);
    Ok(())
}

/// Steps of a joined axis in the left operand, the right one and the result.
type Steps = [isize; 3];

/// The labels of an axis of matrices, joined: extents and steps, those of extent 1 left out.
fn joined(labels: &[(usize, Steps)]) -> Vec<(usize, Steps)> {
    let mut axes: Vec<(usize, Steps)> = Vec::new();
    for (extent, steps) in labels.iter().filter(|(extent, _)| *extent != 1) {
        match axes.last_mut() {
            Some((before, outer)) if (0..3).all(|i| outer[i] == steps[i] * *extent as isize) => {
                *before *= *extent;
                *outer = *steps;
            }
            _ => axes.push((*extent, *steps)),
        }
    }
    axes
}

/// The form of a product of two operands; none for others, and where the labels of sums cannot be
/// joined to one axis, and those of the batch to two. Rows or columns of several axes have a batch
/// of all but the last one.
pub(super) fn product_form(operands: &[Operand], out: &[Label]) -> Result<Option<KernelForm>, OpError> {
    let [a, b] = operands else { return Ok(None) };
    let extents = extents_of(operands)?;
    let extent = |label: &Label| extents.iter().find(|(l, _)| l == label).map_or(1, |(_, n)| *n);
    let result = Operand::new(out.iter().copied(), &out.iter().map(&extent).collect::<Vec<usize>>());
    let arrays = [a, b, &result].map(|operand| (operand, contiguous(&operand.shape)));
    let axis = |label: &Label| (extent(label), std::array::from_fn(|i| arrays[i].0.step(*label, &arrays[i].1)));
    let all = distinct(a.labels.iter().chain(&b.labels).copied());
    let pick = |kept: bool, of_a: bool, of_b: bool| {
        let wanted = |l: &&Label| {
            let (in_a, in_b) = (a.labels.contains(l), b.labels.contains(l));
            out.contains(l) == kept && (!kept || (in_a, in_b) == (of_a, of_b))
        };
        joined(&all.iter().filter(wanted).map(&axis).collect::<Vec<_>>())
    };
    let (mut batch, summed) = (pick(true, true, true), pick(false, true, true));
    let [rows, columns] = [pick(true, true, false), pick(true, false, true)].map(|mut axes| {
        let last = axes.pop();
        batch.append(&mut axes);
        Vec::from_iter(last)
    });
    if batch.len() > 2 || summed.len() > 1 {
        return Ok(None);
    }
    let of = |axes: &[(usize, Steps)], i: usize| axes.get(i).copied().unwrap_or((1, [0; 3]));
    // A single axis of a batch is the outer one.
    let [outer, inner, row, column, sum] =
        [of(&batch, 0), of(&batch, 1), of(&rows, 0), of(&columns, 0), of(&summed, 0)];
    let matrix = |i: usize, axes: [Steps; 2]| {
        let steps = [outer.1[i], inner.1[i], axes[0][i], axes[1][i]];
        MatrixSteps { array: if i == 2 { 0 } else { i }, first: 0, steps }
    };
    Ok(Some(KernelForm::Product {
        batch: [outer.0, inner.0],
        size: [row.0, column.0, sum.0],
        operands: [matrix(0, [row.1, sum.1]), matrix(1, [sum.1, column.1]), matrix(2, [row.1, column.1])],
        alpha: 1.0,
        epilogue: SumEpilogue::default(),
    }))
}

fn distinct(labels: impl Iterator<Item = Label>) -> Vec<Label> {
    let mut all = Vec::new();
    labels.for_each(|label| {
        if !all.contains(&label) {
            all.push(label);
        }
    });
    all
}

/// The product of two operands, as a batch of products of matrices.
struct Product<'a, T: Copy> {
    left: ReadElements<'a, T>,
    right: ReadElements<'a, T>,
    shape: Gemm,
    /// the axes of the result
    made: Operand,
    /// elements of the result
    size: usize,
}

impl<'a, T: Float> Product<'a, T> {
    /// The product with these axes kept.
    fn new(
        par: &dyn Par,
        (a, x): (&Operand, &'a [T]),
        (b, y): (&Operand, &'a [T]),
        kept: &[Label],
    ) -> Result<Product<'a, T>, OpError> {
        let of_both = extents_of(&[a.clone(), b.clone()])?;
        let extent = |label: &Label| of_both.iter().find(|(l, _)| l == label).map_or(1, |(_, n)| *n);
        let all = distinct(a.labels.iter().chain(&b.labels).copied());
        let pick = |wanted: &dyn Fn(&Label) -> bool| all.iter().copied().filter(|l| wanted(l)).collect::<Vec<Label>>();
        let (in_a, in_b) = (|l: &Label| a.labels.contains(l), |l: &Label| b.labels.contains(l));
        let batch = pick(&|l| kept.contains(l) && in_a(l) && in_b(l));
        let rows = pick(&|l| kept.contains(l) && in_a(l) && !in_b(l));
        let columns = pick(&|l| kept.contains(l) && !in_a(l) && in_b(l));
        let summed = pick(&|l| !kept.contains(l));
        let size = |labels: &[Label]| labels.iter().try_fold(1usize, |n, l| n.checked_mul(extent(l)));
        let too_large = || value_error("a product of the operands is larger than the address space");
        let sizes = [&batch, &rows, &columns, &summed].map(|labels| size(labels));
        let [Some(count), Some(m), Some(n), Some(k)] = sizes else { return Err(too_large()) };
        let order = |parts: [&[Label]; 3]| parts.concat();
        let extents = |order: &[Label]| order.iter().map(extent).collect::<Vec<usize>>();
        let left = order([&batch, &rows, &summed]);
        // A right operand that has its columns first is read as it is.
        let turned = b.labels == order([&batch, &columns, &summed]);
        let right = if turned { order([&batch, &columns, &summed]) } else { order([&batch, &summed, &columns]) };
        let left_values = a.gathered(par, x, &left, &extents(&left))?;
        let right_values = b.gathered(par, y, &right, &extents(&right))?;
        let made = order([&batch, &rows, &columns]);
        let total = count.checked_mul(m).and_then(|v| v.checked_mul(n)).ok_or_else(too_large)?;
        let made = Operand { shape: extents(&made), labels: made };
        let shape = Gemm { batch: count, transpose_b: turned, ..Gemm::new(m, n, k) };
        Ok(Product { left: left_values, right: right_values, shape, made, size: total })
    }

    fn run(&self, par: &dyn Par, isa: Isa, result: &mut [T]) {
        if self.shape.k == 0 {
            return result.fill(T::ZERO);
        }
        let Gemm { batch, m, n, k, .. } = self.shape;
        if k == 1 {
            let (left, right, all) = ([batch, m, 1], [batch, 1, n], [batch, m, n]);
            return binary_broadcast(par, Binary::Mul, &self.left, &left, &self.right, &right, result, &all);
        }
        gemm(par, self.shape.on(isa), &self.left, &self.right, result);
    }
}
