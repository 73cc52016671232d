//! The integer products of convolutions and dense layers, with packed weights.

use crate::nn::convolution::ConvGeometry;
use crate::prelude::*;
use mxrt_kernels::int8::{Epilogue, Int8Conv, Int8ConvOperands, Int8Gemm, Int8Result, Level, PixelForm, Rows};
use mxrt_kernels::par::Par;
use mxrt_kernels::window::three;
use mxrt_tensor::TensorRef;

/// A layer whose sums are products of bytes.
pub(crate) enum Int8Layer {
    /// Windows of images by filters.
    Conv(Box<Int8Conv>),
    /// Rows by the rows of the weights.
    Dense {
        /// the product
        gemm: Int8Gemm,
        /// rows, inputs, outputs
        size: [usize; 3],
    },
}

impl Int8Layer {
    /// A convolution of data with this shape, of planes or pixels.
    pub fn convolution(
        geometry: &ConvGeometry,
        data: &Shape,
        out: &Shape,
        options: &KernelOptions,
        pixels: Option<PixelForm>,
    ) -> Int8Layer {
        Int8Layer::Conv(Box::new(Int8Conv {
            batch: data[0],
            channels: data[1],
            filters: geometry.filters,
            groups: geometry.groups,
            input: three(&data[2..], 1),
            output: three(&out[2..], 1),
            kernel: three(&geometry.kernel, 1),
            stride: three(&geometry.stride, 1),
            pad: three(&geometry.pad, 0),
            dilate: three(&geometry.dilate, 1),
            level: options.byte_level(),
            pixels,
        }))
    }

    /// A dense layer with weights of this shape.
    pub fn dense(weight: &Shape, out: &Shape, options: &KernelOptions) -> Result<Int8Layer, OpError> {
        let [outputs, inputs] = weight[..] else { return Err(wrong_arity()) };
        let rows = out.size() / outputs.max(1);
        Ok(Int8Layer::Dense {
            gemm: Int8Gemm::new(outputs, inputs, options.byte_level()),
            size: [rows, inputs, outputs],
        })
    }

    /// Channels of the output.
    pub fn filters(&self) -> usize {
        match self {
            Int8Layer::Conv(conv) => conv.filters,
            Int8Layer::Dense { size, .. } => size[2],
        }
    }

    fn level(&self) -> Level {
        match self {
            Int8Layer::Conv(conv) => conv.level(),
            Int8Layer::Dense { gemm, .. } => gemm.level(),
        }
    }

    /// Bytes of the packed weights; an error if those of a copied image cannot be counted, either.
    pub fn packed_len(&self) -> Result<usize, OpError> {
        if let Int8Layer::Conv(conv) = self
            && conv.workspace_len().is_none()
        {
            return Err(shape_error(format!(
                "an image with its padding is larger than the address space: input {:?}, pad {:?}, stride {:?}; \
                 use a smaller pad or stride",
                conv.input, conv.pad, conv.stride
            )));
        }
        let len = match self {
            Int8Layer::Conv(conv) => conv.packed_len(),
            Int8Layer::Dense { gemm, .. } => gemm.packed_len(),
        };
        len.ok_or_else(|| shape_error("the weights are larger than the address space"))
    }

    /// Packs weights.
    pub fn pack(&self, weights: &[i8], out: &mut [u8]) {
        match self {
            Int8Layer::Conv(conv) => conv.pack(weights, out),
            Int8Layer::Dense { gemm, .. } => gemm.pack(weights, out),
        }
    }

    /// Bytes of memory that [`run`](Self::run) needs for as long as it runs.
    pub fn workspace(&self) -> usize {
        match self {
            // That it can be counted was seen with the weights.
            Int8Layer::Conv(conv) => conv.workspace_len().unwrap_or(usize::MAX),
            Int8Layer::Dense { .. } => 0,
        }
    }

    /// Computes the results of all sums. Only a convolution has an addend.
    pub fn run<T: Int8Result>(&self, par: &dyn Par, x: &Int8ConvOperands<'_, T>, out: &mut [T], workspace: &mut [u8]) {
        match self {
            Int8Layer::Conv(conv) => conv.run(par, x, out, workspace),
            Int8Layer::Dense { gemm, .. } => gemm.run(par, x.data, x.packed, x.epilogue, out),
        }
    }

    /// Name in plans.
    pub fn describe(&self) -> String {
        let form = match self {
            Int8Layer::Conv(conv) => conv.pixels,
            Int8Layer::Dense { .. } => None,
        };
        let pixels = form.map_or("", |form| if form.data.is_some() { ", pixels" } else { ", to pixels" });
        self.packing() + pixels
    }

    /// Name in the keys of packed weights.
    pub fn packing(&self) -> String {
        match self {
            Int8Layer::Conv(conv) => {
                let Int8Conv { channels, filters, groups, kernel: [d, h, w], .. } = &**conv;
                let method = conv.method().map_or(String::new(), |method| format!(" {method}"));
                format!("int8 {} {channels}>{filters}/{groups} {d}x{h}x{w}{method}", self.level().name())
            }
            Int8Layer::Dense { size: [_, inputs, outputs], .. } => {
                format!("int8 {} {inputs}x{outputs}", self.level().name())
            }
        }
    }

    /// Products of the layer.
    pub fn multiply_adds(&self) -> u64 {
        let factors = match self {
            Int8Layer::Conv(conv) => {
                let taps: usize = conv.kernel.iter().product();
                let pixels: usize = conv.output.iter().product();
                [conv.batch * conv.filters, pixels, taps * conv.channels / conv.groups]
            }
            Int8Layer::Dense { size, .. } => *size,
        };
        factors.iter().fold(1u64, |n, f| n.saturating_mul(*f as u64))
    }

    /// Estimated time on one core.
    pub fn cost_ns(&self) -> u64 {
        products_cost_ns(self.level(), self.multiply_adds())
    }
}

/// Estimated time of products of bytes on one core.
pub(crate) fn products_cost_ns(level: Level, multiply_adds: u64) -> u64 {
    let rate = match level {
        Level::Portable => 2,
        // Two instructions in a cycle, two thirds of the time; not measured.
        Level::DotProd | Level::I8mm => 60,
        Level::Avx2 => 65,
        Level::Vnni => 200,
        Level::Tiles => 600,
    };
    1_000 + multiply_adds / rate
}

/// The bytes of an array of integers.
pub(crate) fn rows<'a>(data: &TensorRef<'a>) -> Rows<'a> {
    Rows { bytes: data.bytes(), signed: data.dtype == DType::I8 }
}

/// A layer without an addend.
pub(crate) fn operands<'a, T>(
    data: Rows<'a>,
    packed: &'a [u8],
    epilogue: &'a dyn Epilogue<T>,
) -> Int8ConvOperands<'a, T> {
    Int8ConvOperands { data, addend: None, packed, epilogue }
}

/// A layer whose second input is its weights, which are packed once.
pub(crate) struct PackedLayer {
    pub layer: Int8Layer,
    len: usize,
}

impl PackedLayer {
    pub fn new(layer: Int8Layer) -> Result<PackedLayer, OpError> {
        let len = layer.packed_len()?;
        Ok(PackedLayer { layer, len })
    }

    /// The packed weights of a call.
    pub fn weights<'a>(&self, call: &KernelCall<'a, '_>) -> Result<&'a [u8], OpError> {
        packed_elements::<u8>(call.packed.ok_or_else(wrong_arity)?, self.len)
    }
}

impl Packing for PackedLayer {
    fn inputs(&self) -> &[usize] {
        &[1]
    }

    fn bytes(&self) -> usize {
        self.len
    }

    fn pack(&self, _: &dyn Par, inputs: &[TensorRef<'_>], out: &mut [u8]) -> Result<(), OpError> {
        let [weight] = inputs else { return Err(wrong_arity()) };
        self.layer.pack(elements(weight)?, out.get_mut(..self.len).ok_or_else(wrong_arity)?);
        Ok(())
    }

    fn key(&self) -> String {
        self.layer.packing()
    }
}
