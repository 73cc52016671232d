//! `_linalg_maketrian`, `_linalg_extracttrian`: triangles of matrices as vectors.

use super::diagonal::diagonal_len;
use super::{form, square_matrices};
use crate::prelude::*;
use mxrt_kernels::par::par_chunks_mut;

const ATTRS: &[AttrDef] = &[
    AttrDef::new(
        "offset",
        AttrKind::Int,
        "0",
        "The diagonal at which the triangle begins: a positive one has the upper triangle after \
         it, a negative one the lower.",
    ),
    AttrDef::new("lower", AttrKind::Bool, "True", "Which triangle is meant where offset is 0."),
];

/// Rows of the table.
pub static OPS: &[OpDef] = &[
    OpDef {
        name: "_linalg_maketrian",
        aliases: &["linalg_maketrian"],
        doc: "Matrices with the last axis of A as a triangle, and zeros elsewhere.\n\nA lower \
              triangle is filled row by row, an upper one column by column.",
        inputs: Inputs::Fixed(&["A"]),
        attrs: ATTRS,
        infer_shape: |shapes| {
            let Some(mut dims) = shapes.dims(0) else { return Ok(()) };
            let Some(last) = dims.pop() else { return Err(shape_error("A must have an axis at least")) };
            let far = shapes.attrs.int("offset").unsigned_abs() as usize;
            let order = last.map(|n| triangle_order(n, far)).transpose()?;
            dims.extend([order, order]);
            shapes.set_output(0, PartialShape::from_dims(dims))
        },
        bind: |attrs, signature| bind(attrs, signature, false),
        form: |attrs, signature| {
            let made = triangle(attrs, &signature.outputs[0].shape, &signature.inputs[0].shape);
            form(MatrixForm::MakeTriangles(made), signature)
        },
        ..OpDef::BASE
    },
    OpDef {
        name: "_linalg_extracttrian",
        aliases: &["linalg_extracttrian"],
        doc: "A triangle of square matrices as a vector.\n\nA lower triangle is read row by row, \
              an upper one column by column.",
        inputs: Inputs::Fixed(&["A"]),
        attrs: ATTRS,
        infer_shape: |shapes| {
            let Some((mut dims, order)) = square_matrices(shapes, 0, "A")? else { return Ok(()) };
            let offset = shapes.attrs.int("offset");
            let side = order.map(|n| diagonal_len(n, offset)).transpose()?;
            dims.push(side.map(|n| Ok::<_, OpError>(checked_product(&[n, n])? / 2 + n.div_ceil(2))).transpose()?);
            shapes.set_output(0, PartialShape::from_dims(dims))
        },
        bind: |attrs, signature| bind(attrs, signature, true),
        form: |attrs, signature| {
            let read = triangle(attrs, &signature.inputs[0].shape, &signature.outputs[0].shape);
            form(MatrixForm::ExtractTriangles(read), signature)
        },
        ..OpDef::BASE
    },
];

/// Rows of matrices whose triangle has `elements` elements and begins `far` from the diagonal.
fn triangle_order(elements: usize, far: usize) -> Result<usize, OpError> {
    let side = ((8.0 * elements as f64 + 1.0).sqrt() / 2.0 - 0.5).round() as usize;
    if side.checked_add(1).and_then(|next| side.checked_mul(next)) != elements.checked_mul(2) {
        return Err(shape_error(format!("no triangle has {elements} elements, the size of the last axis of A")));
    }
    side.checked_add(far).ok_or_else(|| shape_error("offset is too large"))
}

/// The triangle that the attributes name, of matrices and vectors of these shapes.
fn triangle(attrs: &Attrs, matrix: &Shape, vector: &Shape) -> Triangle {
    let (offset, lower) = (attrs.int("offset"), attrs.bool("lower"));
    let [order, count] = [matrix, vector].map(|shape| shape.last().copied().unwrap_or(0));
    let upper = offset > 0 || (offset == 0 && !lower);
    Triangle { order, count, far: offset.unsigned_abs() as usize, upper }
}

fn bind(attrs: &Attrs, signature: &Signature<'_>, extract: bool) -> BoundKernel {
    let (input, output) = (&signature.inputs[0].shape, &signature.outputs[0].shape);
    let [matrix, vector] = if extract { [input, output] } else { [output, input] };
    let Triangle { order, count, far, upper } = triangle(attrs, matrix, vector);
    // Places of the triangle in its matrix, in the order of the vector.
    let place = move |row: usize, column: usize| {
        if upper { column * order + row + far } else { (row + far) * order + column }
    };
    let places = move || (0..order.saturating_sub(far)).flat_map(move |row| (0..=row).map(move |c| place(row, c)));
    dispatch!(signature.inputs[0].dtype, wide, T => Ok(kernel_fn(signature, move |call| {
        let a = elements::<T>(&call.inputs[0])?;
        let out = elements_mut::<T>(&mut call.outputs[0])?;
        if extract {
            par_chunks_mut(call.par, out, count, |i, out| {
                out.iter_mut().zip(places()).for_each(|(out, at)| *out = a[i * order * order + at]);
            });
        } else {
            par_chunks_mut(call.par, out, order * order, |i, out| {
                out.fill(T::ZERO);
                a[i * count..][..count].iter().zip(places()).for_each(|(v, at)| out[at] = *v);
            });
        }
        Ok(())
    })))
}

#[cfg(test)]
mod tests {
    use crate::testing::{OpTest, assert_close, f32s};

    fn make(attrs: &[(&str, &str)]) -> OpTest {
        OpTest::new("linalg_maketrian").attrs(attrs)
    }

    #[test]
    fn triangles_are_made_and_taken() {
        let vector = [1.0, 2.0, 3.0];
        for (attrs, order, want) in [
            (vec![], 2, vec![1.0, 0.0, 2.0, 3.0]),
            (vec![("lower", "False")], 2, vec![1.0, 2.0, 0.0, 3.0]),
            (vec![("offset", "1")], 3, vec![0.0, 1.0, 2.0, 0.0, 0.0, 3.0, 0.0, 0.0, 0.0]),
            (vec![("offset", "-1")], 3, vec![0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 2.0, 3.0, 0.0]),
        ] {
            let matrix = make(&attrs).f32([1, 3], &vector).run();
            assert_close(&f32s(&matrix, [1, order, order]), &want);
            let test = OpTest::new("linalg_extracttrian").attrs(&attrs);
            assert_close(&f32s(&test.array(matrix).run(), [1, 3]), &vector);
        }
        let error = make(&[]).f32([4], &[0.0; 4]).error();
        assert!(error.message.contains("no triangle has 4 elements"), "{}", error.message);
    }
}
