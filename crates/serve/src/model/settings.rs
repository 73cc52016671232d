//! Settings of a model, after they were read.

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

/// Files of a model, types that they do not give, and how the model is served.
#[derive(Clone, Debug)]
pub struct ModelSettings {
    /// prefix of its files, its symbol file, or a folder with one model
    pub path: Option<PathBuf>,
    /// parameter file; none: the one with the highest number
    pub params: Option<PathBuf>,
    /// version that requests may name
    pub version: String,
    /// shapes of inputs, where -1 stands for any extent; a shape without a name is that of the only
    /// input
    pub shapes: Vec<(String, Vec<i64>)>,
    /// types of inputs, if they differ from those of the graph
    pub dtypes: Vec<(String, DType)>,
    /// precision of products, as in `hybridize`
    pub precision: &'static str,
    /// whether waiting requests are joined
    pub batch: BatchChoice,
    /// time for which a lone request waits for others, if requests are joined
    pub max_delay: Duration,
    /// numbers of rows of batches, ascending; none: powers of two
    pub sizes: Vec<usize>,
    /// whether requests are joined only if rows have the same bits in a batch as alone
    pub exact_bits: bool,
    /// deadline of requests that give none, as a time from their start; none: no bound
    pub deadline: Option<Duration>,
    /// number of requests that may wait or compute concurrently; none: that of the server
    pub queue_requests: Option<usize>,
    /// bytes of request bodies that may be held concurrently; none: those of the server
    pub queue_bytes: Option<usize>,
    /// number of calls that may compute concurrently; none: no bound
    pub calls: Option<usize>,
    /// number of cores that its calls use together; none: no bound
    pub cores: Option<usize>,
    /// share of the cores, relative to the weights of other models, when models compete
    pub weight: f64,
    /// conversion of images to the input; none: the model takes no images
    pub preprocess: Option<Preprocess>,
    /// file of the functions that are called before and after the model
    pub hooks: Option<PathBuf>,
    /// file of the names of classes, one a line
    pub labels: Option<PathBuf>,
    /// versions of a repository's model that serve
    pub versions: VersionChoice,
    /// whether the server is ready only while the model serves
    pub required: bool,
    /// file of inputs and the outputs that they must give, in a `.npz`, by their names
    pub golden: Option<PathBuf>,
    /// shapes of inputs that are computed once before the model serves
    pub warm: Vec<Vec<(String, Vec<usize>)>>,
    /// origin of each value by key, for errors
    pub(crate) said_by: Vec<(&'static str, String)>,
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

impl Default for ModelSettings {
    fn default() -> ModelSettings {
        ModelSettings {
            path: None,
            params: None,
            version: "1".to_owned(),
            shapes: Vec::new(),
            dtypes: Vec::new(),
            precision: "default",
            batch: BatchChoice::Off,
            max_delay: Duration::ZERO,
            sizes: Vec::new(),
            exact_bits: false,
            deadline: None,
            queue_requests: None,
            queue_bytes: None,
            calls: None,
            cores: None,
            weight: 1.0,
            preprocess: None,
            hooks: None,
            labels: None,
            versions: VersionChoice::Latest,
            required: true,
            golden: None,
            warm: Vec::new(),
            said_by: Vec::new(),
        }
    }
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
