//! Table of the settings of a model.

use super::value::{Given, Value, shown_bytes, shown_count, shown_seconds};
use super::{Scope, Setting};
use crate::model::{BatchChoice, ModelSettings, VersionChoice};
use crate::preprocess::Preprocess;

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

const PRECISIONS: &[(&str, &str)] =
    &[("default", "default"), ("exact", "exact"), ("bf16", "bf16"), ("w8", "w8"), ("auto", "auto")];
const BITS: &[(&str, bool)] = &[("any", false), ("exact", true)];

/// Every setting of a model.
pub static MODEL: &[Setting<ModelSettings>] = &[
    Setting {
        key: "path",
        metavar: "MODEL",
        text: "PREFIX, PREFIX-NNNN, PREFIX-symbol.json, a folder with one model, or an archive (.zip, .mar, .tar.gz)",
        scope: Scope::OneModel,
        rare: false,
        read: |to, value| value.path().map(|read| to.path = Some(read)),
        show: |of| of.path.as_ref().map(|path| Given::Text(path.display().to_string())),
    },
    Setting {
        key: "params",
        metavar: "FILE",
        text: "parameter file; not set: the PREFIX-NNNN.params of the highest number",
        scope: Scope::OneModel,
        rare: false,
        read: |to, value| value.optional(|value| value.path()).map(|read| to.params = read),
        show: |of| of.params.as_ref().map(|path| Given::Text(path.display().to_string())),
    },
    Setting {
        key: "version",
        metavar: "VERSION",
        text: "the version that requests may name",
        scope: Scope::OneModel,
        rare: false,
        read: |to, value| {
            to.version = match value.given {
                Given::Integer(number) => number.to_string(),
                _ => value.text()?,
            };
            Ok(())
        },
        show: |of| Some(Given::Text(of.version.clone())),
    },
    Setting {
        key: "shapes",
        metavar: "[INPUT=]N,C,H,W",
        text: "shape of an input, where the files do not say it, such as data=-1,3,224,224; -1 is any extent",
        scope: Scope::OneModel,
        rare: false,
        read: |to, value| by_input(value, |value| value.shape()).map(|read| merge(&mut to.shapes, read)),
        show: |of| {
            let shape = |extents: &Vec<i64>| Given::List(extents.iter().copied().map(Given::Integer).collect());
            Some(Given::Table(of.shapes.iter().map(|(name, extents)| (name.clone(), shape(extents))).collect()))
        },
    },
    Setting {
        key: "dtypes",
        metavar: "INPUT=TYPE",
        text: "type of an input, such as uint8, where it is not the one that the graph asks for",
        scope: Scope::OneModel,
        rare: false,
        read: |to, value| {
            let dtype = |value: Value<'_>| {
                let text = value.text()?;
                text.parse().map_err(|error| format!("types of inputs; {error}"))
            };
            let items = by_input(value, dtype)?;
            if items.iter().any(|(name, _)| name.is_empty()) {
                return Err("INPUT=TYPE, such as data=uint8".to_owned());
            }
            merge(&mut to.dtypes, items);
            Ok(())
        },
        show: |of| {
            let shown = of.dtypes.iter().map(|(name, dtype)| (name.clone(), Given::Text(dtype.to_string())));
            Some(Given::Table(shown.collect()))
        },
    },
    Setting {
        key: "precision",
        metavar: "default|exact|bf16|w8|auto",
        text: "how products are computed, as in hybridize",
        scope: Scope::Models,
        rare: false,
        read: |to, value| value.word(PRECISIONS).map(|read| to.precision = read),
        show: |of| Some(Given::Text(of.precision.to_owned())),
    },
    Setting {
        key: "batch",
        metavar: "off|auto|ROWS",
        text: "whether requests that wait while the model computes are joined into one call: where the \
               model's estimates say that it is worth it (auto), or wherever rows do not depend on each \
               other, at most ROWS rows. The last bits of an answer may then depend on how many rows \
               were joined",
        scope: Scope::Models,
        rare: false,
        read: |to, value| {
            let rows = value.whole(2, u64::MAX).ok().and_then(|rows| usize::try_from(rows).ok());
            to.batch = match rows {
                Some(rows) => BatchChoice::Rows(rows),
                None => value
                    .word(&[("off", BatchChoice::Off), ("auto", BatchChoice::Auto)])
                    .map_err(|_| "off, auto or the rows of the largest batch, 2 or more")?,
            };
            Ok(())
        },
        show: |of| {
            Some(match of.batch {
                BatchChoice::Off => Given::Text("off".to_owned()),
                BatchChoice::Auto => Given::Text("auto".to_owned()),
                BatchChoice::Rows(rows) => Given::Integer(i64::try_from(rows).unwrap_or(i64::MAX)),
            })
        },
    },
    Setting {
        key: "max_delay",
        metavar: "SECONDS",
        text: "how long a lone request waits for others, where requests are joined; 0: not at all",
        scope: Scope::Models,
        rare: true,
        read: |to, value| value.seconds().map(|read| to.max_delay = read),
        show: |of| Some(shown_seconds(of.max_delay)),
    },
    Setting {
        key: "sizes",
        metavar: "ROWS,ROWS",
        text: "rows that batches are filled up to, so that plans stay few; off: powers of two",
        scope: Scope::Models,
        rare: true,
        read: |to, value| {
            to.sizes = Vec::new();
            if !value.is_none() {
                let wrong = || "rows of batches, such as 4,16".to_owned();
                let items = value.list().ok_or_else(wrong)?;
                let sizes = items.iter().map(|item| value.within(item).whole(1, 1 << 20).ok());
                let mut sizes: Vec<usize> =
                    sizes.map(|rows| usize::try_from(rows?).ok()).collect::<Option<_>>().ok_or_else(wrong)?;
                sizes.sort_unstable();
                sizes.dedup();
                to.sizes = sizes;
            }
            Ok(())
        },
        show: |of| {
            Some(match of.sizes.is_empty() {
                true => Given::Text("off".to_owned()),
                false => Given::List(of.sizes.iter().copied().map(shown_count).collect()),
            })
        },
    },
    Setting {
        key: "batch_bits",
        metavar: "any|exact",
        text: "exact: requests are joined only where rows have the bits that they have alone, and those of one \
               row alone",
        scope: Scope::Models,
        rare: true,
        read: |to, value| value.word(BITS).map(|read| to.exact_bits = read),
        show: |of| BITS.iter().find(|row| row.1 == of.exact_bits).map(|row| Given::Text(row.0.to_owned())),
    },
    Setting {
        key: "deadline",
        metavar: "SECONDS",
        text: "time for a request that says no timeout; off: no bound",
        scope: Scope::Models,
        rare: false,
        read: |to, value| value.optional(|value| value.some_seconds()).map(|read| to.deadline = read),
        show: |of| Some(of.deadline.map_or(Given::Text("off".to_owned()), shown_seconds)),
    },
    Setting {
        key: "model_queue_requests",
        metavar: "N",
        text: "requests of one model that may wait or compute; off: as many as the server takes",
        scope: Scope::Models,
        rare: false,
        read: |to, value| value.optional(|value| value.count(1)).map(|read| to.queue_requests = read),
        show: |of| Some(of.queue_requests.map_or(Given::Text("off".to_owned()), shown_count)),
    },
    Setting {
        key: "model_queue_bytes",
        metavar: "BYTES",
        text: "bytes that requests of one model may hold; off: as many as the server takes",
        scope: Scope::Models,
        rare: false,
        read: |to, value| value.optional(|value| value.bytes()).map(|read| to.queue_bytes = read),
        show: |of| Some(of.queue_bytes.map_or(Given::Text("off".to_owned()), shown_bytes)),
    },
    Setting {
        key: "calls",
        metavar: "N",
        text: "calls of one model that may compute concurrently, each on one core where all are wanted; off: no bound",
        scope: Scope::Models,
        rare: false,
        read: |to, value| value.optional(|value| value.count(1)).map(|read| to.calls = read),
        show: |of| Some(of.calls.map_or(Given::Text("off".to_owned()), shown_count)),
    },
    Setting {
        key: "cores",
        metavar: "N",
        text: "cores that the calls of one model use together, and so the calls that may compute concurrently; off: \
               no bound",
        scope: Scope::Models,
        rare: false,
        read: |to, value| value.optional(|value| value.count(1)).map(|read| to.cores = read),
        show: |of| Some(of.cores.map_or(Given::Text("off".to_owned()), shown_count)),
    },
    Setting {
        key: "weight",
        metavar: "WEIGHT",
        text: "share of the cores that a model gets where models compete, relative to the weights of the others",
        scope: Scope::Models,
        rare: true,
        read: |to, value| {
            let weight = value.number().filter(|weight| (0.001..=1000.0).contains(weight));
            to.weight = weight.ok_or("a number from 0.001 to 1000")?;
            Ok(())
        },
        show: |of| Some(Given::Float(of.weight)),
    },
    Setting {
        key: "preprocess",
        metavar: "TABLE",
        text: "how a JPEG or PNG becomes the input: { size = [224, 224], resize = 256, grey = false, scale = 1, \
               mean = [0, 0, 0], std = [1, 1, 1], layout = \"NCHW\" }",
        scope: Scope::OneModel,
        rare: false,
        read: |to, value| value.optional(|value| preprocess(value)).map(|read| to.preprocess = read),
        show: |of| of.preprocess.as_ref().map(shown_preprocess),
    },
    Setting {
        key: "hooks",
        metavar: "FILE",
        text: "file of Python with preprocess(request) -> arrays or postprocess(arrays) -> response, for the \
               paths /models/M/infer and /predictions/M; decode(tensors) -> arrays or encode(arrays) -> tensors, \
               for strings over the protocol; or load(path) -> bytes, which reads the files of the model",
        scope: Scope::OneModel,
        rare: false,
        read: |to, value| value.optional(|value| value.path()).map(|read| to.hooks = read),
        show: |of| of.hooks.as_ref().map(|path| Given::Text(path.display().to_string())),
    },
    Setting {
        key: "labels",
        metavar: "FILE",
        text: "names of classes, one a line, for answers of /predictions/M",
        scope: Scope::OneModel,
        rare: false,
        read: |to, value| value.optional(|value| value.path()).map(|read| to.labels = read),
        show: |of| of.labels.as_ref().map(|path| Given::Text(path.display().to_string())),
    },
    Setting {
        key: "versions",
        metavar: "latest|all|VERSIONS",
        text: "which versions of a repository's model serve: the highest, all, or these",
        scope: Scope::Models,
        rare: false,
        read: |to, value| {
            to.versions = match value.given {
                Given::Text(text) if text == "latest" => VersionChoice::Latest,
                Given::Text(text) if text == "all" => VersionChoice::All,
                _ => {
                    let numbers = value.list().filter(|list| !list.is_empty());
                    let numbers = numbers.ok_or("latest, all or numbers of versions")?;
                    let number =
                        |given: &Given| value.within(given).whole(0, u64::MAX).map(|number| number.to_string());
                    VersionChoice::These(numbers.iter().map(number).collect::<Result<_, _>>()?)
                }
            };
            Ok(())
        },
        show: |of| {
            Some(match &of.versions {
                VersionChoice::Latest => Given::Text("latest".to_owned()),
                VersionChoice::All => Given::Text("all".to_owned()),
                VersionChoice::These(these) => Given::List(these.iter().cloned().map(Given::Text).collect()),
            })
        },
    },
    Setting {
        key: "required",
        metavar: "on|off",
        text: "whether the server is ready only while the model serves",
        scope: Scope::Models,
        rare: false,
        read: |to, value| value.switch().map(|read| to.required = read),
        show: |of| Some(Given::Bool(of.required)),
    },
    Setting {
        key: "golden",
        metavar: "FILE",
        text: "a .npz with inputs and the outputs that they must give, by name, before the model serves",
        scope: Scope::OneModel,
        rare: false,
        read: |to, value| value.optional(|value| value.path()).map(|read| to.golden = read),
        show: |of| of.golden.as_ref().map(|path| Given::Text(path.display().to_string())),
    },
    Setting {
        key: "warm",
        metavar: "SHAPES",
        text: "a list of shapes that are computed once before the model serves: each one shape, or a table \
               of shapes by input",
        scope: Scope::OneModel,
        rare: false,
        read: |to, value| {
            let whole =
                |extents: Vec<i64>| extents.into_iter().map(|e| usize::try_from(e).ok()).collect::<Option<Vec<_>>>();
            let one = |given: &Given| {
                let shapes = by_input(value.within(given), |value| value.shape())?;
                let shapes = shapes.into_iter().map(|(name, extents)| Some((name, whole(extents)?)));
                shapes.collect::<Option<Vec<_>>>().ok_or_else(|| "shapes without -1".to_owned())
            };
            let Given::List(items) = value.given else { return Err("a list of shapes".to_owned()) };
            to.warm = items.iter().map(one).collect::<Result<_, _>>()?;
            Ok(())
        },
        show: |of| {
            let shape = |extents: &Vec<usize>| {
                Given::List(extents.iter().map(|e| Given::Integer(i64::try_from(*e).unwrap_or(i64::MAX))).collect())
            };
            let one = |shapes: &Vec<(String, Vec<usize>)>| match &shapes[..] {
                [(name, extents)] if name.is_empty() => shape(extents),
                _ => Given::Table(shapes.iter().map(|(name, extents)| (name.clone(), shape(extents))).collect()),
            };
            Some(Given::List(of.warm.iter().map(one).collect()))
        },
    },
];
