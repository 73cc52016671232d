//! Settings of a model.

use super::inputs::{CALLS, DTYPES, PREPROCESS, SHAPES};
use super::kinds::{
    Kind, OPTIONAL_BYTES, OPTIONAL_COUNT, OPTIONAL_PATH, OPTIONAL_SECONDS, PATH, SECONDS, SWITCH, kind, off, words,
};
use super::row::settings;
use super::value::{Given, Value, shown_count};
use crate::preprocess::Preprocess;
use mxrt_tensor::DType;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Model to be served.
#[derive(Clone, Debug)]
pub struct ModelSpec {
    /// name that requests use
    pub name: String,
    /// settings of the model
    pub settings: ModelSettings,
}

/// Whether waiting requests are joined into batches.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum BatchChoice {
    /// never: results have the bits of calls of single requests
    #[default]
    Off,
    /// joined if the estimates of the plan show a gain
    Auto,
    /// joined, up to this many rows, if rows do not depend on each other
    Rows(usize),
}

/// Versions of a repository's model that serve.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum VersionChoice {
    /// the highest one
    Latest,
    /// all of them
    All,
    /// the listed ones
    These(Vec<String>),
}

fn version(value: Value<'_>) -> Result<String, String> {
    match value.given {
        Given::Integer(number) => Ok(number.to_string()),
        _ => value.text(),
    }
}

fn batch(value: Value<'_>) -> Result<BatchChoice, String> {
    let rows = value.whole(2, u64::MAX).ok().and_then(|rows| usize::try_from(rows).ok());
    match rows {
        Some(rows) => Ok(BatchChoice::Rows(rows)),
        None => value
            .word(&[("off", BatchChoice::Off), ("auto", BatchChoice::Auto)])
            .map_err(|_| "off, auto or the rows of the largest batch, 2 or more".to_owned()),
    }
}

/// Reads numbers of rows; returns them in ascending order.
fn sizes(value: Value<'_>) -> Result<Vec<usize>, String> {
    if value.is_none() {
        return Ok(Vec::new());
    }
    let wrong = || "rows of batches, such as 4,16".to_owned();
    let items = value.list().ok_or_else(wrong)?;
    let sizes = items.iter().map(|item| value.within(item).whole(1, 1 << 20).ok());
    let mut sizes: Vec<usize> =
        sizes.map(|rows| usize::try_from(rows?).ok()).collect::<Option<_>>().ok_or_else(wrong)?;
    sizes.sort_unstable();
    sizes.dedup();
    Ok(sizes)
}

fn weight(value: Value<'_>) -> Result<f64, String> {
    let weight = value.number().filter(|weight| (0.001..=1000.0).contains(weight));
    weight.ok_or_else(|| "a number from 0.001 to 1000".to_owned())
}

fn versions(value: Value<'_>) -> Result<VersionChoice, String> {
    match value.given {
        Given::Text(text) if text == "latest" => Ok(VersionChoice::Latest),
        Given::Text(text) if text == "all" => Ok(VersionChoice::All),
        _ => {
            let numbers = value.list().filter(|list| !list.is_empty());
            let numbers = numbers.ok_or("latest, all or numbers of versions")?;
            let number = |given: &Given| value.within(given).whole(0, u64::MAX).map(|number| number.to_string());
            Ok(VersionChoice::These(numbers.iter().map(number).collect::<Result<_, _>>()?))
        }
    }
}

const VERSION: Kind<String> = kind!(|value| version(value), |of| Some(Given::Text(of.clone())));
const PRECISION: Kind<&'static str> =
    words!(&[("default", "default"), ("exact", "exact"), ("bf16", "bf16"), ("w8", "w8"), ("auto", "auto")]);
const BATCH: Kind<BatchChoice> = kind!(|value| batch(value), |of| {
    Some(match *of {
        BatchChoice::Off => off(),
        BatchChoice::Auto => Given::Text("auto".to_owned()),
        BatchChoice::Rows(rows) => shown_count(rows),
    })
});
const SIZES: Kind<Vec<usize>> = kind!(|value| sizes(value), |of| {
    Some(match of.is_empty() {
        true => off(),
        false => Given::List(of.iter().copied().map(shown_count).collect()),
    })
});
const BITS: Kind<bool> = words!(&[("any", false), ("exact", true)]);
const WEIGHT: Kind<f64> = kind!(|value| weight(value), |of| Some(Given::Float(*of)));
const VERSIONS: Kind<VersionChoice> = kind!(|value| versions(value), |of| {
    Some(match of {
        VersionChoice::Latest => Given::Text("latest".to_owned()),
        VersionChoice::All => Given::Text("all".to_owned()),
        VersionChoice::These(these) => Given::List(these.iter().cloned().map(Given::Text).collect()),
    })
});

settings! {
    /// Files of a model, types that they do not give, and how the model is served.
    pub struct ModelSettings, table MODEL of Models {
        /// PREFIX, PREFIX-NNNN, PREFIX-symbol.json, a folder with one model, or an archive (.zip,
        /// .mar, .tar.gz)
        path: Option<PathBuf> = None, PATH, "MODEL", one_model;
        /// parameter file; not set: the PREFIX-NNNN.params of the highest number
        params: Option<PathBuf> = None, OPTIONAL_PATH, "FILE", one_model;
        /// the version that requests may name
        version: String = "1".to_owned(), VERSION, "VERSION", one_model;
        /// shape of an input, where the files do not say it, such as data=-1,3,224,224; -1 is any
        /// extent
        shapes: Vec<(String, Vec<i64>)> = Vec::new(), SHAPES, "[INPUT=]N,C,H,W", one_model;
        /// type of an input, such as uint8, where it is not the one that the graph asks for
        dtypes: Vec<(String, DType)> = Vec::new(), DTYPES, "INPUT=TYPE", one_model;
        /// how products are computed, as in hybridize
        precision: &'static str = "default", PRECISION, "default|exact|bf16|w8|auto";
        /// whether requests that wait while the model computes are joined into one call: where the
        /// model's estimates say that it is worth it (auto), or wherever rows do not depend on each
        /// other, at most ROWS rows. The last bits of an answer may then depend on how many rows
        /// were joined
        batch: BatchChoice = BatchChoice::Off, BATCH, "off|auto|ROWS";
        /// how long a lone request waits for others, where requests are joined; 0: not at all
        max_delay: Duration = Duration::ZERO, SECONDS, "SECONDS", rare;
        /// rows that batches are filled up to, so that plans stay few; off: powers of two
        sizes: Vec<usize> = Vec::new(), SIZES, "ROWS,ROWS", rare;
        /// exact: requests are joined only where rows have the bits that they have alone, and those
        /// of one row alone
        exact_bits: bool = false, BITS, "any|exact", rare, key("batch_bits");
        /// time for a request that says no timeout; off: no bound
        deadline: Option<Duration> = None, OPTIONAL_SECONDS, "SECONDS";
        /// requests of one model that may wait or compute; off: as many as the server takes
        queue_requests: Option<usize> = None, OPTIONAL_COUNT, "N", key("model_queue_requests");
        /// bytes that requests of one model may hold; off: as many as the server takes
        queue_bytes: Option<usize> = None, OPTIONAL_BYTES, "BYTES", key("model_queue_bytes");
        /// calls of one model that may compute concurrently, each on one core where all are wanted;
        /// off: no bound
        calls: Option<usize> = None, OPTIONAL_COUNT, "N";
        /// cores that the calls of one model use together, and so the calls that may compute
        /// concurrently; off: no bound
        cores: Option<usize> = None, OPTIONAL_COUNT, "N";
        /// share of the cores that a model gets where models compete, relative to the weights of
        /// the others
        weight: f64 = 1.0, WEIGHT, "WEIGHT", rare;
        /// how a JPEG or PNG becomes the input: { size = [224, 224], resize = 256, grey = false,
        /// scale = 1, mean = [0, 0, 0], std = [1, 1, 1], layout = "NCHW" }
        preprocess: Option<Preprocess> = None, PREPROCESS, "TABLE", one_model;
        /// file of Python with preprocess(request) -> arrays or postprocess(arrays) -> response,
        /// for the paths /models/M/infer and /predictions/M; decode(tensors) -> arrays or
        /// encode(arrays) -> tensors, for strings over the protocol; or load(path) -> bytes, which
        /// reads the files of the model
        hooks: Option<PathBuf> = None, OPTIONAL_PATH, "FILE", one_model;
        /// names of classes, one a line, for answers of /predictions/M
        labels: Option<PathBuf> = None, OPTIONAL_PATH, "FILE", one_model;
        /// versions of a repository's model that serve: the highest, all, or these
        versions: VersionChoice = VersionChoice::Latest, VERSIONS, "latest|all|VERSIONS";
        /// whether the server is ready only while the model serves
        required: bool = true, SWITCH, "on|off";
        /// a .npz with inputs and the outputs that they must give, by name, before the model serves
        golden: Option<PathBuf> = None, OPTIONAL_PATH, "FILE", one_model;
        /// a list of shapes that are computed once before the model serves: each one shape, or a
        /// table of shapes by input
        warm: Vec<Vec<(String, Vec<usize>)>> = Vec::new(), CALLS, "SHAPES", one_model;
    }
    and {
        /// origin of each value by key, for errors
        said_by: Vec<(&'static str, String)>;
    }
}

impl ModelSettings {
    /// Returns the last origin of the value for this key: a line of a file, or an option.
    pub(crate) fn said_by(&self, key: &str) -> Option<&str> {
        self.said_by.iter().rev().find(|(said, _)| *said == key).map(|(_, by)| by.as_str())
    }

    /// Fails if a file that is named, other than the model's own, is outside of a folder.
    pub(crate) fn check_inside(&self, folder: &Path, what: &str) -> Result<(), String> {
        let real = |file: &Path| file.canonicalize().map_err(|error| format!("'{}': {error}", file.display()));
        for file in [&self.params, &self.golden, &self.labels, &self.hooks].into_iter().flatten() {
            if !real(file)?.starts_with(real(folder)?) {
                return Err(format!("'{}' leads out of {what}", file.display()));
            }
        }
        Ok(())
    }
}
