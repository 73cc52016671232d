//! A depthwise convolution and the 1x1 convolution that reads it, computed together: a band of rows of the depthwise result goes
//! to a scratch that the second-level cache holds, and from there into the sums. The whole map never travels.
//!
//! Bands are the chunks of the 1x1 convolution alone, so that every output is summed as if both had run one after the other.

use super::bf16::Bf16;
use super::blocked::{Blocked, BlockedMut, BlockedShape, Halo};
use super::depthwise::{Depthwise, OutputRows};
use super::direct::{Chunk, Cut, Direct, InputRows};
use super::job::{ConvEpilogue, Expected, FirstEpilogue, Job};
use super::kernel::{Algorithm, ConvKernel};
use super::params::Conv2dParams;
use super::strassen::Strassen;
use super::table::ConvSignature;
use crate::cache_class::CacheClass;
use crate::par::Par;
use crate::simd::{Dst, LANES};

/// Two joined convolutions, prepared for one input shape and instruction set.
#[derive(Clone, Debug)]
pub struct JoinedKernel {
    first: ConvKernel,
    depthwise: Depthwise,
    then: ConvKernel,
    pointwise: Pointwise,
}

/// How the 1x1 convolution is computed.
#[derive(Clone, Debug)]
enum Pointwise {
    Direct(Direct),
    Bf16(Bf16),
    Strassen(Strassen),
}

impl Pointwise {
    /// How the 1x1 convolution alone cuts its work.
    fn cut(&self, images: usize) -> Cut {
        match self {
            Pointwise::Direct(direct) => direct.cut(images),
            Pointwise::Bf16(rounded) => rounded.direct().cut(images),
            Pointwise::Strassen(products) => products.cut(images),
        }
    }

    fn chunk(&self, cut: &Cut, index: usize) -> Chunk {
        match self {
            Pointwise::Direct(direct) => direct.chunk(cut, index),
            Pointwise::Bf16(rounded) => rounded.direct().chunk(cut, index),
            Pointwise::Strassen(products) => products.chunk(cut, index),
        }
    }

    fn most_rows(&self) -> usize {
        match self {
            Pointwise::Direct(direct) => direct.most_rows(),
            Pointwise::Bf16(rounded) => rounded.direct().most_rows(),
            Pointwise::Strassen(products) => products.most_rows(),
        }
    }

    /// Bytes that a chunk needs.
    fn scratch(&self, cut: &Cut) -> usize {
        match self {
            Pointwise::Bf16(rounded) => rounded.chunk_scratch(cut),
            Pointwise::Direct(_) | Pointwise::Strassen(_) => cut.scratch,
        }
    }

    fn run_chunk(&self, job: &Job<'_>, chunk: &Chunk, from: InputRows, scratch: &mut [u8]) {
        match self {
            Pointwise::Direct(direct) => direct.run_chunk(job, chunk, from, scratch),
            Pointwise::Bf16(rounded) => rounded.run_chunk(job, chunk, from, scratch),
            Pointwise::Strassen(products) => products.run_chunk(job, chunk, from, scratch),
        }
    }
}

impl JoinedKernel {
    /// Joins `first` and `then`, which reads its output; none unless they are a depthwise and a 1x1 convolution, the map between
    /// them is too large for the second-level cache, and the weights stay there.
    pub fn join(first: &ConvKernel, then: &ConvKernel) -> Option<JoinedKernel> {
        let bytes = first.output_shape().image_len() * size_of::<f32>();
        if bytes > CacheClass::detect().bytes() { JoinedKernel::possible(first, then) } else { None }
    }

    /// The same for a map of any size.
    pub(super) fn possible(first: &ConvKernel, then: &ConvKernel) -> Option<JoinedKernel> {
        let Algorithm::Depthwise(depthwise) = &first.algorithm else { return None };
        let Conv2dParams { kernel, stride, pad, groups, .. } = *then.params();
        let reads_pixels = kernel == [1, 1] && stride == [1, 1] && pad == [0, 0] && groups == 1;
        let map = first.output_shape();
        if !reads_pixels || then.input_shape() != map || first.isa() != then.isa() {
            return None;
        }
        let pointwise = match &then.algorithm {
            Algorithm::Direct(direct) => Pointwise::Direct(direct.clone()),
            Algorithm::Bf16(rounded) => Pointwise::Bf16(rounded.clone()),
            Algorithm::Strassen(products) if products.by_rows() => Pointwise::Strassen(products.clone()),
            _ => return None,
        };
        // Where a chunk makes some of the output channels only, the depthwise result would be computed many times.
        let by_rows = pointwise.cut(map.n).by_rows();
        by_rows.then(|| JoinedKernel {
            first: first.clone(),
            depthwise: depthwise.clone(),
            then: then.clone(),
            pointwise,
        })
    }

    /// Both algorithms.
    pub fn name(&self) -> String {
        format!("depthwise + {}", self.then.name())
    }

    /// The input with the least halo that is read.
    pub fn input_shape(&self) -> BlockedShape {
        self.first.input_shape()
    }

    /// The output without halo; it may be given any.
    pub fn output_shape(&self) -> BlockedShape {
        self.then.output_shape()
    }

    /// Signatures of both, under which tables have them.
    pub fn signatures(&self) -> [ConvSignature; 2] {
        [self.first.signature(), self.then.signature()]
    }

    /// The two convolutions.
    pub fn parts(&self) -> [&ConvKernel; 2] {
        [&self.first, &self.then]
    }

    /// Elements of the packed weights of the first, to whole cache lines.
    fn first_packed_len(&self) -> usize {
        self.first.packed_len().next_multiple_of(LANES)
    }

    /// Elements of the packed weights of both.
    pub fn packed_len(&self) -> usize {
        self.first_packed_len() + self.then.packed_len()
    }

    /// Packs the weights of both.
    ///
    /// # Panics
    /// If anything does not have the length that the parameters and [`packed_len`](Self::packed_len) say.
    pub fn pack(&self, first: &[f32], then: &[f32], packed: &mut [f32]) {
        let (packed_first, packed_then) = packed.split_at_mut(self.first_packed_len());
        self.first.pack(first, packed_first);
        self.then.pack(then, packed_then);
    }

    /// Convolves twice; writes all of `y`, its halo included.
    ///
    /// # Panics
    /// If an operand does not have the shape that [`input_shape`](Self::input_shape) and
    /// [`output_shape`](Self::output_shape) say, up to a larger halo.
    pub fn run(
        &self,
        x: Blocked<'_>,
        packed: &[f32],
        first: FirstEpilogue<'_>,
        then: ConvEpilogue<'_>,
        y: &mut BlockedMut<'_>,
        par: &dyn Par,
    ) {
        let (packed_first, packed_then) = packed.split_at(self.first_packed_len());
        let map = self.first.output_shape();
        assert!(first.bias.is_none_or(|b| b.len() == map.c), "the bias of the first needs {} elements", map.c);
        let expected = Expected { x: self.input_shape(), y: self.output_shape(), packed_len: self.then.packed_len() };
        let job = Job::new(&expected, x, packed_then, then, y);
        let cut = self.pointwise.cut(map.n);
        let band = |rows: usize| BlockedShape::new(1, map.c, rows, map.w, Halo::default());
        let map_bytes = band(self.pointwise.most_rows()).len() * size_of::<f32>();
        let bytes = map_bytes + self.depthwise.taps_bytes().max(self.pointwise.scratch(&cut));
        par.run(cut.chunks(), bytes, &|chunk, scratch| {
            let (map, scratch) = scratch.split_at_mut(map_bytes);
            let chunk = self.pointwise.chunk(&cut, chunk);
            let shape = band(chunk.rows.len());
            let map = Dst::new(bytemuck::cast_slice_mut(map));
            let first = job.of_first(packed_first, first, map, shape);
            let taps = self.depthwise.fill_taps(&first, scratch);
            for block in 0..shape.blocks() {
                let to = OutputRows { image: 0, first: chunk.rows.start };
                self.depthwise.rows(&first, taps, chunk.image, block, chunk.rows.clone(), to);
            }
            let from = InputRows { image: 0, first: chunk.rows.start };
            self.pointwise.run_chunk(&job.with_input(map.as_src(), shape), &chunk, from, scratch);
        });
    }
}
