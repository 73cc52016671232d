//! Data iterators.

use crate::arguments::{columns, parameter};
use crate::border::{Error, c_functions};
use crate::handles::{DataIterHandle, ITERATOR, NDArrayHandle, OpHandle, defined, free, get, hold};
use crate::pointers::{Definitions, StaticText, StaticTexts, count, distinct, put, texts};
use crate::returned::{self, ResultPlace};
use crate::runtime::engine;
use mxrt::internal::io::iterators::batch::{BatchIter, DataBatch};
use mxrt::internal::io::iterators::{ITERATORS, IterDef};
use mxrt::internal::{ForkSafeLazy, ForkSafeMutex};
use std::ffi::{c_char, c_int};
use std::sync::Arc;

/// Handle of an iterator's definition.
pub type DataIterCreator = OpHandle;

/// An iterator and the batch that it stands at.
pub(crate) struct Iteration {
    iter: BatchIter,
    batch: ForkSafeMutex<Option<Arc<DataBatch>>>,
}

/// The description of an iterator for callers, in memory that lives as long as the process.
struct Info {
    name: StaticText,
    doc: StaticText,
    number: u32,
    /// names, types and descriptions of the parameters
    args: [StaticTexts; 3],
}

static INFOS: ForkSafeLazy<Vec<Info>> = ForkSafeLazy::new(|| ITERATORS.iter().map(|def| describe(def)).collect());

fn describe(def: &IterDef) -> Info {
    let parameters = def.all_parameters();
    Info {
        name: StaticText::new(def.name),
        doc: StaticText::new(def.doc),
        number: parameters.len() as u32,
        args: columns(parameters.iter().map(parameter).collect()),
    }
}

fn place(creator: DataIterCreator) -> Result<usize, Error> {
    let places: Vec<usize> = (0..ITERATORS.len()).collect();
    defined(&places, ITERATOR, creator, "an iterator's definition")
}

/// The batch that an iterator stands at.
fn batch(handle: DataIterHandle) -> Result<Arc<DataBatch>, Error> {
    let batch = get::<Iteration>(handle)?.batch.lock().clone();
    batch.ok_or_else(|| Error::value("the iterator stands at no batch: call MXDataIterNext, while it says 1"))
}

c_functions! {
    /// Handles of all iterators' definitions. They live as long as the process.
    fn MXListDataIters(out_size: *mut u32, out_array: *mut *mut DataIterCreator) {
        static HANDLES: ForkSafeLazy<Definitions> = ForkSafeLazy::new(|| Definitions::new(ITERATOR, ITERATORS.len()));
        put(out_size, ITERATORS.len() as u32, "out_size")?;
        put(out_array, HANDLES.as_ptr(), "out_array")
    }

    /// Describes an iterator. All text lives as long as the process.
    fn MXDataIterGetIterInfo(
        creator: DataIterCreator,
        name: *mut *const c_char,
        description: *mut *const c_char,
        num_args: *mut u32,
        arg_names: *mut *mut *const c_char,
        arg_type_infos: *mut *mut *const c_char,
        arg_descriptions: *mut *mut *const c_char,
    ) {
        let info = &INFOS[place(creator)?];
        put(name, info.name.as_ptr(), "name")?;
        put(description, info.doc.as_ptr(), "description")?;
        put(num_args, info.number, "num_args")?;
        put(arg_names, info.args[0].as_ptr(), "arg_names")?;
        put(arg_type_infos, info.args[1].as_ptr(), "arg_type_infos")?;
        put(arg_descriptions, info.args[2].as_ptr(), "arg_descriptions")
    }

    /// Starts an iterator. It stands before the first batch.
    fn MXDataIterCreateIter(
        handle: DataIterCreator,
        num_param: u32,
        keys: *const *const c_char,
        vals: *const *const c_char,
        out: *mut DataIterHandle,
    ) {
        let def = ITERATORS[place(handle)?];
        let number = count(num_param, "num_param")?;
        let (keys, vals) = (distinct(keys, number, "keys")?, texts(vals, number, "vals")?);
        let iter = def.start(engine()?, keys.into_iter().zip(vals))?;
        put(out, std::ptr::null_mut(), "out")?;
        put(out, hold(Iteration { iter, batch: ForkSafeMutex::default() }), "out")
    }

    /// Frees an iterator. Its arrays stay with their handles.
    fn MXDataIterFree(handle: DataIterHandle) {
        free::<Iteration>(handle)
    }

    /// Goes to the next batch. `*out` is 1, or 0 after the last.
    fn MXDataIterNext(handle: DataIterHandle, out: *mut c_int) {
        let iteration = get::<Iteration>(handle)?;
        put(out, 0, "out")?;
        let next = iteration.iter.next()?.map(Arc::new);
        let there = next.is_some();
        let before = std::mem::replace(&mut *iteration.batch.lock(), next);
        drop(before);
        put(out, c_int::from(there), "out")
    }

    /// Goes before the first batch.
    fn MXDataIterBeforeFirst(handle: DataIterHandle) {
        let iteration = get::<Iteration>(handle)?;
        let before = iteration.batch.lock().take();
        drop(before);
        Ok(iteration.iter.reset()?)
    }

    /// The data of the batch; the handle belongs to the caller.
    fn MXDataIterGetData(handle: DataIterHandle, out: *mut NDArrayHandle) {
        let batch = batch(handle)?;
        put(out, std::ptr::null_mut(), "out")?;
        put(out, hold(batch.data.clone()), "out")
    }

    /// The labels of the batch; the handle belongs to the caller.
    fn MXDataIterGetLabel(handle: DataIterHandle, out: *mut NDArrayHandle) {
        let batch = batch(handle)?;
        put(out, std::ptr::null_mut(), "out")?;
        put(out, hold(batch.label.clone()), "out")
    }

    /// Rows at the end of the batch that do not count.
    fn MXDataIterGetPadNum(handle: DataIterHandle, pad: *mut c_int) {
        put(pad, batch(handle)?.pad as c_int, "pad")
    }

    /// Numbers of the rows of the batch, in memory that belongs to the thread until
    /// it asks this iterator again.
    fn MXDataIterGetIndex(handle: DataIterHandle, out_index: *mut *mut u64, out_size: *mut u64) {
        let index = batch(handle)?.index.clone();
        put(out_size, index.len() as u64, "out_size")?;
        put(out_index, returned::list(ResultPlace::of_object("index", handle), index)?, "out_index")
    }
}
