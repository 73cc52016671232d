//! Kinds of values that belong to inputs of a model.

use super::kinds::{Kind, kind};
use super::value::{Given, Value, shown_count};
use crate::preprocess::Preprocess;
use mxrt_tensor::DType;

/// Reads values by input: a table, or one text such as `INPUT=VALUE`. A value without a name
/// belongs to the only input.
fn by_input<T>(
    value: Value<'_>,
    one: impl for<'a> Fn(Value<'a>) -> Result<T, String>,
) -> Result<Vec<(String, T)>, String> {
    if let Some(items) = value.table() {
        let item = |(name, given): &(String, Given)| Ok((name.clone(), one(value.within(given))?));
        return items.iter().map(item).collect();
    }
    let (name, text) = match value.given {
        Given::Text(text) => text.rsplit_once('=').map_or(("", text.as_str()), |(name, text)| (name, text)),
        _ => ("", ""),
    };
    match value.given {
        Given::Text(_) => Ok(vec![(name.to_owned(), one(value.within(&Given::Text(text.to_owned())))?)]),
        _ => Ok(vec![(String::new(), one(value)?)]),
    }
}

/// Adds items, and replaces those for the same inputs.
fn merge<T>(to: &mut Vec<(String, T)>, items: Vec<(String, T)>) {
    for (name, item) in items {
        to.retain(|(other, _)| *other != name);
        to.push((name, item));
    }
}

/// Largest number of rows or columns of an image.
const LARGEST_IMAGE: u64 = 1 << 14;

fn preprocess(value: Value<'_>) -> Result<Preprocess, String> {
    let table = value.table().ok_or("a table such as { size = [224, 224], resize = 256 }")?;
    let mut made = Preprocess::default();
    for (key, given) in table {
        let value = value.within(given);
        let extent = |value: Value<'_>| value.whole(1, LARGEST_IMAGE).map(|extent| extent as usize);
        let numbers = |value: Value<'_>| {
            let items = value.list().ok_or("numbers, one for each channel")?;
            let numbers = items.iter().map(|item| value.within(item).number().map(|number| number as f32));
            numbers.collect::<Option<Vec<f32>>>().ok_or("numbers, one for each channel".to_owned())
        };
        let read = match key.as_str() {
            "size" => match &value.list().unwrap_or_default()[..] {
                [rows, columns] => {
                    made.size = [extent(value.within(rows))?, extent(value.within(columns))?];
                    Ok(())
                }
                _ => Err("rows and columns".to_owned()),
            },
            "resize" => extent(value).map(|resize| made.resize = Some(resize)),
            "grey" => value.switch().map(|grey| made.grey = grey),
            "scale" => value.number().map(|scale| made.scale = scale as f32).ok_or("a number".to_owned()),
            "mean" => numbers(value).map(|mean| made.mean = mean),
            "std" => numbers(value).map(|std| made.std = std),
            "layout" => value.word(&[("NCHW", false), ("NHWC", true)]).map(|last| made.channels_last = last),
            _ => {
                let known = ["size", "resize", "grey", "scale", "mean", "std", "layout"];
                return Err(format!("the keys {}, not '{key}'", known.join(", ")));
            }
        };
        read.map_err(|expected| format!("{expected} for its {key}"))?;
    }
    if made.std.contains(&0.0) {
        return Err("a std without 0".to_owned());
    }
    Ok(made)
}

fn shown_preprocess(of: &Preprocess) -> Given {
    let numbers = |list: &[f32]| Given::List(list.iter().map(|n| Given::Float(f64::from(*n))).collect());
    let mut items = vec![("size", Given::List(of.size.iter().copied().map(shown_count).collect()))];
    items.extend(of.resize.map(|resize| ("resize", shown_count(resize))));
    items.push(("grey", Given::Bool(of.grey)));
    items.push(("scale", Given::Float(f64::from(of.scale))));
    items.extend((!of.mean.is_empty()).then(|| ("mean", numbers(&of.mean))));
    items.extend((!of.std.is_empty()).then(|| ("std", numbers(&of.std))));
    items.push(("layout", Given::Text(if of.channels_last { "NHWC" } else { "NCHW" }.to_owned())));
    Given::Table(items.into_iter().map(|(key, given)| (key.to_owned(), given)).collect())
}

/// Conversion of images, or none.
pub(super) const PREPROCESS: Kind<Option<Preprocess>> =
    kind!(|value| value.optional(preprocess), |of| of.as_ref().map(shown_preprocess));

/// Shapes by input, where -1 is any extent.
pub(super) const SHAPES: Kind<Vec<(String, Vec<i64>)>> = Kind {
    read: |to, value| by_input(value, |value| value.shape()).map(|read| merge(to, read)),
    show: |of| {
        let shape = |extents: &Vec<i64>| Given::List(extents.iter().copied().map(Given::Integer).collect());
        Some(Given::Table(of.iter().map(|(name, extents)| (name.clone(), shape(extents))).collect()))
    },
};

fn dtypes(value: Value<'_>) -> Result<Vec<(String, DType)>, String> {
    let dtype = |value: Value<'_>| {
        let text = value.text()?;
        text.parse().map_err(|error| format!("types of inputs; {error}"))
    };
    let items = by_input(value, dtype)?;
    match items.iter().any(|(name, _)| name.is_empty()) {
        true => Err("INPUT=TYPE, such as data=uint8".to_owned()),
        false => Ok(items),
    }
}

/// Types by input.
pub(super) const DTYPES: Kind<Vec<(String, DType)>> = Kind {
    read: |to, value| dtypes(value).map(|read| merge(to, read)),
    show: |of| {
        let shown = of.iter().map(|(name, dtype)| (name.clone(), Given::Text(dtype.to_string())));
        Some(Given::Table(shown.collect()))
    },
};

/// Shapes of the inputs of a call, by their names.
type InputShapes = Vec<(String, Vec<usize>)>;

fn calls(value: Value<'_>) -> Result<Vec<InputShapes>, String> {
    let whole = |extents: Vec<i64>| extents.into_iter().map(|e| usize::try_from(e).ok()).collect::<Option<Vec<_>>>();
    let one = |given: &Given| {
        let shapes = by_input(value.within(given), |value| value.shape())?;
        let shapes = shapes.into_iter().map(|(name, extents)| Some((name, whole(extents)?)));
        shapes.collect::<Option<Vec<_>>>().ok_or_else(|| "shapes without -1".to_owned())
    };
    match value.given {
        Given::List(items) => items.iter().map(one).collect(),
        _ => Err("a list of shapes".to_owned()),
    }
}

fn shown_call(shapes: &InputShapes) -> Given {
    let shape = |extents: &Vec<usize>| Given::List(extents.iter().copied().map(shown_count).collect());
    match &shapes[..] {
        [(name, extents)] if name.is_empty() => shape(extents),
        _ => Given::Table(shapes.iter().map(|(name, extents)| (name.clone(), shape(extents))).collect()),
    }
}

/// Calls, by the shapes of their inputs.
pub(super) const CALLS: Kind<Vec<InputShapes>> =
    kind!(|value| calls(value), |of| Some(Given::List(of.iter().map(shown_call).collect())));
