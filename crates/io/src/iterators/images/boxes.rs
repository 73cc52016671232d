//! Labels of images with objects: a header, and a box for each object.

/// A part of an image, or a larger one around it; an image goes from 0 to 1.
#[derive(Clone, Copy, Debug)]
pub(super) struct Frame {
    pub left: f32,
    pub top: f32,
    pub width: f32,
    pub height: f32,
}

impl Frame {
    fn area(self) -> f32 {
        self.width.max(0.0) * self.height.max(0.0)
    }

    /// The area that both have.
    fn shared(self, other: Frame) -> f32 {
        let span = |a: f32, a_size: f32, b: f32, b_size: f32| ((a + a_size).min(b + b_size) - a.max(b)).max(0.0);
        span(self.left, self.width, other.left, other.width) * span(self.top, self.height, other.top, other.height)
    }

    fn contains(self, x: f32, y: f32) -> bool {
        let within = |v: f32, from: f32, size: f32| from <= v && v < from + size;
        within(x, self.left, self.width) && within(y, self.top, self.height)
    }
}

/// The least and the largest overlap of a crop with one of the objects.
#[derive(Clone, Copy, Debug)]
pub(super) struct OverlapLimits {
    /// shared area by that of both together
    pub overlap: (f32, f32),
    /// shared area by that of the crop
    pub of_crop: (f32, f32),
    /// shared area by that of the object
    pub of_object: (f32, f32),
}

impl OverlapLimits {
    fn hold(&self, crop: Frame, object: Frame) -> bool {
        let shared = crop.shared(object);
        let together = crop.area() + object.area() - shared;
        [(self.overlap, together), (self.of_crop, crop.area()), (self.of_object, object.area())].iter().all(
            |((low, high), area)| {
                let share = if *area > 0.0 { shared / area } else { 0.0 };
                (*low <= 0.0 && *high >= 1.0) || (*low <= share && share <= *high)
            },
        )
    }
}

/// An object: its class, its edges, and what else the label has.
#[derive(Clone, Debug)]
struct Object {
    class: f32,
    /// left, top, right, bottom
    edges: [f32; 4],
    rest: Vec<f32>,
}

impl Object {
    fn frame(&self) -> Frame {
        let [left, top, right, bottom] = self.edges;
        Frame { left, top, width: right - left, height: bottom - top }
    }

    /// The object as a frame shows it.
    fn seen_in(&self, frame: Frame) -> Object {
        let [left, top, right, bottom] = self.edges;
        let (x, y) = (|v: f32| (v - frame.left) / frame.width, |v: f32| (v - frame.top) / frame.height);
        let edges = [x(left).max(0.0), y(top).max(0.0), x(right).min(1.0), y(bottom).min(1.0)];
        Object { edges, ..self.clone() }
    }
}

/// The label of an image.
#[derive(Clone, Debug)]
pub(super) struct Label {
    header: Vec<f32>,
    objects: Vec<Object>,
}

impl Label {
    /// Takes a label apart: the lengths of the header and of an object, the rest of the header, and
    /// objects: class, left, top, right, bottom, and more. Empty boxes are left out.
    pub(super) fn parse(numbers: &[f32]) -> Result<Label, String> {
        let wrong = |problem: String| Err(format!("its label is not one of objects: {problem}"));
        let [header, width, ..] = *numbers else { return wrong(format!("it has {} numbers", numbers.len())) };
        if numbers.len() < 7 {
            return wrong(format!("it has {} numbers; expected at least 7", numbers.len()));
        }
        if !(2.0..=numbers.len() as f32).contains(&header) || width < 5.0 {
            return wrong(format!("the header has {header} numbers and an object {width}; expected at least 2 and 5"));
        }
        let (head, objects) = numbers.split_at(header as usize);
        let width = width as usize;
        if !objects.len().is_multiple_of(width) {
            return wrong(format!("{} numbers after the header are no objects of {width}", objects.len()));
        }
        let objects = objects.chunks_exact(width).filter_map(|object| {
            let edges = [object[1], object[2], object[3], object[4]];
            let shown = edges[2] > edges[0] && edges[3] > edges[1];
            shown.then(|| Object { class: object[0], edges, rest: object[5..].to_vec() })
        });
        Ok(Label { header: head.to_vec(), objects: objects.collect() })
    }

    /// The label as it was taken apart.
    pub(super) fn numbers(&self) -> Vec<f32> {
        let mut numbers = self.header.clone();
        for object in &self.objects {
            numbers.push(object.class);
            numbers.extend(object.edges);
            numbers.extend(&object.rest);
        }
        numbers
    }

    /// The label of the mirrored image.
    pub(super) fn mirror(&mut self) {
        for object in &mut self.objects {
            let [left, top, right, bottom] = object.edges;
            object.edges = [1.0 - right, top, 1.0 - left, bottom];
        }
    }

    /// The label of the image with a border, which `frame` is around it.
    pub(super) fn pad(&mut self, frame: Frame) {
        self.objects.iter_mut().for_each(|object| *object = object.seen_in(frame));
    }

    /// The label of a crop, if one object is within the limits and one stays: those whose centre is
    /// in the crop, or whose share in it is more than `keep`. Without objects any crop will do.
    pub(super) fn crop(&mut self, frame: Frame, limits: &OverlapLimits, keep: Option<f32>) -> bool {
        if self.objects.is_empty() {
            return true;
        }
        if !self.objects.iter().any(|object| limits.hold(frame, object.frame())) {
            return false;
        }
        let stays = |object: &&Object| match keep {
            None => {
                let [left, top, right, bottom] = object.edges;
                frame.contains((left + right) * 0.5, (top + bottom) * 0.5)
            }
            Some(least) => frame.shared(object.frame()) / object.frame().area() > least,
        };
        let objects: Vec<Object> = self.objects.iter().filter(stays).map(|object| object.seen_in(frame)).collect();
        if objects.is_empty() {
            return false;
        }
        self.objects = objects;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ANY: OverlapLimits = OverlapLimits { overlap: (0.0, 1.0), of_crop: (0.0, 1.0), of_object: (0.0, 1.0) };

    fn label() -> Label {
        Label::parse(&[2.0, 6.0, 1.0, 0.0, 0.0, 0.5, 0.5, 9.0, 3.0, 0.5, 0.5, 1.0, 0.75, 8.0]).unwrap()
    }

    #[test]
    fn labels_come_back_and_damaged_ones_are_refused() {
        assert_eq!(label().numbers()[..8], [2.0, 6.0, 1.0, 0.0, 0.0, 0.5, 0.5, 9.0]);
        for wrong in [&[2.0, 5.0][..], &[1.0; 9], &[2.0, 5.0, 1.0, 0.0, 0.0, 1.0, 1.0, 5.0], &[f32::NAN; 8], &[9e9; 8]]
        {
            assert!(Label::parse(wrong).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn boxes_follow_mirrors_borders_and_crops() {
        let mut mirrored = label();
        mirrored.mirror();
        assert_eq!(mirrored.objects[0].edges, [0.5, 0.0, 1.0, 0.5]);
        let mut padded = label();
        padded.pad(Frame { left: -0.5, top: -0.5, width: 2.0, height: 2.0 });
        assert_eq!(padded.objects[0].edges, [0.25, 0.25, 0.5, 0.5]);
        let mut cropped = label();
        assert!(cropped.crop(Frame { left: 0.0, top: 0.0, width: 0.5, height: 0.5 }, &ANY, None));
        assert_eq!(cropped.numbers(), [2.0, 6.0, 1.0, 0.0, 0.0, 1.0, 1.0, 9.0]);
        let away = Frame { left: 0.0, top: 0.8, width: 0.1, height: 0.1 };
        assert!(!label().crop(away, &ANY, None));
        assert!(!label().crop(away, &ANY, Some(0.3)));
        let whole = OverlapLimits { of_object: (0.9, 1.0), ..ANY };
        assert!(!label().crop(Frame { left: 0.0, top: 0.0, width: 0.4, height: 0.5 }, &whole, None));
    }
}
