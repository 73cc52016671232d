//! Layouts of operands: plain row-major arrays, or channels in blocks with a halo of zeros around
//! every image: 16 of float32, or all of bytes.
//!
//! In bf16, layers on tiles (AMX) may keep their data in lines of 32 channels, which take the room of
//! a block. Bytes are in pixels: all channels of a pixel are one block.
//!
//! Inside a plan a blocked value is an ordinary array of shape `(n, blocks, rows, columns, block)`;
//! what it stands for is written into the attributes of the nodes that make and read it. The graph
//! decides where blocked values are worth it by asking
//! [`Rewrites::blocked_form`](super::Rewrites::blocked_form), and knows no more about layouts than
//! this file.

use crate::definition::{AttrDef, AttrKind, Attrs};
use mxrt_engine::{FailureKind, OpError};
use mxrt_kernels::blocked::{BLOCK, BlockedShape, Halo, LINE_CHANNELS, PIXEL};
use mxrt_tensor::Shape;

/// Numbers per operand in the attributes.
const FIELDS: usize = 9;

/// A blocked layout of `(n, channels, height, width)`, or of `(n, channels, width)`, which are
/// images of height 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct BlockedLayout {
    /// spatial axes of the plain array: 1 or 2
    pub axes: usize,
    /// channels stored side by side: 16, 1 for planes, or 32 for lines of bf16; 64 for pixels of
    /// bytes, which are multiples of that
    pub block: usize,
    /// channels
    pub channels: usize,
    /// rows of an image
    pub height: usize,
    /// columns of an image
    pub width: usize,
    /// zeros above, to the left, below and to the right
    pub halo: [usize; 4],
}

/// The memory layout of an operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Layout {
    /// row-major, as everywhere outside plans
    Plain,
    /// layout in blocks of channels
    Blocked(BlockedLayout),
}

/// An operator's offer to work on blocked operands.
#[derive(Clone, Debug)]
pub struct BlockedForm {
    /// the (internal) operator that does it; it takes the attributes of this one, and the layouts
    pub op: &'static str,
    /// layout that it needs of each input; blocked ones may have a larger halo
    pub inputs: Vec<Layout>,
    /// layout that it needs of its first input if that is blocked already, unless it is the same
    pub from_blocked: Option<BlockedLayout>,
    /// how it leaves its output, whose halo may be chosen
    pub output: Layout,
    /// whether it is worth converting plain inputs for; otherwise it is used where an input is
    /// blocked already
    pub starts: bool,
}

/// Whether an operand may be in lines of bf16.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lines {
    /// blocks of float32 only
    Never,
    /// lines are possible
    Takes,
    /// lines make less work
    Gains,
}

/// The operands of a blocked operator that may be in lines of bf16 instead of blocks of float32.
#[derive(Clone, Debug)]
pub struct LinesForm {
    /// each input
    pub inputs: Vec<Lines>,
    /// whether the output may be
    pub output: bool,
    /// whether all operands have to be alike, with channels that fill lines
    pub alike: bool,
}

impl BlockedLayout {
    /// The layout of a kernel's shape, for plain arrays with `axes` spatial axes.
    pub fn of(shape: BlockedShape, axes: usize) -> BlockedLayout {
        let BlockedShape { c, h, w, halo, block, .. } = shape;
        let halo = [halo.top, halo.left, halo.bottom, halo.right];
        BlockedLayout { axes, block, channels: c, height: h, width: w, halo }
    }

    /// Blocks of 16 channels without halo, for an image of `(n, c, h, w)` or `(n, c, w)`.
    pub fn plain_image(shape: &[usize]) -> Option<BlockedLayout> {
        let (axes, channels, height, width) = match *shape {
            [_, channels, width] => (1, channels, 1, width),
            [_, channels, height, width] => (2, channels, height, width),
            _ => return None,
        };
        (!shape.contains(&0)).then_some(BlockedLayout { axes, block: BLOCK, channels, height, width, halo: [0; 4] })
    }

    /// Pixels of bytes without halo, for an image of `(n, c, h, w)` or `(n, c, w)`.
    pub fn pixels(shape: &[usize]) -> Option<BlockedLayout> {
        BlockedLayout::plain_image(shape).map(|layout| BlockedLayout { block: PIXEL, ..layout })
    }

    /// The layout with a halo that serves both.
    pub fn with_halo_of(mut self, other: &BlockedLayout) -> BlockedLayout {
        for (mine, theirs) in self.halo.iter_mut().zip(other.halo) {
            *mine = (*mine).max(theirs);
        }
        self
    }

    /// The kernel's view of `n` images.
    pub fn shape(&self, n: usize) -> BlockedShape {
        let [top, left, bottom, right] = self.halo;
        let halo = Halo { top, left, bottom, right };
        let shape = match self.block {
            1 => BlockedShape::planar,
            LINE_CHANNELS => BlockedShape::lines,
            PIXEL => BlockedShape::pixels,
            _ => BlockedShape::new,
        };
        shape(n, self.channels, self.height, self.width, halo)
    }

    /// The layout with lines in the place of blocks of 16.
    pub fn in_lines(self) -> Option<BlockedLayout> {
        (self.block == BLOCK).then_some(BlockedLayout { block: LINE_CHANNELS, ..self })
    }

    /// Whether the channels fill lines.
    pub fn fills_lines(&self) -> bool {
        self.channels.is_multiple_of(LINE_CHANNELS)
    }

    /// Shape of the array that holds `n` images.
    pub fn physical(&self, n: usize) -> Shape {
        let [top, left, bottom, right] = self.halo;
        let (blocks, pixel) = match self.block {
            // Two numbers of a line are one element.
            LINE_CHANNELS => (self.channels.div_ceil(self.block), BLOCK),
            PIXEL => (1, self.channels.next_multiple_of(PIXEL)),
            block => (self.channels.div_ceil(block), block),
        };
        Shape::new(&[n, blocks, top + self.height + bottom, left + self.width + right, pixel])
    }

    /// Shape of the plain array of `n` images.
    pub fn logical(&self, n: usize) -> Shape {
        match self.axes {
            1 => Shape::new(&[n, self.channels, self.width]),
            _ => Shape::new(&[n, self.channels, self.height, self.width]),
        }
    }
}

impl Layout {
    /// The layout, if it is a blocked one.
    pub fn blocked(&self) -> Option<BlockedLayout> {
        match self {
            Layout::Plain => None,
            Layout::Blocked(layout) => Some(*layout),
        }
    }

    fn fields(&self) -> [usize; FIELDS] {
        match self {
            Layout::Plain => [0; FIELDS],
            Layout::Blocked(l) => {
                let [top, left, bottom, right] = l.halo;
                [l.axes, l.block, l.channels, l.height, l.width, top, left, bottom, right]
            }
        }
    }
}

/// Attributes that every blocked operator declares.
pub(crate) const LAYOUTS: AttrDef =
    AttrDef::required("layouts", AttrKind::Shape, "Layouts of the inputs, nine numbers each.");
/// Attribute with the layout of the output; [`LAYOUTS`] describes its form.
pub(crate) const OUT_LAYOUT: AttrDef =
    AttrDef::required("out_layout", AttrKind::Shape, "Layout of the output, nine numbers.");

/// The attributes that describe the layouts of a blocked operator's operands.
pub fn layout_attrs(inputs: &[Layout], output: Layout) -> [(String, String); 2] {
    let text = |layouts: &[Layout]| {
        let numbers: Vec<String> = layouts.iter().flat_map(|l| l.fields()).map(|n| n.to_string()).collect();
        format!("({})", numbers.join(","))
    };
    [(LAYOUTS.name.to_owned(), text(inputs)), (OUT_LAYOUT.name.to_owned(), text(&[output]))]
}

fn parse(numbers: &[i64]) -> Result<Layout, OpError> {
    let bad = || OpError::new(FailureKind::Value, "a layout is nine counts");
    let n = numbers.iter().map(|n| usize::try_from(*n)).collect::<Result<Vec<_>, _>>().map_err(|_| bad())?;
    match n[..] {
        [0, ..] => Ok(Layout::Plain),
        [axes, block, channels, height, width, top, left, bottom, right] => {
            let halo = [top, left, bottom, right];
            Ok(Layout::Blocked(BlockedLayout { axes, block, channels, height, width, halo }))
        }
        _ => Err(bad()),
    }
}

/// Layouts of the inputs and of the output, from the attributes of a blocked operator.
pub fn layouts(attrs: &Attrs) -> Result<(Vec<Layout>, Layout), OpError> {
    let inputs = attrs.ints(LAYOUTS.name).chunks(FIELDS).map(parse).collect::<Result<_, _>>()?;
    Ok((inputs, parse(attrs.ints(OUT_LAYOUT.name))?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn layouts_survive_the_way_through_attributes() {
        static DEFS: [AttrDef; 2] = [LAYOUTS, OUT_LAYOUT];
        let blocked = Layout::Blocked(BlockedLayout {
            axes: 2,
            block: 16,
            channels: 20,
            height: 5,
            width: 6,
            halo: [1, 2, 3, 4],
        });
        let given = layout_attrs(&[Layout::Plain, blocked], blocked);
        let attrs = Attrs::parse(&DEFS, given.iter().map(|(k, v)| (k.as_str(), v.as_str()))).expect("they parse");
        assert_eq!(layouts(&attrs).ok(), Some((vec![Layout::Plain, blocked], blocked)));
        let layout = blocked.blocked().expect("it is blocked");
        assert_eq!(layout.physical(2), Shape::new(&[2, 2, 9, 12, 16]));
        assert_eq!(layout.shape(2).len(), layout.physical(2).size());
    }
}
