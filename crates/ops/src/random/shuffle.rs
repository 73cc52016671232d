//! `_shuffle`: rows in random order.

use super::key;
use crate::prelude::*;
use mxrt_kernels::random::{permutation, shuffle};

/// Rows of the table.
pub static OPS: &[OpDef] = &[OpDef {
    name: "_shuffle",
    aliases: &["_npi_shuffle", "shuffle"],
    doc: "The slices along the first axis in random order.",
    ignores_unknown_attrs: true,
    bind,
    form: |_, _| Ok(Some(KernelForm::Draw(DrawForm::Shuffle))),
    random: true,
    ..OpDef::BASE
}];

fn bind(_: &Attrs, signature: &Signature<'_>) -> BoundKernel {
    let rows = signature.inputs[0].shape.first().copied().unwrap_or(1);
    let row_bytes = signature.inputs[0].bytes().checked_div(rows).unwrap_or(0).max(1);
    Ok(kernel_fn(signature, move |call| {
        let RandomKey { seed, position } = key(call)?;
        let (x, out) = (call.inputs[0].bytes(), call.outputs[0].bytes_mut());
        match row_bytes {
            4 => in_place::<4>(seed, position, x, out),
            8 => in_place::<8>(seed, position, x, out),
            _ => {
                let mut order = Scratch::<usize>::new(call.par, rows);
                permutation(seed, position, &mut order);
                for (to, from) in out.chunks_mut(row_bytes).zip(order.iter()) {
                    to.copy_from_slice(&x[from * row_bytes..][..row_bytes]);
                }
            }
        }
        Ok(())
    }))
}

/// Exchanges rows of `N` bytes, as the order of places is made.
fn in_place<const N: usize>(seed: u64, position: u64, x: &[u8], out: &mut [u8]) {
    out.copy_from_slice(x);
    shuffle(seed, position, out.as_chunks_mut::<N>().0);
}

#[cfg(test)]
mod tests {
    use crate::testing::{OpTest, f16s, f32s};

    #[test]
    fn rows_of_every_width_come_in_the_same_order() {
        let numbers: Vec<f32> = (0..200).map(|i| i as f32).collect();
        let single = f32s(&OpTest::new("_shuffle").f32([200], &numbers).run(), [200]);
        assert_ne!(single, numbers);
        assert_eq!(f16s(&OpTest::new("_shuffle").f16([200], &numbers).run(), [200]), single);
        let pairs: Vec<f32> = numbers.iter().flat_map(|v| [*v, -v]).collect();
        let pairs = f32s(&OpTest::new("_shuffle").f32([200, 2], &pairs).run(), [200, 2]);
        assert!(pairs.iter().step_by(2).eq(&single) && pairs.chunks(2).all(|pair| pair[0] == -pair[1]));
    }
}
