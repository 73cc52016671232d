//! What may be said of a model.

use crate::preprocess::Preprocess;
use mxrt_tensor::DType;
use std::path::PathBuf;
use std::time::Duration;

/// A model that is to be served.
#[derive(Clone, Debug)]
pub struct ModelSpec {
    /// name that requests use
    pub name: String,
    /// what is said of it
    pub settings: ModelSettings,
}

/// Where a model is, what its files do not say, and how it is served.
#[derive(Clone, Debug)]
pub struct ModelSettings {
    /// prefix of its files, its symbol file, or a folder with one model
    pub path: Option<PathBuf>,
    /// the parameter file; none: the one of the highest number
    pub params: Option<PathBuf>,
    /// version that requests may name
    pub version: String,
    /// shapes of inputs; -1 stands for any extent. One without a name is that of the only input
    pub shapes: Vec<(String, Vec<i64>)>,
    /// types of inputs, where they are not those that the graph asks for
    pub dtypes: Vec<(String, DType)>,
    /// how products are computed, as in `hybridize`
    pub precision: &'static str,
    /// whether requests that wait are joined
    pub batch: BatchChoice,
    /// how long a lone request waits for others, where they are joined
    pub max_delay: Duration,
    /// rows of batches, ascending; none: powers of two
    pub sizes: Vec<usize>,
    /// requests are joined only where rows have the bits that they have alone
    pub exact_bits: bool,
    /// time for a request that says none; none: no bound
    pub deadline: Option<Duration>,
    /// requests that may wait or compute at a time; none: as many as the server takes
    pub queue_requests: Option<usize>,
    /// bytes of request bodies that may be held at a time; none: as many as the server takes
    pub queue_bytes: Option<usize>,
    /// calls that may compute at a time; none: no bound
    pub calls: Option<usize>,
    /// cores that its calls use together; none: no bound
    pub cores: Option<usize>,
    /// what it gets of the cores where models compete, beside the weights of the others
    pub weight: f64,
    /// how an image becomes the input; none: the model takes no images
    pub preprocess: Option<Preprocess>,
    /// file of functions that are called before the model and after it
    pub hooks: Option<PathBuf>,
    /// file of the names of classes, one a line
    pub labels: Option<PathBuf>,
    /// which versions of a repository's model serve
    pub versions: VersionChoice,
    /// the server is not ready while the model does not serve
    pub required: bool,
    /// inputs and the outputs that they must give, in a `.npz`, by their names
    pub golden: Option<PathBuf>,
    /// shapes of inputs that are computed once before the model serves
    pub warm: Vec<Vec<(String, Vec<usize>)>>,
    /// who said what, by key, for errors
    pub(crate) said_by: Vec<(&'static str, String)>,
}

impl ModelSettings {
    /// The last who said something by this key: a place in a file, an option.
    pub(crate) fn said_by(&self, key: &str) -> Option<&str> {
        self.said_by.iter().rev().find(|(said, _)| *said == key).map(|(_, by)| by.as_str())
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

/// Whether requests that wait are joined into batches.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum BatchChoice {
    /// never: answers have the bits of calls of their own
    #[default]
    Off,
    /// where the estimates of the plan say that it is worth it
    Auto,
    /// wherever rows do not depend on each other, at most so many rows
    Rows(usize),
}

/// Which versions of a repository's model serve.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum VersionChoice {
    /// the highest
    Latest,
    /// all
    All,
    /// these
    These(Vec<String>),
}
