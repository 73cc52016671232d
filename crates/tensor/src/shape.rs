//! Shapes: complete ones, and partly known ones during inference.

use smallvec::SmallVec;
use std::fmt;
use std::ops::Deref;

/// Extent of every axis of an array. An empty shape is a scalar.
#[derive(Clone, PartialEq, Eq, Hash, Default)]
pub struct Shape(SmallVec<[usize; 6]>);

impl Shape {
    /// A shape with these extents.
    pub fn new(dims: &[usize]) -> Shape {
        Shape(SmallVec::from_slice(dims))
    }

    /// Number of elements, or `None` when it does not fit a `usize`.
    pub fn checked_size(&self) -> Option<usize> {
        self.0.iter().try_fold(1usize, |n, d| n.checked_mul(*d))
    }

    /// Number of elements (saturating; arrays are only ever made with a `checked_size`).
    pub fn size(&self) -> usize {
        self.checked_size().unwrap_or(usize::MAX)
    }

    /// Row-major strides in elements.
    pub fn strides(&self) -> SmallVec<[usize; 6]> {
        let mut strides: SmallVec<[usize; 6]> = smallvec::smallvec![1; self.0.len()];
        for i in (1..self.0.len()).rev() {
            strides[i - 1] = strides[i].saturating_mul(self.0[i]);
        }
        strides
    }

    /// The extents, to be changed in place.
    pub fn dims_mut(&mut self) -> &mut SmallVec<[usize; 6]> {
        &mut self.0
    }
}

impl Deref for Shape {
    type Target = [usize];
    fn deref(&self) -> &[usize] {
        &self.0
    }
}

impl From<&[usize]> for Shape {
    fn from(dims: &[usize]) -> Self {
        Shape::new(dims)
    }
}

impl<const N: usize> From<[usize; N]> for Shape {
    fn from(dims: [usize; N]) -> Self {
        Shape::new(&dims)
    }
}

impl From<Vec<usize>> for Shape {
    fn from(dims: Vec<usize>) -> Self {
        Shape(SmallVec::from_vec(dims))
    }
}

impl FromIterator<usize> for Shape {
    fn from_iter<I: IntoIterator<Item = usize>>(iter: I) -> Self {
        Shape(iter.into_iter().collect())
    }
}

/// Writes a Python tuple: `(2, 3)`, `(2,)`, `()`.
fn write_tuple<T: fmt::Display>(f: &mut fmt::Formatter<'_>, dims: impl ExactSizeIterator<Item = T>) -> fmt::Result {
    let one = dims.len() == 1;
    f.write_str("(")?;
    for (i, d) in dims.enumerate() {
        if i > 0 {
            f.write_str(", ")?;
        }
        write!(f, "{d}")?;
    }
    f.write_str(if one { ",)" } else { ")" })
}

impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_tuple(f, self.0.iter())
    }
}

impl fmt::Debug for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Two shapes that should agree do not.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("shapes {0} and {1} do not agree")]
pub struct ShapeError(pub String, pub String);

/// The known part of a shape during inference: nothing, or a rank with some extents known.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct PartialShape(Option<SmallVec<[Option<usize>; 6]>>);

impl PartialShape {
    /// A shape of which not even the rank is known.
    pub const UNKNOWN: PartialShape = PartialShape(None);

    /// A known rank with nothing else.
    pub fn of_rank(rank: usize) -> PartialShape {
        PartialShape(Some(smallvec::smallvec![None; rank]))
    }

    /// A shape with these extents, `None` for unknown ones.
    pub fn from_dims(dims: impl IntoIterator<Item = Option<usize>>) -> PartialShape {
        PartialShape(Some(dims.into_iter().collect()))
    }

    /// MXNet's way of writing partly known shapes: an extent of 0 is unknown, an empty list is an
    /// unknown rank.
    pub fn from_zero_unknown(dims: &[usize]) -> PartialShape {
        if dims.is_empty() {
            return PartialShape::UNKNOWN;
        }
        PartialShape::from_dims(dims.iter().map(|d| (*d != 0).then_some(*d)))
    }

    /// The number of axes, if known.
    pub fn rank(&self) -> Option<usize> {
        self.0.as_ref().map(|d| d.len())
    }

    /// The extents, if the rank is known.
    pub fn dims(&self) -> Option<&[Option<usize>]> {
        self.0.as_deref()
    }

    /// The extent of one axis, if known.
    pub fn dim(&self, axis: usize) -> Option<usize> {
        self.0.as_ref().and_then(|d| d.get(axis).copied().flatten())
    }

    /// The whole shape, if every extent is known.
    pub fn complete(&self) -> Option<Shape> {
        self.0.as_ref().and_then(|d| d.iter().copied().collect::<Option<Shape>>())
    }

    /// True when every extent is known.
    pub fn is_complete(&self) -> bool {
        self.0.as_ref().is_some_and(|d| d.iter().all(Option::is_some))
    }

    /// Takes over what `other` knows; an error where they contradict. Returns whether anything new
    /// was learnt.
    pub fn merge(&mut self, other: &PartialShape) -> Result<bool, ShapeError> {
        let Some(theirs) = &other.0 else { return Ok(false) };
        let contradiction = || ShapeError(self.to_string(), other.to_string());
        let Some(mine) = &self.0 else {
            self.0 = Some(theirs.clone());
            return Ok(true);
        };
        if mine.len() != theirs.len() || mine.iter().zip(theirs).any(|(a, b)| a.is_some() && b.is_some() && a != b) {
            return Err(contradiction());
        }
        let merged: SmallVec<[Option<usize>; 6]> = mine.iter().zip(theirs).map(|(a, b)| a.or(*b)).collect();
        let changed = merged != *mine;
        self.0 = Some(merged);
        Ok(changed)
    }

    /// Merges both ways.
    pub fn unify(a: &mut PartialShape, b: &mut PartialShape) -> Result<(), ShapeError> {
        a.merge(b)?;
        b.merge(a)?;
        Ok(())
    }
}

impl From<&Shape> for PartialShape {
    fn from(shape: &Shape) -> Self {
        PartialShape::from_dims(shape.iter().map(|d| Some(*d)))
    }
}

impl From<Shape> for PartialShape {
    fn from(shape: Shape) -> Self {
        PartialShape::from(&shape)
    }
}

impl fmt::Display for PartialShape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            None => f.write_str("unknown"),
            Some(dims) => write_tuple(f, dims.iter().map(|d| d.map_or("?".to_owned(), |d| d.to_string()))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shapes_print_as_python_tuples() {
        assert_eq!(Shape::new(&[2, 3]).to_string(), "(2, 3)");
        assert_eq!(Shape::new(&[2]).to_string(), "(2,)");
        assert_eq!(Shape::new(&[]).to_string(), "()");
        assert_eq!(PartialShape::from_zero_unknown(&[0, 3]).to_string(), "(?, 3)");
    }

    #[test]
    fn sizes_that_overflow_are_noticed() {
        assert_eq!(Shape::new(&[usize::MAX, 2]).checked_size(), None);
        assert_eq!(Shape::new(&[0, usize::MAX]).checked_size(), Some(0));
    }

    #[test]
    fn merging_learns_and_refuses_contradictions() {
        let mut a = PartialShape::from_zero_unknown(&[0, 3]);
        assert_eq!(a.merge(&PartialShape::from_zero_unknown(&[2, 0])), Ok(true));
        assert_eq!(a.complete(), Some(Shape::new(&[2, 3])));
        assert_eq!(a.merge(&Shape::new(&[2, 3]).into()), Ok(false));
        assert!(a.merge(&Shape::new(&[2, 4]).into()).is_err());
        assert!(a.merge(&Shape::new(&[2]).into()).is_err());
    }
}
