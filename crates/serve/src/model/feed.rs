//! Inputs of the graph, made of the tensors of requests. A dense input is one tensor. A csr matrix
//! `data` is three: `data.values`, `data.indices` and `data.indptr`.

use super::{Model, TensorInfo, listed};
use crate::account::Account;
use crate::refusal::Refusal;
use crate::refusal::room;
use mxrt_engine::{Engine, FailureKind, OpError, WaitError};
use mxrt_graph::Symbol;
use mxrt_tensor::{Context, DType, NDArray, PartialShape, Shape, StorageType, TensorType};
use std::collections::HashMap;

/// Endings of the names of the tensors that a csr matrix is made of.
const PARTS: [&str; 3] = [".values", ".indices", ".indptr"];

/// Attribute of a variable that says how its array is stored, by MXNet's code.
const STORAGE: &str = "__storage_type__";

/// Input of the graph.
#[derive(Clone, Debug)]
pub(crate) struct Feed {
    /// name, element type and shape of the array; the columns of a csr matrix are known
    pub(crate) info: TensorInfo,
    pub(crate) storage: StorageType,
    /// number of its first tensor among those of a request
    first: usize,
}

impl Feed {
    /// Makes the inputs of a graph from the types of its variables. The columns of csr matrices that
    /// `infos` leave open are those of the weights that they are multiplied by.
    pub(super) fn all(
        symbol: &Symbol,
        params: &HashMap<String, NDArray>,
        infos: Vec<TensorInfo>,
    ) -> Result<Vec<Feed>, OpError> {
        let attributes = symbol.attr_dict();
        let is_csr = |name: &str| {
            let said = attributes.get(name).and_then(|attributes| attributes.get(STORAGE)?.parse().ok());
            said.and_then(StorageType::from_code) == Some(StorageType::Csr)
        };
        let mut first = 0;
        let feed = |mut info: TensorInfo| {
            let storage = if is_csr(&info.name) { StorageType::Csr } else { StorageType::Default };
            if storage == StorageType::Csr {
                info.shape = matrix(&info, weight_rows(symbol, params, &info.name))?;
            }
            let feed = Feed { info, storage, first };
            first += feed.parts();
            Ok(feed)
        };
        infos.into_iter().map(feed).collect()
    }

    pub(crate) fn is_csr(&self) -> bool {
        self.storage == StorageType::Csr
    }

    /// Returns the number of tensors of a request that it is made of.
    fn parts(&self) -> usize {
        if self.is_csr() { PARTS.len() } else { 1 }
    }

    /// Returns the tensors of a request that it is made of.
    pub(super) fn tensors(&self) -> Vec<TensorInfo> {
        if !self.is_csr() {
            return vec![self.info.clone()];
        }
        let rows = self.info.shape.dims().and_then(|dims| dims.first().copied()).flatten();
        let parts = [(self.info.dtype, None), (DType::I64, None), (DType::I64, rows.map(|rows| rows + 1))];
        let tensor = |(ending, (dtype, extent))| TensorInfo {
            name: format!("{}{ending}", self.info.name),
            dtype,
            shape: PartialShape::from_dims([extent]),
        };
        PARTS.into_iter().zip(parts).map(tensor).collect()
    }

    /// Returns the number of columns of a csr matrix.
    pub(crate) fn columns(&self) -> usize {
        self.info.shape.dims().and_then(|dims| dims.get(1).copied()).flatten().unwrap_or(0)
    }

    /// Makes the array from the tensors of a request, of which `arrays` has the right types. They
    /// are copied.
    pub(super) fn array(&self, engine: &'static Engine, arrays: &[NDArray]) -> Result<NDArray, OpError> {
        let lost = || OpError::new(FailureKind::Operator, "an input of the graph has no tensor");
        let parts = arrays.get(self.first..self.first + self.parts()).ok_or_else(lost)?;
        let [values, indices, pointers] = parts else { return Ok(parts[0].clone()) };
        let read = |error: WaitError| OpError::new(FailureKind::Operator, error.to_string());
        let (values, indices) = (values.read().map_err(read)?, indices.read().map_err(read)?);
        let pointers = pointers.read().map_err(read)?;
        let (values, indices, pointers) = (values.tensor(), indices.tensor(), pointers.tensor());
        self.matrix(engine, values.bytes(), indices.as_slice()?, pointers.as_slice()?)
    }

    /// Makes a csr matrix, whose number of rows is that of the pointers.
    fn matrix(
        &self,
        engine: &'static Engine,
        values: &[u8],
        indices: &[i64],
        pointers: &[i64],
    ) -> Result<NDArray, OpError> {
        let wrong =
            |message: String| OpError::new(FailureKind::Value, format!("input '{}': {message}", self.info.name));
        let Some(rows) = pointers.len().checked_sub(1) else {
            return Err(wrong(
                "'indptr' is empty; it has the number of rows + 1 elements, of which the first is 0".into(),
            ));
        };
        let count = values.len() / self.info.dtype.size();
        if count != indices.len() {
            let message = format!("'values' has {count} elements and 'indices' {}; they are pairs", indices.len());
            return Err(wrong(message));
        }
        let tensor = TensorType::new(self.info.dtype, [rows, self.columns()]);
        let array = NDArray::from_parts(engine, StorageType::Csr, tensor, values, indices, pointers);
        array.map_err(|error| match error.kind {
            FailureKind::Value => wrong(error.message.clone()),
            _ => error,
        })
    }

    /// Makes an array of zeros.
    pub(super) fn zeros(&self, engine: &'static Engine, tensor: TensorType) -> Result<NDArray, OpError> {
        NDArray::new_stored(engine, Context::cpu(0), tensor, self.storage)
    }

    /// Makes a row of some elements. A csr matrix has some columns, over the whole width.
    pub(super) fn some_row(
        &self,
        engine: &'static Engine,
        tensor: &TensorType,
        mut elements: impl FnMut(&TensorType) -> Vec<u8>,
    ) -> Result<NDArray, OpError> {
        const STORED: usize = 16;
        if !self.is_csr() {
            return NDArray::from_bytes(engine, Context::cpu(0), tensor.clone(), &elements(tensor));
        }
        let count = self.columns().min(STORED);
        let columns: Vec<i64> = (0..count).map(|i| (i * (self.columns() / count)) as i64).collect();
        let values = elements(&TensorType::new(tensor.dtype, [count]));
        self.matrix(engine, &values, &columns, &[0, count as i64])
    }
}

/// Name, type and elements of a tensor of a request.
pub(crate) type TensorPart = (String, TensorType, Vec<u8>);

impl Feed {
    /// Returns the tensors of a csr matrix that has these values and positions.
    pub(crate) fn csr_parts(
        &self,
        values: Vec<u8>,
        columns: &[i64],
        pointers: &[i64],
    ) -> Result<Vec<TensorPart>, Refusal> {
        let bytes = |numbers: &[i64]| {
            let mut bytes = Vec::new();
            room(&mut bytes, size_of_val(numbers))?;
            numbers.iter().for_each(|number| bytes.extend_from_slice(&number.to_ne_bytes()));
            Ok(bytes)
        };
        let contents = [values, bytes(columns)?, bytes(pointers)?];
        let part = |(tensor, content): (TensorInfo, Vec<u8>)| {
            let count = content.len() / tensor.dtype.size();
            (tensor.name, TensorType::new(tensor.dtype, [count]), content)
        };
        Ok(self.tensors().into_iter().zip(contents).map(part).collect())
    }

    /// Returns the tensors of a csr matrix whose elements came as those of a dense array. `charge`
    /// is told of their bytes before they are taken.
    pub(crate) fn divided(
        &self,
        (_, tensor, bytes): TensorPart,
        charge: &mut dyn FnMut(usize) -> Result<(), Refusal>,
    ) -> Result<Vec<TensorPart>, Refusal> {
        self.info.check(&tensor)?;
        let (size, columns) = (tensor.dtype.size(), self.columns());
        let is_stored = |element: &&[u8]| element.iter().any(|byte| *byte != 0);
        let stored = bytes.chunks_exact(size).filter(is_stored).count();
        let rows = tensor.shape.first().copied().unwrap_or(0);
        charge(stored * (size + 16) + 16 * (rows + 1))?;
        let (mut values, mut indices, mut pointers) = (Vec::new(), Vec::new(), Vec::new());
        room(&mut values, stored * size)?;
        room(&mut indices, stored)?;
        room(&mut pointers, rows + 1)?;
        pointers.resize(rows + 1, 0);
        for (i, element) in bytes.chunks_exact(size).enumerate().filter(|(_, element)| is_stored(element)) {
            values.extend_from_slice(element);
            indices.push((i % columns) as i64);
            pointers[i / columns + 1] = indices.len() as i64;
        }
        // Rows without values end where the rows before them end.
        let mut end = 0;
        for pointer in &mut pointers {
            end = end.max(*pointer);
            *pointer = end;
        }
        self.csr_parts(values, &indices, &pointers)
    }
}

impl Model {
    /// Returns the input of the graph, if it has one.
    pub(crate) fn lone_feed(&self) -> Option<&Feed> {
        match &self.feeds[..] {
            [only] => Some(only),
            _ => None,
        }
    }

    /// Returns the csr matrix of this name among the inputs of the graph.
    pub(crate) fn csr_named(&self, name: &str) -> Option<&Feed> {
        self.feeds.iter().find(|feed| feed.is_csr() && feed.info.name == name)
    }

    /// Makes the inputs of the graph from the tensors of a request. Those of csr matrices are
    /// checked and copied; the copies are charged to `account`.
    pub(crate) fn feed(&self, arrays: Vec<NDArray>, account: &Account) -> Result<Vec<NDArray>, Refusal> {
        if !self.has_csr() {
            return Ok(arrays);
        }
        let array = |feed: &Feed| {
            if feed.is_csr() {
                let parts = &arrays[feed.first..feed.first + feed.parts()];
                account.add(parts.iter().map(NDArray::nbytes).sum())?;
            }
            feed.array(self.engine, &arrays).map_err(|error| match error.kind {
                FailureKind::Value => Refusal::invalid(error.message.clone()),
                _ => Refusal::of_call(&error),
            })
        };
        self.feeds.iter().map(array).collect()
    }

    /// Returns whether an input of the graph is a csr matrix.
    pub(crate) fn has_csr(&self) -> bool {
        self.feeds.iter().any(Feed::is_csr)
    }
}

/// Returns the shape of a csr matrix, with its columns: those that are given, or those of `weights`.
fn matrix(info: &TensorInfo, weights: Option<usize>) -> Result<PartialShape, OpError> {
    let wrong = |words: String| super::bad(format!("shapes: the input '{}' is a csr matrix; {words}", info.name));
    let (rows, columns) = match info.shape.dims() {
        None => (None, None),
        Some([rows, columns]) => (*rows, *columns),
        Some(dims) => return Err(wrong(format!("its shape has 2 axes, not {}", dims.len()))),
    };
    let columns = columns.or(weights).ok_or_else(|| {
        wrong(format!("the number of its columns is not known: say it by {} = [-1, COLUMNS]", info.name))
    })?;
    Ok(PartialShape::from_dims([rows, Some(columns)]))
}

/// Returns the rows of the weights that a variable is multiplied by, if there are such.
fn weight_rows(symbol: &Symbol, params: &HashMap<String, NDArray>, name: &str) -> Option<usize> {
    symbol.topo().iter().find_map(|node| {
        let [data, weight, ..] = &node.inputs[..] else { return None };
        if !data.node.is_variable() || data.node.name != name || !weight.node.is_variable() {
            return None;
        }
        let shape: &Shape = params.get(&weight.node.name)?.shape();
        let transposed = |key: &str| node.parsed().bool(key);
        match node.op?.name {
            "dot" if !transposed("transpose_a") => shape.get(usize::from(transposed("transpose_b"))).copied(),
            "FullyConnected" => shape.get(1).copied(),
            _ => None,
        }
    })
}

/// Returns the names of the tensors of csr matrices, for a request that gives the matrix itself.
pub(super) fn parts_of(name: &str) -> String {
    let names: Vec<String> = PARTS.iter().map(|ending| format!("{name}{ending}")).collect();
    listed(&names.iter().collect::<Vec<_>>())
}
