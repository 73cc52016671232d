//! Executors: a symbol together with the arrays of its variables and outputs.

use crate::border::{Error, c_functions};
use crate::handles::{ExecutorHandle, NDArrayHandle, SymbolHandle, all, free, get, hold};
use crate::ndarray::{context, element_type};
use crate::pointers::{Monitor, MonitorCallback, count, distinct, list, put, read, texts};
use crate::returned::{self, ResultPlace};
use crate::symbol::{give, of};
use crate::symbol_infer::partial;
use crate::training::{site, trains};
use mxrt::NDArray;
use mxrt::internal::symbol::described;
use mxrt::internal::{Executor, PartialShape, Reshaping, SharedArrays, TrainingScope};
use std::ffi::{c_char, c_int, c_void};

/// # Safety
/// As for `MXExecutorBind`.
unsafe fn bind(
    symbol: SymbolHandle,
    (dev_type, dev_id): (c_int, c_int),
    (len, in_args): (u32, *const NDArrayHandle),
    (aux_len, aux): (u32, *const NDArrayHandle),
    out: *mut ExecutorHandle,
) -> Result<(), Error> {
    // SAFETY: contract.
    let arguments = unsafe { arrays(len, in_args, "in_args")? };
    // SAFETY: contract.
    let states = unsafe { arrays(aux_len, aux, "aux_states")? };
    let executor = Executor::bind(site()?, of(symbol)?, context(dev_type, dev_id)?, arguments, states)?;
    // SAFETY: contract. The place is tried before there is a handle to lose.
    unsafe { put(out, std::ptr::null_mut(), "out")? };
    // SAFETY: contract.
    unsafe { put(out, hold(executor), "out") }
}

/// # Safety
/// `number` handles.
unsafe fn arrays(number: u32, handles: *const NDArrayHandle, name: &str) -> Result<Vec<NDArray>, Error> {
    // SAFETY: contract.
    let handles = unsafe { list(handles, count(number, name)?, name)? };
    Ok(all::<NDArray>(handles)?.iter().map(|array| (**array).clone()).collect())
}

/// Names and shapes: the extents of shape `i` are `data[idx[i] .. idx[i + 1]]`.
struct ArgumentShapes<T> {
    number: u32,
    names: *const *const c_char,
    data: *const T,
    idx: *const u32,
}

impl<T: Copy + Into<i64>> ArgumentShapes<T> {
    /// # Safety
    /// The pointers are null or point to what their names say.
    unsafe fn read(&self) -> Result<Vec<(String, PartialShape)>, Error> {
        let number = count(self.number, "num_provided_arg_shapes")?;
        if number == 0 {
            return Ok(Vec::new());
        }
        // SAFETY: contract.
        let names = unsafe { distinct(self.names, number, "provided_arg_shape_names")? };
        // SAFETY: contract.
        let ends = unsafe { list(self.idx, number + 1, "provided_arg_shape_idx")? };
        if ends.windows(2).any(|pair| pair[0] > pair[1]) {
            return Err(Error::value("the argument provided_arg_shape_idx goes down"));
        }
        // SAFETY: contract.
        let dims = unsafe { list(self.data, ends[number] as usize, "provided_arg_shape_data")? };
        let shape = |i: usize| {
            let dims = &dims[ends[i] as usize..ends[i + 1] as usize];
            partial(dims.iter().map(|dim| (*dim).into()))
        };
        Ok(names.into_iter().enumerate().map(|(i, name)| (name.to_owned(), shape(i))).collect())
    }
}

/// The addresses for the arrays of a new executor.
struct Arrays {
    num_in_args: *mut u32,
    in_args: *mut *mut NDArrayHandle,
    arg_grads: *mut *mut NDArrayHandle,
    num_aux: *mut u32,
    aux: *mut *mut NDArrayHandle,
}

impl Arrays {
    /// Tries the places, stores the handles of the arrays and of the executor. `place` is where the
    /// lists of the function stay.
    ///
    /// # Safety
    /// The pointers are null or point to places.
    unsafe fn give(&self, executor: Executor, place: ResultPlace, out: *mut ExecutorHandle) -> Result<(), Error> {
        let (arguments, states) = (executor.arguments(), executor.states());
        let places = [(self.in_args, "in_args"), (self.arg_grads, "arg_grads"), (self.aux, "aux_states")];
        for (place, name) in places {
            // SAFETY: contract.
            unsafe { put(place, std::ptr::null_mut(), name)? };
        }
        // SAFETY: contract.
        unsafe { put(self.num_in_args, arguments.len() as u32, "num_in_args")? };
        // SAFETY: contract.
        unsafe { put(self.num_aux, states.len() as u32, "num_aux_states")? };
        // SAFETY: contract.
        unsafe { put(out, std::ptr::null_mut(), "out")? };
        let handles = |arrays: &[(String, NDArray)]| arrays.iter().map(|(_, array)| hold(array.clone())).collect();
        // There is no gradient.
        let lists = [handles(arguments), vec![std::ptr::null_mut(); arguments.len()], handles(states)];
        let lists = returned::lists(place, lists)?;
        for ((place, name), list) in places.into_iter().zip(lists) {
            // SAFETY: contract.
            unsafe { put(place, list, name)? };
        }
        // SAFETY: contract.
        unsafe { put(out, hold(executor), "out") }
    }
}

fn no_sparse(number: u32, types: &[c_int]) -> Result<(), Error> {
    match types.iter().find(|code| **code > 0) {
        Some(code) => Err(Error::absent(format!(
            "provided_arg_stypes has storage type {code} among {number}: sparse arrays are not part of mxrt's executors"
        ))),
        None => Ok(()),
    }
}

macro_rules! binds {
    ($($(#[$doc:meta])* $name:ident($dim:ty);)*) => {
        c_functions! {$(
            $(#[$doc])*
            fn $name(
                symbol_handle: SymbolHandle,
                dev_type: c_int,
                dev_id: c_int,
                num_g2c_keys: u32,
                g2c_keys: *const *const c_char,
                g2c_dev_types: *const c_int,
                g2c_dev_ids: *const c_int,
                provided_grad_req_list_len: u32,
                provided_grad_req_names: *const *const c_char,
                provided_grad_req_types: *const *const c_char,
                num_provided_arg_shapes: u32,
                provided_arg_shape_names: *const *const c_char,
                provided_arg_shape_data: *const $dim,
                provided_arg_shape_idx: *const u32,
                num_provided_arg_dtypes: u32,
                provided_arg_dtype_names: *const *const c_char,
                provided_arg_dtypes: *const c_int,
                num_provided_arg_stypes: u32,
                provided_arg_stype_names: *const *const c_char,
                provided_arg_stypes: *const c_int,
                num_shared_arg_names: u32,
                shared_arg_name_list: *const *const c_char,
                shared_buffer_len: *mut c_int,
                shared_buffer_name_list: *const *const c_char,
                shared_buffer_handle_list: *mut NDArrayHandle,
                updated_shared_buffer_name_list: *mut *mut *const c_char,
                updated_shared_buffer_handle_list: *mut *mut NDArrayHandle,
                num_in_args: *mut u32,
                in_args: *mut *mut NDArrayHandle,
                arg_grads: *mut *mut NDArrayHandle,
                num_aux_states: *mut u32,
                aux_states: *mut *mut NDArrayHandle,
                shared_exec_handle: ExecutorHandle,
                out: *mut ExecutorHandle,
            ) {
                // All operators run on one device, nothing has gradients, and memory is planned for
                // each graph; these arguments change nothing.
                let _ = (num_g2c_keys, g2c_keys, g2c_dev_types, g2c_dev_ids);
                let _ = (provided_grad_req_list_len, provided_grad_req_names, provided_grad_req_types);
                let _ = (provided_arg_stype_names, shared_buffer_name_list, shared_buffer_handle_list);
                let symbol = of(symbol_handle)?;
                let shapes = ArgumentShapes {
                    number: num_provided_arg_shapes,
                    names: provided_arg_shape_names,
                    data: provided_arg_shape_data,
                    idx: provided_arg_shape_idx,
                };
                let shapes = shapes.read()?;
                let number = count(num_provided_arg_dtypes, "num_provided_arg_dtypes")?;
                let names = distinct(provided_arg_dtype_names, number, "provided_arg_dtype_names")?;
                let codes = list(provided_arg_dtypes, number, "provided_arg_dtypes")?;
                let mut types = Vec::new();
                for (name, code) in names.into_iter().zip(codes).filter(|(_, code)| **code != -1) {
                    types.push((name.to_owned(), element_type(*code)?));
                }
                let stypes = count(num_provided_arg_stypes, "num_provided_arg_stypes")?;
                no_sparse(num_provided_arg_stypes, list(provided_arg_stypes, stypes, "provided_arg_stypes")?)?;
                let number = count(num_shared_arg_names, "num_shared_arg_names")?;
                let shared_names = texts(shared_arg_name_list, number, "shared_arg_name_list")?;
                let other = match shared_exec_handle.is_null() {
                    true => None,
                    false => Some(get::<Executor>(shared_exec_handle)?),
                };
                // MXNet shares with the executor only where there is a buffer, if an empty one.
                let buffer = if shared_buffer_len.is_null() { -1 } else { read(shared_buffer_len, "shared_buffer_len")? };
                let other = other.as_deref().filter(|_| buffer >= 0);
                let shared = other.map(|executor| SharedArrays { executor, arguments: &shared_names });
                let device = context(dev_type, dev_id)?;
                let executor = Executor::simple_bind(site()?, symbol, device, &shapes, &types, shared)?;
                if buffer > 0 {
                    put(shared_buffer_len, 0, "shared_buffer_len")?;
                }
                if !updated_shared_buffer_name_list.is_null() {
                    put(updated_shared_buffer_name_list, std::ptr::null_mut(), "updated_shared_buffer_name_list")?;
                }
                if !updated_shared_buffer_handle_list.is_null() {
                    put(updated_shared_buffer_handle_list, std::ptr::null_mut(), "updated_shared_buffer_handle_list")?;
                }
                let places = Arrays { num_in_args, in_args, arg_grads, num_aux: num_aux_states, aux: aux_states };
                places.give(executor, ResultPlace::of(stringify!($name)), out)
            }
        )*}
    };
}
binds! {
    /// An executor over new arrays, whose handles belong to the caller. `arg_grads` are null.
    MXExecutorSimpleBind(u32);
    /// Variant of `MXExecutorSimpleBind` with shapes in signed integers.
    MXExecutorSimpleBindEx(c_int);
    /// Variant of `MXExecutorSimpleBind` with shapes in integers of 64 bits.
    MXExecutorSimpleBindEx64(i64);
}

macro_rules! reshapes {
    ($($(#[$doc:meta])* $name:ident($dim:ty);)*) => {
        c_functions! {$(
            $(#[$doc])*
            fn $name(
                partial_shaping: c_int,
                allow_up_sizing: c_int,
                dev_type: c_int,
                dev_id: c_int,
                num_map_keys: u32,
                map_keys: *const *const c_char,
                map_dev_types: *const c_int,
                map_dev_ids: *const c_int,
                num_provided_arg_shapes: u32,
                provided_arg_shape_names: *const *const c_char,
                provided_arg_shape_data: *const $dim,
                provided_arg_shape_idx: *const u32,
                num_in_args: *mut u32,
                in_args: *mut *mut NDArrayHandle,
                arg_grads: *mut *mut NDArrayHandle,
                num_aux_states: *mut u32,
                aux_states: *mut *mut NDArrayHandle,
                shared_exec: ExecutorHandle,
                out: *mut ExecutorHandle,
            ) {
                let _ = (num_map_keys, map_keys, map_dev_types, map_dev_ids);
                context(dev_type, dev_id)?;
                let executor = get::<Executor>(shared_exec)?;
                let shapes = ArgumentShapes {
                    number: num_provided_arg_shapes,
                    names: provided_arg_shape_names,
                    data: provided_arg_shape_data,
                    idx: provided_arg_shape_idx,
                };
                let how = Reshaping { partial: partial_shaping != 0, grow: allow_up_sizing != 0 };
                let made = executor.reshape(&shapes.read()?, how)?;
                let places = Arrays { num_in_args, in_args, arg_grads, num_aux: num_aux_states, aux: aux_states };
                places.give(made, ResultPlace::of(stringify!($name)), out)
            }
        )*}
    };
}
reshapes! {
    /// An executor for other shapes that shares the memory of all arrays that do not grow.
    MXExecutorReshape(u32);
    /// Variant of `MXExecutorReshape` with shapes in signed integers.
    MXExecutorReshapeEx(c_int);
}

/// # Safety
/// The function may be called with its pointer from any thread.
unsafe fn monitor(
    handle: ExecutorHandle,
    callback: MonitorCallback,
    data: *mut c_void,
    all: bool,
) -> Result<(), Error> {
    get::<Executor>(handle)?.watch(Monitor::new(callback, data).map(Monitor::callback), all);
    Ok(())
}

c_functions! {
    /// An executor over arrays of the caller. Gradients are never computed.
    fn MXExecutorBind(
        symbol_handle: SymbolHandle,
        dev_type: c_int,
        dev_id: c_int,
        len: u32,
        in_args: *const NDArrayHandle,
        arg_grad_store: *const NDArrayHandle,
        grad_req_type: *const u32,
        aux_states_len: u32,
        aux_states: *const NDArrayHandle,
        out: *mut ExecutorHandle,
    ) {
        let _ = (arg_grad_store, grad_req_type);
        bind(symbol_handle, (dev_type, dev_id), (len, in_args), (aux_states_len, aux_states), out)
    }

    /// Variant of `MXExecutorBind`; all operators run on one device, whatever the map says.
    fn MXExecutorBindX(
        symbol_handle: SymbolHandle,
        dev_type: c_int,
        dev_id: c_int,
        num_map_keys: u32,
        map_keys: *const *const c_char,
        map_dev_types: *const c_int,
        map_dev_ids: *const c_int,
        len: u32,
        in_args: *const NDArrayHandle,
        arg_grad_store: *const NDArrayHandle,
        grad_req_type: *const u32,
        aux_states_len: u32,
        aux_states: *const NDArrayHandle,
        out: *mut ExecutorHandle,
    ) {
        let _ = (num_map_keys, map_keys, map_dev_types, map_dev_ids, arg_grad_store, grad_req_type);
        bind(symbol_handle, (dev_type, dev_id), (len, in_args), (aux_states_len, aux_states), out)
    }

    /// Variant of `MXExecutorBindX`. All executors share memory for intermediate results anyway, so
    /// `shared_exec`, null or an executor, changes nothing.
    fn MXExecutorBindEX(
        symbol_handle: SymbolHandle,
        dev_type: c_int,
        dev_id: c_int,
        num_map_keys: u32,
        map_keys: *const *const c_char,
        map_dev_types: *const c_int,
        map_dev_ids: *const c_int,
        len: u32,
        in_args: *const NDArrayHandle,
        arg_grad_store: *const NDArrayHandle,
        grad_req_type: *const u32,
        aux_states_len: u32,
        aux_states: *const NDArrayHandle,
        shared_exec: ExecutorHandle,
        out: *mut ExecutorHandle,
    ) {
        let _ = (num_map_keys, map_keys, map_dev_types, map_dev_ids, arg_grad_store, grad_req_type);
        if !shared_exec.is_null() {
            get::<Executor>(shared_exec)?;
        }
        bind(symbol_handle, (dev_type, dev_id), (len, in_args), (aux_states_len, aux_states), out)
    }

    /// Runs the graph on the present content of the arrays. `is_train` is 1 for what training
    /// computes; in loops and branches the mode of the thread decides, as in MXNet.
    fn MXExecutorForward(handle: ExecutorHandle, is_train: c_int) {
        let executor = get::<Executor>(handle)?;
        let arrays = executor.arguments().iter().chain(executor.states());
        arrays.for_each(|(_, array)| array.notice_outside_writes());
        Ok(executor.forward(TrainingScope { outside: is_train != 0, inside: trains() })?)
    }

    /// The outputs, which every run overwrites. The handles belong to the caller.
    fn MXExecutorOutputs(handle: ExecutorHandle, out_size: *mut u32, out: *mut *mut NDArrayHandle) {
        let executor = get::<Executor>(handle)?;
        put(out_size, executor.outputs().len() as u32, "out_size")?;
        put(out, std::ptr::null_mut(), "out")?;
        let handles = executor.outputs().iter().map(|array| hold(array.clone())).collect();
        put(out, returned::list(ResultPlace::of("outputs of executors"), handles)?, "out")
    }

    /// The graph as text, in memory that belongs to the thread. The last two lines are as MXNet's,
    /// for programs that look for them: the memory of the executor's arrays, and no other.
    fn MXExecutorPrint(handle: ExecutorHandle, out_str: *mut *const c_char) {
        let executor = get::<Executor>(handle)?;
        let named = executor.arguments().iter().chain(executor.states()).map(|(_, array)| array.nbytes());
        let bytes = named.chain(executor.outputs().iter().map(NDArray::nbytes)).sum::<usize>();
        let mut text = described(executor.symbol());
        text += &format!("Total {} MB allocated\nTotal 0 TempSpace resource requested\n", bytes >> 20);
        put(out_str, returned::text(ResultPlace::of("text of an executor"), text)?, "out_str")
    }

    /// The symbol that was bound: plans are no symbols.
    fn MXExecutorGetOptimizedSymbol(handle: ExecutorHandle, out: *mut SymbolHandle) {
        give(get::<Executor>(handle)?.symbol().clone(), out)
    }

    /// Calls a function with every operator's result at each run; null ends that.
    fn MXExecutorSetMonitorCallback(handle: ExecutorHandle, callback: MonitorCallback, callback_handle: *mut c_void) {
        monitor(handle, callback, callback_handle, false)
    }

    /// Variant of `MXExecutorSetMonitorCallback`, with `monitor_all` for the inputs of operators
    /// too.
    fn MXExecutorSetMonitorCallbackEX(
        handle: ExecutorHandle,
        callback: MonitorCallback,
        callback_handle: *mut c_void,
        monitor_all: u8,
    ) {
        monitor(handle, callback, callback_handle, monitor_all != 0)
    }

    /// Frees an executor. Runs continue, and its arrays stay with their handles.
    fn MXExecutorFree(handle: ExecutorHandle) {
        free::<Executor>(handle)
    }
}
