//! The table of contents of a parameter list: what is where, without the content.

use super::format::{LIST_MAGIC, RECORD_V1, RECORD_V2, RECORD_V3, SHORTEST_RECORD};
use super::source::ListSource;
use super::{NpShape, ParamsError};
use crate::foreign::HEAD;
use crate::{FileError, recognise};
use mxrt_engine::{Engine, FailureKind, OpError};
use mxrt_tensor::{DType, Shape, StorageType, TensorType};

/// Bytes fetched at once while the small fields are read.
const WINDOW: u64 = 4096;

/// Most characters of a name that messages show. A damaged file may have one of any length.
const SHOWN: usize = 60;

const DAMAGED: &str = "The file is damaged or was not written by MXNet's save; copy or download it again";

/// An array in the file.
pub(super) struct ArrayRecord {
    pub(super) tensor: TensorType,
    /// Position of its elements, or of the values of a sparse array.
    pub(super) offset: u64,
    pub(super) sparse: Option<SparseRecord>,
}

/// The parts of a sparse array in the file.
pub(super) struct SparseRecord {
    pub(super) storage: StorageType,
    /// Type of the values.
    pub(super) values: TensorType,
    /// Positions: row numbers, or row pointers and columns. Each with the place of its elements.
    pub(super) positions: Vec<(TensorType, u64)>,
}

/// The content of a record.
enum Content {
    Array(ArrayRecord),
    Nothing,
}

/// All records and their names (none for a list).
pub(super) struct Index {
    pub(super) records: Vec<ArrayRecord>,
    pub(super) names: Vec<String>,
}

/// Reads the table of contents. Everything that is wrong with the structure of the file is found
/// here.
pub(super) fn index(
    engine: &'static Engine,
    source: &ListSource<'_>,
    path: &str,
    np_shape: NpShape,
) -> Result<Index, ParamsError> {
    let (window, place) = (Vec::new(), FilePart::Header);
    let mut reader = Reader { engine, source, path, np_shape, offset: 0, window, window_start: 0, place };
    let count = reader.header()?;
    let mut records = Vec::new();
    // The first array that cannot be loaded. Its name comes at the end of the file, so the error
    // waits for it.
    let mut unusable = None;
    for i in 0..count {
        reader.place = FilePart::Array { i, count };
        match reader.record()? {
            Content::Array(record) => records.push(record),
            Content::Nothing => unusable = unusable.or(Some(i)),
        }
    }
    let names = reader.names(count)?;
    let Some(i) = unusable else { return Ok(Index { records, names }) };
    Err(ParamsError::NoArray { path: path.to_owned(), array: array_name(i as usize, count as usize, &names) })
}

/// How messages call array `i` of `count`.
pub(super) fn array_name(i: usize, count: usize, names: &[String]) -> String {
    match names.get(i) {
        Some(name) => format!("array '{}'", shown(name)),
        None => format!("array {i} of {count}"),
    }
}

/// The beginning of a name.
fn shown(name: &str) -> String {
    match name.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{}...", &name[..end]),
        None => name.to_owned(),
    }
}

/// The part of the file that is being read, for messages.
#[derive(Clone, Copy)]
enum FilePart {
    Header,
    Array { i: u64, count: u64 },
    Names,
    Name { i: u64, count: u64 },
}

impl FilePart {
    fn of(self, field: &str) -> String {
        match self {
            FilePart::Header | FilePart::Names => field.to_owned(),
            FilePart::Array { i, count } => format!("{field} of array {i} of {count}"),
            FilePart::Name { i, count } => format!("{field} of name {i} of {count}"),
        }
    }
}

/// A position in the source, and what is being read there.
struct Reader<'a> {
    engine: &'static Engine,
    source: &'a ListSource<'a>,
    path: &'a str,
    np_shape: NpShape,
    offset: u64,
    window: Vec<u8>,
    window_start: u64,
    place: FilePart,
}

impl Reader<'_> {
    fn left(&self) -> u64 {
        self.source.len().saturating_sub(self.offset)
    }

    fn need(&self, field: &str, needed: u64) -> Result<(), ParamsError> {
        if needed <= self.left() {
            return Ok(());
        }
        Err(ParamsError::Truncated {
            path: self.path.to_owned(),
            place: self.place.of(field),
            offset: self.offset,
            needed,
            left: self.left(),
        })
    }

    /// An error at the field of `width` bytes that was just read.
    fn malformed(&self, field: &str, width: u64, found: String) -> ParamsError {
        self.malformed_with(field, width, found, DAMAGED)
    }

    fn malformed_with(&self, field: &str, width: u64, found: String, advice: &'static str) -> ParamsError {
        let offset = self.offset.saturating_sub(width);
        ParamsError::Malformed { path: self.path.to_owned(), place: self.place.of(field), offset, found, advice }
    }

    fn read_at(&self, offset: u64, to: &mut [u8]) -> Result<(), ParamsError> {
        Ok(self.source.read_at(offset, to).map_err(|error| FileError::io("reading", self.path, &error))?)
    }

    /// The next few bytes, through a window so that small fields do not cost a system call each.
    fn take<const N: usize>(&mut self, field: &str) -> Result<[u8; N], ParamsError> {
        self.need(field, N as u64)?;
        let end = self.offset + N as u64;
        if self.offset < self.window_start || end > self.window_start + self.window.len() as u64 {
            let mut window = vec![0; self.left().min(WINDOW) as usize];
            self.read_at(self.offset, &mut window)?;
            self.window = window;
            self.window_start = self.offset;
        }
        let start = (self.offset - self.window_start) as usize;
        let mut bytes = [0; N];
        bytes.copy_from_slice(&self.window[start..start + N]);
        self.offset = end;
        Ok(bytes)
    }

    fn u32(&mut self, field: &str) -> Result<u32, ParamsError> {
        self.take(field).map(u32::from_le_bytes)
    }

    fn i32(&mut self, field: &str) -> Result<i32, ParamsError> {
        self.take(field).map(i32::from_le_bytes)
    }

    fn i64(&mut self, field: &str) -> Result<i64, ParamsError> {
        self.take(field).map(i64::from_le_bytes)
    }

    fn u64(&mut self, field: &str) -> Result<u64, ParamsError> {
        self.take(field).map(u64::from_le_bytes)
    }

    fn skip(&mut self, field: &str, bytes: u64) -> Result<(), ParamsError> {
        self.need(field, bytes)?;
        self.offset += bytes;
        Ok(())
    }

    /// The list header: gives the number of arrays.
    fn header(&mut self) -> Result<u64, ParamsError> {
        let magic = self.u64("magic number of the list")?;
        if magic != LIST_MAGIC {
            let found = format!("found {magic:#x}, expected {LIST_MAGIC:#x}");
            let text = magic.to_le_bytes().iter().all(|byte| byte.is_ascii_graphic() || byte.is_ascii_whitespace());
            let mut head = vec![0; (8 + self.left()).min(HEAD as u64) as usize];
            self.read_at(0, &mut head)?;
            let advice = match (recognise(&head), head[0]) {
                (Some(advice), _) => advice,
                (None, b'{') if text => {
                    "It looks like a symbol file: the two are in each other's place. Pass the \
                     .params one here"
                }
                (None, _) => {
                    "Pass a file written by mx.nd.save, save_parameters or export (the .params \
                      one)"
                }
            };
            return Err(self.malformed_with("magic number of the list", 8, found, advice));
        }
        self.u64("reserved field")?;
        let count = self.u64("number of arrays")?;
        if count > self.left() / SHORTEST_RECORD {
            let found = format!("found {count}, which is more than the {} bytes that follow can hold", self.left());
            return Err(self.malformed("number of arrays", 8, found));
        }
        Ok(count)
    }

    fn record(&mut self) -> Result<Content, ParamsError> {
        let magic = self.u32("magic number")?;
        match magic {
            RECORD_V3 => self.typed_record(true),
            _ if self.np_shape == NpShape::ThreadLocal => {
                if magic != RECORD_V2 && magic != RECORD_V1 {
                    self.legacy_rank(magic)?;
                }
                Err(self.np_mismatch(
                    "was not saved in np shape semantics, but being loaded in np shape semantics: turn it off \
                     with MXSetIsNumpyShape(0) in C or NpShape::Off in Rust",
                ))
            }
            RECORD_V2 => self.typed_record(false),
            RECORD_V1 => {
                let shape = self.shape("shape")?;
                self.dense(shape)
            }
            rank => {
                self.legacy_rank(rank)?;
                let mut dims = Vec::new();
                for _ in 0..rank {
                    dims.push(self.u32("shape")? as usize);
                }
                self.dense((rank != 0).then(|| Shape::from(dims)))
            }
        }
    }

    /// Records of the first format begin with their number of axes; anything that cannot be one is
    /// a wrong magic number.
    fn legacy_rank(&self, rank: u32) -> Result<(), ParamsError> {
        if u64::from(rank) * 4 <= self.left() {
            return Ok(());
        }
        let found = format!(
            "found {rank:#x}, expected {RECORD_V2:#x}, {RECORD_V3:#x} or {RECORD_V1:#x} (or, in files of the first \
             format, a number of axes)"
        );
        Err(self.malformed("magic number", 4, found))
    }

    fn np_mismatch(&self, problem: &'static str) -> ParamsError {
        let array = match self.place {
            FilePart::Array { i, count } => format!("array {i} of {count}"),
            other => other.of("an array"),
        };
        ParamsError::NpShape { path: self.path.to_owned(), array, problem }
    }

    /// A record with a storage type, of version 2 or 3.
    fn typed_record(&mut self, np: bool) -> Result<Content, ParamsError> {
        let stype = self.i32("storage type")?;
        let Some(storage) = StorageType::from_code(stype) else {
            let found = format!("found {stype}, expected 0 (dense), 1 (row_sparse) or 2 (csr)");
            return Err(self.malformed("storage type", 4, found));
        };
        if storage == StorageType::Default {
            let shape = self.shape_as("shape", np || self.np_shape.is_on())?;
            if !self.np_shape.is_on() && shape.as_ref().is_some_and(|shape| shape.is_empty()) {
                return Err(self.np_mismatch(
                    "is a scalar that was saved in np shape semantics, must be loaded in the same semantics: within \
                     `with mx.util.np_shape(True):` or after `mx.npx.set_np()` in Python, after \
                     MXSetIsNumpyShape(2) in C, with NpShape::Global in Rust",
                ));
            }
            return self.dense(shape);
        }
        if np {
            let found = format!("found {stype} ({storage}), but arrays with np-shape are always dense (0)");
            return Err(self.malformed("storage type", 4, found));
        }
        self.sparse(storage)
    }

    /// Reads everything after the storage type of a sparse record.
    fn sparse(&mut self, storage: StorageType) -> Result<Content, ParamsError> {
        let stored = self.shape("storage shape")?.unwrap_or_default();
        let Some(shape) = self.shape("shape")? else { return Ok(Content::Nothing) };
        if shape.is_empty() || (storage == StorageType::Csr && shape.len() != 2) {
            return Err(self.malformed("shape", 0, format!("found {shape}, which a {storage} array cannot have")));
        }
        self.context()?;
        let dtype = self.dtype("dtype")?;
        let (tensor, _) = self.size("shape", dtype, shape)?;
        let mut positions = Vec::new();
        for _ in 0..storage.positions() {
            let dtype = self.dtype("index type")?;
            let shape = self.shape("index shape")?.unwrap_or_default();
            if shape.len() != 1 || dtype.is_float() {
                let found = format!("found {dtype}{shape}, expected whole numbers along one axis");
                return Err(self.malformed("index shape", 0, found));
            }
            positions.push(self.size("index shape", dtype, shape)?);
        }
        let values = self.stored_shape(storage, stored, &tensor, &positions)?;
        let (values, bytes) = self.size("storage shape", dtype, values)?;
        let offset = self.offset;
        self.skip("values", bytes)?;
        let mut placed = Vec::with_capacity(positions.len());
        for (numbers, bytes) in positions {
            placed.push((numbers, self.offset));
            self.skip("indices", bytes)?;
        }
        Ok(Content::Array(ArrayRecord {
            tensor,
            offset,
            sparse: Some(SparseRecord { storage, values, positions: placed }),
        }))
    }

    /// The shape of the values. MXNet writes the storage shape before it waits for the array, and
    /// all else after it: of an array that was still to be computed it is empty. Then the shape of
    /// the indices counts, as in MXNet.
    fn stored_shape(
        &self,
        storage: StorageType,
        stored: Shape,
        tensor: &TensorType,
        positions: &[(TensorType, u64)],
    ) -> Result<Shape, ParamsError> {
        let count = positions.last().map_or(0, |(numbers, _)| numbers.shape.size());
        let expected: Shape = match storage {
            StorageType::Csr => [count].into(),
            _ => [count].into_iter().chain(tensor.shape.iter().skip(1).copied()).collect(),
        };
        if stored == expected || stored.is_empty() || stored.size() == 0 {
            return Ok(expected);
        }
        let found = format!("found {stored}, expected {expected}, which the indices need");
        Err(self.malformed("storage shape", 0, found))
    }

    fn bytes_of(&mut self, field: &str, shape: Option<Shape>) -> Result<(TensorType, u64), ParamsError> {
        let dtype = self.dtype("dtype")?;
        self.size(field, dtype, shape.unwrap_or_default())
    }

    /// Reads everything after the shape of a dense record. No shape: the record ends there.
    fn dense(&mut self, shape: Option<Shape>) -> Result<Content, ParamsError> {
        let Some(shape) = shape else { return Ok(Content::Nothing) };
        self.context()?;
        let (tensor, bytes) = self.bytes_of("shape", Some(shape))?;
        let offset = self.offset;
        self.skip("elements", bytes)?;
        Ok(Content::Array(ArrayRecord { tensor, offset, sparse: None }))
    }

    /// The device the array lived on. It is not restored, so any value will do.
    fn context(&mut self) -> Result<(), ParamsError> {
        self.skip("device", 8)
    }

    fn dtype(&mut self, field: &str) -> Result<DType, ParamsError> {
        let code = self.i32(field)?;
        DType::from_code(code).ok_or_else(|| {
            self.malformed(field, 4, format!("found unknown type code {code}, expected 0 (float32) to 12 (bfloat16)"))
        })
    }

    fn shape(&mut self, field: &str) -> Result<Option<Shape>, ParamsError> {
        self.shape_as(field, self.np_shape.is_on())
    }

    /// Axes as MXNet writes them now, with numpy's meaning of shapes or the older one. `None`
    /// stands for an array that has no shape yet.
    fn shape_as(&mut self, field: &str, np: bool) -> Result<Option<Shape>, ParamsError> {
        let rank = self.i32(field)?;
        if rank < -1 || (rank == -1 && !np) {
            return Err(self.malformed(field, 4, format!("found {rank} axes, expected 0 or more")));
        }
        // Also bounds the memory for the extents.
        self.need(field, rank.max(0) as u64 * 8)?;
        let mut known = rank >= 0 && (np || rank > 0);
        let mut dims = Vec::with_capacity(rank.max(0) as usize);
        for _ in 0..rank {
            let extent = self.i64(field)?;
            match usize::try_from(extent) {
                Ok(extent) => dims.push(extent),
                Err(_) if extent == -1 && np => known = false,
                Err(_) => {
                    let found = format!("found extent {extent}; shape dim size must be >= 0");
                    return Err(self.malformed(field, 8, found));
                }
            }
        }
        Ok(known.then(|| Shape::from(dims)))
    }

    fn size(&self, field: &str, dtype: DType, shape: Shape) -> Result<(TensorType, u64), ParamsError> {
        let tensor = TensorType { dtype, shape };
        match tensor.checked_bytes() {
            Some(bytes) => Ok((tensor, bytes as u64)),
            None => {
                let found = format!("found {tensor}, which has more elements than any machine can hold");
                Err(self.malformed(field, 0, found))
            }
        }
    }

    fn names(&mut self, arrays: u64) -> Result<Vec<String>, ParamsError> {
        self.place = FilePart::Names;
        let count = self.u64("number of names")?;
        if count != 0 && count != arrays {
            let found = format!("found {count}, expected 0 or {arrays}, the number of arrays");
            return Err(self.malformed("number of names", 8, found));
        }
        let mut names = Vec::new();
        for i in 0..count {
            self.place = FilePart::Name { i, count };
            let length = self.u64("length")?;
            names.push(self.name(length)?);
        }
        Ok(names)
    }

    /// Reads a name of this length, in memory that counts.
    fn name(&mut self, length: u64) -> Result<String, ParamsError> {
        self.need("text", length)?;
        let (path, array) = (self.path, self.place.of("text"));
        let memory = |source: OpError| ParamsError::Memory { path: path.to_owned(), array: array.clone(), source };
        let mut text = self.engine.memory().alloc(length as usize).map_err(|refusal| memory(refusal.into()))?;
        self.read_at(self.offset, text.as_mut_slice())?;
        self.offset += length;
        let bytes = text.as_slice();
        let text = std::str::from_utf8(bytes).map_err(|_| {
            let begin = String::from_utf8_lossy(&bytes[..bytes.len().min(4 * SHOWN)]);
            self.malformed("text", length, format!("found {:?}, which is not UTF-8", shown(&begin)))
        })?;
        let mut name = String::new();
        name.try_reserve_exact(text.len()).map_err(|_| {
            let words = format!("there is no memory for a name of {length} bytes");
            memory(OpError::new(FailureKind::Memory, words))
        })?;
        name.push_str(text);
        Ok(name)
    }
}
