//! Inferring shapes and types of symbols.

use crate::border::{Error, c_functions};
use crate::handles::SymbolHandle;
use crate::ndarray::element_type;
use crate::pointers::{count, distinct, list, put};
use crate::process::np_shape;
use crate::returned::{self, ResultPlace};
use crate::symbol::of;
use mxrt::internal::{InferredShapes, PartialShape};
use mxrt::params::NpShape;
use mxrt::{DType, Symbol};
use std::ffi::{c_char, c_int};

/// The arguments of callers: names, or null for the order of `list_arguments`, and concatenated
/// shapes.
struct Known<P, T> {
    number: u32,
    keys: *const *const c_char,
    ends: *const P,
    dims: *const T,
}

/// Names of what callers give: by key, or in order.
///
/// # Safety
/// `keys` is null or points to `number` texts.
unsafe fn keys(symbol: &Symbol, number: usize, keys: *const *const c_char) -> Result<Vec<String>, Error> {
    if !keys.is_null() {
        // SAFETY: contract.
        return Ok(unsafe { distinct(keys, number, "keys")? }.into_iter().map(str::to_owned).collect());
    }
    let mut names = symbol.list_arguments();
    if number > names.len() {
        let message = format!("the argument num_args is {number}, but the symbol has {} arguments", names.len());
        return Err(Error::value(message));
    }
    names.truncate(number);
    Ok(names)
}

impl<P: Copy + TryInto<usize>, T: Copy + Into<i64>> Known<P, T> {
    /// # Safety
    /// The pointers are null or point to what their names say.
    unsafe fn read(&self, symbol: &Symbol) -> Result<Vec<(String, PartialShape)>, Error> {
        let number = count(self.number, "num_args")?;
        if number == 0 {
            return Ok(Vec::new());
        }
        // SAFETY: contract.
        let names = unsafe { keys(symbol, number, self.keys)? };
        // SAFETY: contract: one position more than there are names.
        let ends = unsafe { list(self.ends, number + 1, "arg_ind_ptr")? };
        let bad = || Error::value("the argument arg_ind_ptr has a negative number");
        let ends: Vec<usize> =
            ends.iter().map(|end| (*end).try_into().map_err(|_| bad())).collect::<Result<_, Error>>()?;
        if ends.windows(2).any(|pair| pair[0] > pair[1]) {
            return Err(Error::value("the argument arg_ind_ptr goes down"));
        }
        // SAFETY: contract: as many extents as the last position says.
        let dims = unsafe { list(self.dims, ends[number], "arg_shape_data")? };
        let shape = |i: usize| partial(dims[ends[i]..ends[i + 1]].iter().map(|dim| (*dim).into()));
        Ok(names.into_iter().enumerate().map(|(i, name)| (name, shape(i))).collect())
    }
}

/// A shape as callers write it: -1, and without numpy's shapes 0 too, is unknown.
pub(crate) fn partial(dims: impl ExactSizeIterator<Item = i64>) -> PartialShape {
    let numpy = np_shape() != NpShape::Off;
    if dims.len() == 0 && !numpy {
        return PartialShape::UNKNOWN;
    }
    PartialShape::from_dims(dims.map(|dim| usize::try_from(dim).ok().filter(|dim| numpy || *dim != 0)))
}

/// The shape in the form of callers: an unknown extent is -1 with numpy's shapes, otherwise 0.
fn shown<T: TryFrom<i64>>(shape: &PartialShape) -> Result<(c_int, Vec<T>), Error> {
    let unknown = if np_shape() == NpShape::Off { 0 } else { -1 };
    let Some(dims) = shape.dims() else { return Ok((unknown as c_int, Vec::new())) };
    let number = |dim: &Option<usize>| {
        let dim = dim.map_or(unknown, |dim| dim as i64);
        let too_large = |_| Error::value(format!("the extent {dim} does not fit the integers of this function"));
        T::try_from(dim).map_err(too_large)
    };
    Ok((dims.len() as c_int, dims.iter().map(number).collect::<Result<_, Error>>()?))
}

/// The addresses for one list of shapes: its length, the ranks, and the extents.
struct Out<S, R, T>(*mut S, *mut *const R, *mut *mut *const T);

impl<S: TryFrom<usize>, R: TryFrom<c_int> + 'static, T: TryFrom<i64> + 'static> Out<S, R, T> {
    /// # Safety
    /// The pointers are null or point to places. `name` is that of the list in messages.
    unsafe fn put(&self, shapes: &[PartialShape], place: ResultPlace, name: &str) -> Result<(), Error> {
        let (mut ranks, mut rows) = (Vec::new(), Vec::new());
        for shape in shapes {
            let (rank, dims) = shown::<T>(shape)?;
            ranks.push(R::try_from(rank).map_err(|_| Error::value("an unknown rank cannot be told unsigned"))?);
            rows.push(dims);
        }
        let number = S::try_from(shapes.len()).map_err(|_| Error::value("too many shapes"))?;
        // SAFETY: contract.
        unsafe { put(self.0, number, &format!("{name}_size"))? };
        let (ranks, rows) = returned::shapes(place, ranks, rows)?;
        // SAFETY: contract.
        unsafe { put(self.1, ranks, &format!("{name}_ndim"))? };
        // SAFETY: contract.
        unsafe { put(self.2, rows, &format!("{name}_data")) }
    }
}

/// # Safety
/// The pointers are null or point to what their names say.
unsafe fn infer<P, G, S, R, T>(
    sym: SymbolHandle,
    known: Known<P, G>,
    outs: [(Out<S, R, T>, ResultPlace); 3],
    complete: *mut c_int,
    want_partial: bool,
) -> Result<(), Error>
where
    P: Copy + TryInto<usize>,
    G: Copy + Into<i64>,
    S: TryFrom<usize>,
    R: TryFrom<c_int> + 'static,
    T: TryFrom<i64> + 'static,
{
    let symbol = of(sym)?;
    // SAFETY: contract.
    let known = unsafe { known.read(&symbol)? };
    let mut found = symbol.infer_shape(&known, want_partial)?;
    let all = found.complete;
    // What follows from a part of the shapes, a program sees as MXNet leaves it.
    if want_partial || !all {
        found = symbol.infer_shape_as_mxnet(&known)?;
    }
    let InferredShapes { args, outs: results, aux, .. } = found;
    let lists = [("in_shape", &args), ("out_shape", &results), ("aux_shape", &aux)];
    for ((out, place), (name, shapes)) in outs.iter().zip(lists) {
        // SAFETY: contract.
        unsafe { out.put(shapes, *place, name)? };
    }
    // SAFETY: contract.
    unsafe { put(complete, c_int::from(all), "complete") }
}

/// The place for one list of a function.
macro_rules! place {
    ($function:ident $list:ident) => {
        ResultPlace::of(concat!(stringify!($function), " ", stringify!($list)))
    };
}

macro_rules! infer_shape {
    ($($(#[$doc:meta])* $name:ident($ends:ty, $given:ty, $size:ty, $rank:ty, $dim:ty, $partial:literal);)*) => {
        c_functions! {$(
            $(#[$doc])*
            fn $name(
                sym: SymbolHandle,
                num_args: u32,
                keys: *const *const c_char,
                arg_ind_ptr: *const $ends,
                arg_shape_data: *const $given,
                in_shape_size: *mut $size,
                in_shape_ndim: *mut *const $rank,
                in_shape_data: *mut *mut *const $dim,
                out_shape_size: *mut $size,
                out_shape_ndim: *mut *const $rank,
                out_shape_data: *mut *mut *const $dim,
                aux_shape_size: *mut $size,
                aux_shape_ndim: *mut *const $rank,
                aux_shape_data: *mut *mut *const $dim,
                complete: *mut c_int,
            ) {
                let known = Known { number: num_args, keys, ends: arg_ind_ptr, dims: arg_shape_data };
                let outs = [
                    (Out(in_shape_size, in_shape_ndim, in_shape_data), place!($name in)),
                    (Out(out_shape_size, out_shape_ndim, out_shape_data), place!($name out)),
                    (Out(aux_shape_size, aux_shape_ndim, aux_shape_data), place!($name aux)),
                ];
                infer(sym, known, outs, complete, $partial)
            }
        )*}
    };
}
infer_shape! {
    /// Shapes of arguments, outputs and auxiliary states, in memory that belongs to the thread.
    MXSymbolInferShape(u32, u32, u32, u32, u32, false);
    /// Variant of `MXSymbolInferShape` in which extents that cannot be inferred stay unknown.
    MXSymbolInferShapePartial(u32, u32, u32, u32, u32, true);
    /// Variant of `MXSymbolInferShape` in signed integers.
    MXSymbolInferShapeEx(u32, c_int, u32, c_int, c_int, false);
    /// Variant of `MXSymbolInferShapeEx` in which extents that cannot be inferred stay unknown.
    MXSymbolInferShapePartialEx(u32, c_int, u32, c_int, c_int, true);
    /// Variant of `MXSymbolInferShape` in integers of 64 bits.
    MXSymbolInferShapeEx64(i64, i64, usize, c_int, i64, false);
    /// Variant of `MXSymbolInferShapeEx64` in which extents that cannot be inferred stay unknown.
    MXSymbolInferShapePartialEx64(i64, i64, usize, c_int, i64, true);
}

/// The addresses for one list of types, and its place.
struct TypeList(*mut u32, *mut *const c_int, ResultPlace);

/// # Safety
/// The pointers are null or point to what their names say.
unsafe fn infer_type(
    sym: SymbolHandle,
    (num_args, names, given): (u32, *const *const c_char, *const c_int),
    outs: [TypeList; 3],
    complete: *mut c_int,
    want_partial: bool,
) -> Result<(), Error> {
    let symbol = of(sym)?;
    let number = count(num_args, "num_args")?;
    // SAFETY: contract.
    let names = unsafe { keys(&symbol, number, names)? };
    // SAFETY: contract.
    let codes = unsafe { list(given, number, "arg_type_data")? };
    let mut known = Vec::new();
    for (name, code) in names.into_iter().zip(codes) {
        // -1 is unknown.
        if *code != -1 {
            known.push((name, element_type(*code)?));
        }
    }
    let found = symbol.infer_type(&known, want_partial)?;
    for (which, (out, types)) in outs.iter().zip([&found.args, &found.outs, &found.aux]).enumerate() {
        let name = ["in_type", "out_type", "aux_type"][which];
        let codes = types.iter().map(|dtype| dtype.map_or(-1, DType::code)).collect();
        // SAFETY: contract.
        unsafe { put(out.0, types.len() as u32, &format!("{name}_size"))? };
        let codes = returned::list::<c_int>(out.2, codes)?.cast_const();
        // SAFETY: contract.
        unsafe { put(out.1, codes, &format!("{name}_data"))? };
    }
    // SAFETY: contract.
    unsafe { put(complete, c_int::from(found.complete), "complete") }
}

macro_rules! infer_type {
    ($($(#[$doc:meta])* $name:ident($partial:literal);)*) => {
        c_functions! {$(
            $(#[$doc])*
            fn $name(
                sym: SymbolHandle,
                num_args: u32,
                keys: *const *const c_char,
                arg_type_data: *const c_int,
                in_type_size: *mut u32,
                in_type_data: *mut *const c_int,
                out_type_size: *mut u32,
                out_type_data: *mut *const c_int,
                aux_type_size: *mut u32,
                aux_type_data: *mut *const c_int,
                complete: *mut c_int,
            ) {
                let outs = [
                    TypeList(in_type_size, in_type_data, place!($name in)),
                    TypeList(out_type_size, out_type_data, place!($name out)),
                    TypeList(aux_type_size, aux_type_data, place!($name aux)),
                ];
                infer_type(sym, (num_args, keys, arg_type_data), outs, complete, $partial)
            }
        )*}
    };
}
infer_type! {
    /// Codes of the element types of arguments, outputs and auxiliary states; -1 is unknown.
    MXSymbolInferType(false);
    /// Variant of `MXSymbolInferType` in which types that cannot be inferred stay unknown.
    MXSymbolInferTypePartial(true);
}
