//! The interface of a convolution method, and of its result for one layer.

use crate::blocked::Halo;
use crate::conv::methods::METHODS;
use crate::conv::operands::ConvJob;
use crate::conv::options::Winograd;
use crate::conv::table::ConvSignature;
use crate::par::Par;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::ops::Range;
use std::str::FromStr;
use std::sync::Arc;

/// A way to compute convolutions. `methods/mod.rs` lists all of them.
pub(in crate::conv) trait ConvMethod: Sync {
    /// The word for it in tables and plans.
    fn name(&self) -> &'static str;

    /// The lowest setting of [`Winograd`] that allows it. Any but `Off` means that inputs, filters
    /// and outputs are transformed.
    fn needs(&self) -> Winograd {
        Winograd::Off
    }

    /// Whether values are rounded to bf16 before they are multiplied. Only signatures of that
    /// precision have such methods.
    fn rounds(&self) -> bool {
        false
    }

    /// Whether it computes on the tiles of AMX.
    fn tiles(&self) -> bool {
        false
    }

    /// Whether it can compute the convolution.
    fn fits(&self, signature: &ConvSignature) -> bool;

    /// Expected microseconds on one core; none where it is slower than direct convolution by all
    /// that was measured. `out` is the number of rows and columns of the output.
    fn cost(&self, signature: &ConvSignature, out: [usize; 2]) -> Option<f64>;

    /// Prepares the method for a convolution that it fits. With `in_blocks` the input is in blocks
    /// of 16 channels, however few it has.
    fn prepare(&self, signature: &ConvSignature, out: [usize; 2], in_blocks: bool) -> Arc<dyn PreparedConv>;
}

/// A method prepared for one signature: how it packs weights and cuts its work.
pub(in crate::conv) trait PreparedConv: fmt::Debug + Send + Sync {
    /// The name, with tile and instruction set, such as `direct 14x2 avx512`.
    fn name(&self) -> String;

    /// The form of packed weights of a convolution of these channels, kernel and groups.
    fn packing(&self) -> String;

    /// The zeros that it reads around an image of this size.
    fn input_halo(&self, size: [usize; 2]) -> Halo;

    /// Whether input channels come as planes and not in blocks.
    fn takes_planes(&self) -> bool {
        false
    }

    /// Elements of the packed weights.
    fn packed_len(&self) -> usize;

    /// Packs weights `[out_channels][in_channels / groups][height][width]`.
    fn pack(&self, weights: &[f32], packed: &mut [f32]);

    /// The inverse of packing, if packing keeps weights unchanged.
    fn unpacker(&self) -> Option<&dyn UnpackWeights> {
        None
    }

    /// Whether input, residual and output may be in lines of bf16 instead of blocks, each of them.
    fn takes_lines(&self) -> bool {
        false
    }

    /// Elements of scratch memory that all chunks of a run share.
    fn scratch_len(&self) -> usize {
        0
    }

    /// Convolves.
    fn run(&self, job: &ConvJob<'_>, scratch: &mut [f32], par: &dyn Par);

    /// The convolution of an image band by band, if that is possible and may pay.
    fn bands(&self) -> Option<&dyn ConvBands> {
        None
    }
}

/// Packed weights that can be had back bit for bit, except for digits that a method says it loses.
pub(in crate::conv) trait UnpackWeights {
    /// The weights of some output channels as they were before they were packed.
    fn unpack(&self, packed: &[f32], outputs: Range<usize>, weights: &mut [f32]);
}

/// Convolving an image in bands of rows.
pub(in crate::conv) trait ConvBands {
    /// The number of rows of which the beginning of a band must be a multiple.
    fn row_step(&self) -> usize;

    /// Whether a band that two threads compute costs less than pooling at once saves.
    fn may_repeat(&self) -> bool {
        true
    }

    /// The convolution of one of `count` bands with `out` rows and columns of outputs, on the same
    /// packed weights; none if that does not pay.
    fn band(&self, out: [usize; 2], count: usize) -> Option<ConvBand>;
}

/// The convolution of one band.
#[derive(Clone, Debug)]
pub(in crate::conv) struct ConvBand {
    pub conv: Arc<dyn PreparedConv>,
    /// Bytes of scratch memory of a chunk. No chunk shares any with others.
    pub chunk_bytes: usize,
}

/// A method of convolution by name. Parses from that name.
#[derive(Clone, Copy)]
pub struct Method(pub(in crate::conv) &'static dyn ConvMethod);

impl Method {
    /// Every method: the one to be preferred first, direct convolution last.
    pub fn all() -> impl ExactSizeIterator<Item = Method> {
        METHODS.iter().copied().map(Method)
    }

    /// The word for it in tables.
    pub fn name(self) -> &'static str {
        self.0.name()
    }

    /// Whether inputs, filters and outputs are transformed so that fewer numbers are multiplied.
    pub fn transforms(self) -> bool {
        self.0.needs() != Winograd::Off
    }

    /// Whether values are rounded to bf16 before they are multiplied.
    pub fn rounds(self) -> bool {
        self.0.rounds()
    }

    /// Whether it computes on the tiles of AMX.
    pub fn tiles(self) -> bool {
        self.0.tiles()
    }
}

impl PartialEq for Method {
    fn eq(&self, other: &Self) -> bool {
        self.name() == other.name()
    }
}

impl Eq for Method {}

impl Hash for Method {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.name().hash(state);
    }
}

impl fmt::Debug for Method {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Method({})", self.name())
    }
}

impl fmt::Display for Method {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Method {
    type Err = String;

    fn from_str(s: &str) -> Result<Self, Self::Err> {
        let found = Method::all().find(|method| method.name() == s);
        found.ok_or_else(|| {
            let known: Vec<&str> = Method::all().map(Method::name).collect();
            format!(
                "`{s}` is not a method of convolution; known: {}. Tables of another version have \
                 to be measured again",
                known.join(", ")
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn names_are_unique_words_and_the_last_method_is_direct_convolution() {
        let names: BTreeSet<&str> = Method::all().map(Method::name).collect();
        assert_eq!(names.len(), Method::all().len());
        assert!(names.iter().all(|name| !name.contains(char::is_whitespace) && name.parse::<Method>().is_ok()));
        assert_eq!(Method::all().last().map(Method::name), Some("direct"));
    }
}
