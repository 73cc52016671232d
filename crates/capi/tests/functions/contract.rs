//! The contract with C callers, tested through the exported functions themselves.

use mxrt_capi::*;
use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::ptr::{null, null_mut};

/// `y = relu(x * w + b)`, with a second output `x * w`.
const MODEL: &str = r#"{"nodes": [
  {"op": "null", "name": "x", "inputs": []},
  {"op": "null", "name": "w", "inputs": []},
  {"op": "broadcast_mul", "name": "m", "inputs": [[0, 0, 0], [1, 0, 0]]},
  {"op": "null", "name": "b", "inputs": []},
  {"op": "broadcast_add", "name": "a", "inputs": [[2, 0, 0], [3, 0, 0]]},
  {"op": "Activation", "name": "y", "attrs": {"act_type": "relu"}, "inputs": [[4, 0, 0]]}],
  "arg_nodes": [0, 1, 3], "heads": [[5, 0, 0], [2, 0, 0]]}"#;

fn last_error() -> String {
    // SAFETY: the function gives a text that is valid until the next error of this thread.
    unsafe { CStr::from_ptr(MXGetLastError()) }.to_str().expect("UTF-8").to_owned()
}

/// The call failed, and its message has these parts.
#[track_caller]
fn fails(code: c_int, parts: &[&str]) {
    assert_eq!(code, -1);
    let message = last_error();
    for part in parts {
        assert!(message.contains(part), "{part:?} is not in {message:?}");
    }
}

#[track_caller]
fn works(code: c_int) {
    assert_eq!(code, 0, "{}", last_error());
}

fn c(text: &str) -> CString {
    CString::new(text).expect("no zero byte")
}

fn array(shape: &[u32], values: &[f32]) -> NDArrayHandle {
    let mut handle = null_mut();
    // SAFETY: the pointers come from references and slices of the right length.
    unsafe {
        works(MXNDArrayCreate(shape.as_ptr(), shape.len() as u32, 1, 0, 0, &mut handle));
        works(MXNDArraySyncCopyFromCPU(handle, values.as_ptr().cast(), values.len()));
    }
    handle
}

fn values(handle: NDArrayHandle, count: usize) -> Vec<f32> {
    let mut values = vec![0.0f32; count];
    // SAFETY: there is room for `count` elements.
    unsafe { works(MXNDArraySyncCopyToCPU(handle, values.as_mut_ptr().cast(), count)) };
    values
}

fn shape(handle: NDArrayHandle) -> Vec<u32> {
    let (mut ndim, mut dims) = (0, null());
    // SAFETY: the results are valid until the next call for a shape.
    unsafe {
        works(MXNDArrayGetShape(handle, &mut ndim, &mut dims));
        std::slice::from_raw_parts(dims, ndim as usize).to_vec()
    }
}

fn symbol() -> SymbolHandle {
    let mut handle = null_mut();
    // SAFETY: text and place are valid.
    unsafe { works(MXSymbolCreateFromJSON(c(MODEL).as_ptr(), &mut handle)) };
    handle
}

fn cached_op(flags: &[(&str, &str)]) -> (c_int, CachedOpHandle) {
    let symbol = symbol();
    let texts: Vec<(CString, CString)> = flags.iter().map(|(key, value)| (c(key), c(value))).collect();
    let keys: Vec<_> = texts.iter().map(|(key, _)| key.as_ptr()).collect();
    let vals: Vec<_> = texts.iter().map(|(_, value)| value.as_ptr()).collect();
    let mut handle = null_mut();
    // SAFETY: as many keys and values as said, and a place for the handle.
    let code =
        unsafe { MXCreateCachedOpEX(symbol, flags.len() as c_int, keys.as_ptr(), vals.as_ptr(), &mut handle, 1) };
    works(MXSymbolFree(symbol));
    (code, handle)
}

fn names(list: impl FnOnce(*mut u32, *mut *mut *const c_char) -> c_int) -> Vec<String> {
    let (mut size, mut pointers) = (0, null_mut());
    works(list(&mut size, &mut pointers));
    if size == 0 {
        return Vec::new();
    }
    // SAFETY: the function gave `size` texts, valid until the next call for names.
    let pointers = unsafe { std::slice::from_raw_parts(pointers, size as usize) };
    // SAFETY: as above.
    pointers.iter().map(|text| unsafe { CStr::from_ptr(*text) }.to_str().expect("UTF-8").to_owned()).collect()
}

#[test]
fn an_array_gives_back_what_was_put_in() {
    let mut handle = null_mut();
    let (mut dtype, mut stype, mut device, mut id, mut ndim, mut dims) = (-1, -1, -1, -1, -1, null());
    let content: [i64; 6] = [1, -2, 3, -4, 5, i64::MAX];
    let mut back = [7i64; 6];
    // SAFETY: all pointers come from references and arrays of the right length.
    unsafe {
        works(MXNDArrayCreateEx([2u32, 3].as_ptr(), 2, 1, 3, 1, 6, &mut handle));
        works(MXNDArraySyncCopyToCPU(handle, back.as_mut_ptr().cast(), 6));
        assert_eq!(back, [0; 6]);
        works(MXNDArraySyncCopyFromCPU(handle, content.as_ptr().cast(), 6));
        works(MXNDArrayWaitToRead(handle));
        works(MXNDArrayWaitToWrite(handle));
        works(MXNDArraySyncCopyToCPU(handle, back.as_mut_ptr().cast(), 6));
        works(MXNDArrayGetDType(handle, &mut dtype));
        works(MXNDArrayGetStorageType(handle, &mut stype));
        works(MXNDArrayGetContext(handle, &mut device, &mut id));
        works(MXNDArrayGetShapeEx(handle, &mut ndim, &mut dims));
        assert_eq!(std::slice::from_raw_parts(dims, ndim as usize), [2, 3]);
    }
    assert_eq!(back, content);
    assert_eq!((dtype, stype, device, id), (6, 0, 1, 3));
    works(MXNDArrayFree(handle));
}

#[test]
fn arguments_that_cannot_be_are_refused_with_a_message() {
    let mut handle = null_mut();
    let one = array(&[1], &[1.0]);
    // SAFETY: null is allowed everywhere, and the other pointers are valid.
    unsafe {
        fails(MXNDArrayCreate(null(), 2, 1, 0, 0, &mut handle), &["MXNetError: ", "shape is a null pointer"]);
        fails(MXNDArrayCreate([1u32].as_ptr(), 1, 1, 0, 0, null_mut()), &["out is a null pointer"]);
        fails(MXNDArrayCreate([1u32].as_ptr(), 1, 2, 0, 0, &mut handle), &["gpu"]);
        fails(MXNDArrayCreate([1u32].as_ptr(), 1, 9, 0, 0, &mut handle), &["dev_type 9 is unknown"]);
        fails(MXNDArrayCreateEx([1u32].as_ptr(), 1, 1, 0, 0, 99, &mut handle), &["dtype 99 is unknown"]);
        fails(MXNDArrayCreate([u32::MAX; 3].as_ptr(), 3, 1, 0, 0, &mut handle), &["larger than the address space"]);
        fails(MXNDArraySyncCopyFromCPU(one, null(), 1), &["data is a null pointer"]);
        fails(MXNDArraySyncCopyFromCPU(one, [1f32; 2].as_ptr().cast(), 2), &["2 elements were given", "has 1"]);
        fails(MXNDArraySyncCopyToCPU(one, null_mut(), 0), &["0 elements were given"]);
        fails(MXNDArrayGetDType(one, null_mut()), &["out_dtype is a null pointer"]);
        fails(MXNDArrayGetShape(one, null_mut(), null_mut()), &["out_dim"]);
        fails(MXSymbolCreateFromFile(null(), &mut handle), &["fname is a null pointer"]);
        fails(MXSymbolCreateFromFile(c"/no/such".as_ptr(), &mut handle), &["Open \"/no/such\": No such file"]);
        fails(MXSymbolCreateFromJSON(c"{".as_ptr(), &mut handle), &["MXNetError", "cannot load the symbol"]);
        fails(MXSymbolCreateFromJSON(c"\xff".as_ptr(), &mut handle), &["not UTF-8"]);
        fails(MXGetVersion(null_mut()), &["out is a null pointer"]);
    }
    assert!(handle.is_null());
    works(MXNDArrayFree(one));
}

#[test]
fn wrong_handles_are_errors_that_say_what_they_are() {
    let (array, symbol) = (array(&[1], &[1.0]), symbol());
    fails(MXNDArrayWaitToRead(null_mut()), &["0x0 is not the handle of an NDArray: it is null"]);
    fails(MXNDArrayFree(symbol), &["not the handle of an NDArray: it is the handle of a Symbol"]);
    fails(MXSymbolFree(array), &["not the handle of a Symbol: it is the handle of an NDArray"]);
    fails(MXFreeCachedOp(array), &["not the handle of a CachedOp"]);
    let stack = 0u64;
    fails(MXNDArrayWaitToRead((&raw const stack).cast_mut().cast()), &["is not the handle of an NDArray"]);
    works(MXNDArrayFree(array));
    fails(MXNDArrayFree(array), &["it was freed before"]);
    fails(MXNDArrayWaitToRead(array), &["it was freed before"]);
    works(MXSymbolFree(symbol));
}

#[test]
fn a_symbol_lists_its_names_and_is_written_as_json() {
    let symbol = symbol();
    // SAFETY: the closures pass on valid places.
    unsafe {
        assert_eq!(names(|size, list| MXSymbolListArguments(symbol, size, list)), ["x", "w", "b"]);
        assert_eq!(names(|size, list| MXSymbolListAuxiliaryStates(symbol, size, list)), [""; 0]);
        assert_eq!(names(|size, list| MXSymbolListOutputs(symbol, size, list)), ["y_output", "m_output"]);
        assert_eq!(names(|size, list| NNSymbolListInputNames(symbol, 0, size, list)), ["x", "w", "b"]);
        let mut json = null();
        works(MXSymbolSaveToJSON(symbol, &mut json));
        assert!(CStr::from_ptr(json).to_str().expect("UTF-8").contains("\"op\": \"broadcast_mul\""));
    }
    works(MXSymbolFree(symbol));
}

#[test]
fn a_graph_is_called_with_arrays_made_for_the_results_or_given() {
    let (code, op) = cached_op(&[]);
    works(code);
    let inputs = [array(&[2, 2], &[1., -1., 2., -2.]), array(&[1, 2], &[10., 20.]), array(&[1, 1], &[1.])];
    let (mut count, mut made, mut stypes) = (0, null_mut(), null());
    // SAFETY: three handles, and places for the results; those are valid until the next call.
    let results = unsafe {
        works(MXInvokeCachedOpEx(op, 3, inputs.as_ptr(), &mut count, &mut made, &mut stypes));
        assert_eq!(std::slice::from_raw_parts(stypes, 2), [0, 0]);
        std::slice::from_raw_parts(made, count as usize).to_vec()
    };
    assert_eq!(shape(results[0]), [2, 2]);
    assert_eq!(values(results[0], 4), [11., 0., 21., 0.]);
    assert_eq!(values(results[1], 4), [10., -20., 20., -40.]);

    let mut given = [array(&[2, 2], &[9.; 4]), array(&[2, 2], &[9.; 4])];
    let mut place = given.as_mut_ptr();
    // SAFETY: two handles for the results.
    unsafe { works(MXInvokeCachedOp(op, 3, inputs.as_ptr(), &mut 2, &mut place)) };
    assert_eq!(values(given[0], 4), [11., 0., 21., 0.]);
    assert_eq!(values(given[1], 4), [10., -20., 20., -40.]);
    // SAFETY: no more handles are named than there are.
    unsafe {
        fails(MXInvokeCachedOp(op, 3, inputs.as_ptr(), &mut 1, &mut place), &["the output arrays are"]);
        fails(MXInvokeCachedOp(op, 2, inputs.as_ptr(), &mut 2, &mut place), &["3", "2"]);
        fails(MXInvokeCachedOp(op, -1, inputs.as_ptr(), &mut 2, &mut place), &["num_inputs is -1"]);
        fails(MXInvokeCachedOp(op, 3, null(), &mut 2, &mut place), &["inputs is a null pointer"]);
        fails(MXInvokeCachedOp(op, 3, inputs.as_ptr(), &mut 2, null_mut()), &["outputs is a null pointer"]);
    }
    let wrong = [inputs[0], array(&[1, 3], &[1.; 3]), inputs[2]];
    let mut none = null_mut();
    // SAFETY: three handles.
    unsafe { fails(MXInvokeCachedOp(op, 3, wrong.as_ptr(), &mut 0, &mut none), &["(2, 2) (1, 3)"]) };
    assert!(none.is_null());
    for handle in inputs.into_iter().chain(results).chain(given).chain([wrong[1]]) {
        works(MXNDArrayFree(handle));
    }
    works(MXFreeCachedOp(op));
    fails(MXFreeCachedOp(op), &["it was freed before"]);
}

#[test]
fn flags_of_mxnet_are_accepted_and_others_are_not() {
    let (code, op) = cached_op(&[("static_alloc", "true"), ("static_shape", "1"), ("forward_bulk_size", "15")]);
    works(code);
    works(MXFreeCachedOp(op));
    let (code, op) = cached_op(&[("statik_alloc", "true")]);
    fails(code, &["statik_alloc"]);
    assert!(op.is_null());
}

#[test]
fn parameters_are_saved_and_loaded_with_and_without_names() {
    let path = std::env::temp_dir().join(format!("mxrt-capi-{}.params", std::process::id()));
    let c_path = c(path.to_str().expect("UTF-8"));
    let arrays = [array(&[2], &[1., 2.]), array(&[1, 1], &[3.])];
    let keys = [c"arg:a".as_ptr(), c"aux:b".as_ptr()];
    for keys in [null(), keys.as_ptr()] {
        let (mut size, mut loaded, mut name_count, mut name_list) = (9, null_mut(), 9, null_mut());
        // SAFETY: two handles and two names, and places for the results.
        let loaded = unsafe {
            works(MXNDArraySave(c_path.as_ptr(), 2, arrays.as_ptr(), keys));
            works(MXNDArrayLoad(c_path.as_ptr(), &mut size, &mut loaded, &mut name_count, &mut name_list));
            std::slice::from_raw_parts(loaded, size as usize).to_vec()
        };
        assert_eq!(values(loaded[0], 2), [1., 2.]);
        assert_eq!(shape(loaded[1]), [1, 1]);
        let with_names = !keys.is_null();
        assert_eq!(name_count, if with_names { 2 } else { 0 });
        if with_names {
            // SAFETY: the function said that there are two.
            assert_eq!(unsafe { CStr::from_ptr(*name_list.add(1)) }, c"aux:b");
        }
        for handle in loaded {
            works(MXNDArrayFree(handle));
        }
    }
    let bytes = std::fs::read(&path).expect("a file");
    std::fs::remove_file(&path).expect("removed");
    let (mut size, mut loaded, mut name_count, mut name_list) = (9, null_mut(), 9, null_mut());
    let buffer: *const c_void = bytes.as_ptr().cast();
    // SAFETY: the buffer is at least as long as said, and there are places for the results.
    unsafe {
        works(MXNDArrayLoadFromBuffer(buffer, bytes.len(), &mut size, &mut loaded, &mut name_count, &mut name_list));
        assert_eq!(size, 2);
        let short = bytes.len() - 9;
        fails(
            MXNDArrayLoadFromBuffer(buffer, short, &mut size, &mut loaded, &mut name_count, &mut name_list),
            &["truncated"],
        );
        fails(
            MXNDArrayLoad(c_path.as_ptr(), &mut size, &mut loaded, &mut name_count, &mut name_list),
            &["No such file or directory"],
        );
    }
    for handle in arrays {
        works(MXNDArrayFree(handle));
    }
}

#[test]
fn each_thread_has_its_own_last_error() {
    fails(MXNDArrayWaitToRead(null_mut()), &["it is null"]);
    let other = std::thread::spawn(|| {
        let before = last_error();
        // SAFETY: null is an error.
        let _ = unsafe { MXSymbolCreateFromFile(null(), null_mut()) };
        (before, last_error())
    });
    let (before, after) = other.join().expect("a thread");
    assert_eq!(before, "");
    assert!(after.contains("fname"));
    assert!(last_error().contains("it is null"));
}

#[test]
fn objects_are_used_and_freed_by_many_threads() {
    let (code, op) = cached_op(&[]);
    works(code);
    let op = op.addr();
    std::thread::scope(|scope| {
        for thread in 0..8u32 {
            scope.spawn(move || {
                let op = std::ptr::without_provenance_mut::<c_void>(op);
                for rows in 1..20u32 {
                    let x = vec![thread as f32; rows as usize];
                    let inputs = [array(&[rows, 1], &x), array(&[1, 1], &[2.]), array(&[1, 1], &[rows as f32])];
                    let (mut count, mut made) = (0, null_mut());
                    // SAFETY: three handles, and places for the results; those are valid until the
                    // next call.
                    let results = unsafe {
                        works(MXInvokeCachedOp(op, 3, inputs.as_ptr(), &mut count, &mut made));
                        std::slice::from_raw_parts(made, count as usize).to_vec()
                    };
                    // The inputs go before the results are there.
                    inputs.iter().for_each(|handle| works(MXNDArrayFree(*handle)));
                    assert_eq!(values(results[0], rows as usize), vec![(2 * thread + rows) as f32; rows as usize]);
                    results.iter().for_each(|handle| works(MXNDArrayFree(*handle)));
                }
            });
        }
    });
    works(MXFreeCachedOp(std::ptr::without_provenance_mut(op)));
}

/// A thread remembers a handle that it looks up often, but not beyond its end. Other tests of the
/// process use memory too, but less than half of this array.
#[test]
fn a_handle_that_was_looked_up_often_ends_when_it_is_freed() {
    const ELEMENTS: u32 = 1 << 24;
    const HALF: usize = 32 << 20;
    let used = || mxrt::internal::Process::get().expect("a process").engine.memory().stats().in_use;
    let _first = array(&[1], &[0.0]);
    for freed_by_another in [false, true] {
        let before = used();
        let handle = array(&[ELEMENTS], &vec![1.5; ELEMENTS as usize]).addr();
        let at = |handle: usize| -> NDArrayHandle { std::ptr::without_provenance_mut(handle) };
        works(MXNDArrayWaitToRead(at(handle)));
        (0..8).for_each(|_| assert_eq!(shape(at(handle)), [ELEMENTS]));
        assert!(used() >= before + HALF);
        let free = || works(MXNDArrayFree(at(handle)));
        if freed_by_another {
            std::thread::scope(|scope| scope.spawn(free).join().expect("freed"));
        } else {
            free();
        }
        assert!(used() < before + HALF, "the memory of a freed array stays");
        (0..4).for_each(|_| fails(MXNDArrayWaitToRead(at(handle)), &["it was freed before"]));
    }
}

#[test]
fn versions_are_told() {
    let mut version = 0;
    // SAFETY: a valid place.
    unsafe { works(MXGetVersion(&mut version)) };
    assert_eq!(version, 10901);
    // SAFETY: the text is static.
    let own = unsafe { CStr::from_ptr(MXRTGetVersion()) };
    assert_eq!(own.to_str().expect("UTF-8"), env!("CARGO_PKG_VERSION"));
    works(MXNDArrayWaitAll());
}
