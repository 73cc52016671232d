//! The types of results, and the products compiled for each of them here: in other crates, small
//! functions of their loops would not be inlined.

use super::{Epilogue, HeadProducts, Int8Attention, Int8Conv, Int8ConvOperands, Int8Gemm, RoundTo, Rows};
use crate::par::Par;

/// A type of results.
pub trait Int8Result: RoundTo {
    /// Runs [`Int8Conv::run`].
    #[doc(hidden)]
    fn convolve(conv: &Int8Conv, par: &dyn Par, x: &Int8ConvOperands<'_, Self>, out: &mut [Self], workspace: &mut [u8]);

    /// Runs [`Int8Gemm::run`].
    #[doc(hidden)]
    fn multiply(
        gemm: &Int8Gemm,
        par: &dyn Par,
        rows: Rows<'_>,
        packed: &[u8],
        epilogue: &dyn Epilogue<Self>,
        out: &mut [Self],
    );

    /// Runs [`Int8Attention::run`].
    #[doc(hidden)]
    fn attend(
        attention: &Int8Attention,
        par: &dyn Par,
        projections: &[i8],
        products: HeadProducts<'_>,
        factor: f32,
        out: &mut [Self],
    );
}

macro_rules! results {
    ($($type:ty),*) => {$(
        impl Int8Result for $type {
            fn convolve(
                conv: &Int8Conv,
                par: &dyn Par,
                x: &Int8ConvOperands<'_, $type>,
                out: &mut [$type],
                workspace: &mut [u8],
            ) {
                conv.run_as(par, x, out, workspace);
            }

            fn multiply(
                gemm: &Int8Gemm,
                par: &dyn Par,
                rows: Rows<'_>,
                packed: &[u8],
                epilogue: &dyn Epilogue<$type>,
                out: &mut [$type],
            ) {
                gemm.run_as(par, rows, packed, epilogue, out);
            }

            fn attend(
                attention: &Int8Attention,
                par: &dyn Par,
                projections: &[i8],
                products: HeadProducts<'_>,
                factor: f32,
                out: &mut [$type],
            ) {
                attention.run_as(par, projections, products, factor, out);
            }
        }
    )*};
}
results!(u8, i8, i32, f32);
