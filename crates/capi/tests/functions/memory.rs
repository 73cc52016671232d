//! Memory that functions hand out: contiguous or not, null or empty, valid for how long. MXNet
//! 1.9.1 was asked the same questions (`libmxnet.so`, by ctypes, and `src/c_api`); its clients, such
//! as those in Java, depend on the answers.

use mxrt_capi::*;
use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::ptr::{null, null_mut};

/// `y = relu(BatchNorm(x) * s)`, with auxiliary states.
const MODEL: &str = r#"{"nodes": [
  {"op": "null", "name": "x", "inputs": []},
  {"op": "null", "name": "gamma", "inputs": []},
  {"op": "null", "name": "beta", "inputs": []},
  {"op": "null", "name": "mean", "inputs": []},
  {"op": "null", "name": "var", "inputs": []},
  {"op": "BatchNorm", "name": "n", "inputs": [[0, 0, 0], [1, 0, 0], [2, 0, 0], [3, 0, 1], [4, 0, 1]]},
  {"op": "relu", "name": "y", "attrs": {"mood": "good"}, "inputs": [[5, 0, 0]]}],
  "arg_nodes": [0, 1, 2, 3, 4], "heads": [[6, 0, 0]]}"#;
/// `y = x`.
const PLAIN: &str = r#"{"nodes": [{"op": "null", "name": "z", "inputs": []}], "arg_nodes": [0], "heads": [[0, 0, 0]]}"#;

#[track_caller]
fn works(code: c_int) {
    // SAFETY: the function gives a text that is valid until the next error of this thread.
    assert_eq!(code, 0, "{}", unsafe { CStr::from_ptr(MXGetLastError()) }.to_string_lossy());
}

/// A place for a result, and the result.
fn ask<T>(nothing: T, function: impl FnOnce(*mut T) -> c_int) -> T {
    let mut result = nothing;
    works(function(&mut result));
    result
}

fn symbol(json: &str) -> SymbolHandle {
    let json = CString::new(json).expect("no zero byte");
    // SAFETY: text and place are valid.
    ask(null_mut(), |out| unsafe { MXSymbolCreateFromJSON(json.as_ptr(), out) })
}

fn array(shape: &[u32]) -> NDArrayHandle {
    // SAFETY: the pointers come from a slice of this length and a reference.
    ask(null_mut(), |out| unsafe { MXNDArrayCreate(shape.as_ptr(), shape.len() as u32, 1, 0, 0, out) })
}

/// A text of the library.
fn told(text: *const c_char) -> String {
    assert!(!text.is_null());
    // SAFETY: the library gives a text.
    unsafe { CStr::from_ptr(text) }.to_str().expect("UTF-8").to_owned()
}

type NamesOf = unsafe extern "C" fn(SymbolHandle, *mut u32, *mut *mut *const c_char) -> c_int;

/// Names as they are in the memory of the library.
fn names(of: NamesOf, symbol: SymbolHandle) -> (u32, *mut *const c_char) {
    let (mut size, mut list) = (7, std::ptr::dangling_mut());
    // SAFETY: the places are valid.
    works(unsafe { of(symbol, &mut size, &mut list) });
    (size, list)
}

/// The shape of one array of each kind, as clients read them: ranks, and the extents from the
/// address of the first one.
macro_rules! inferred {
    ($function:ident, $ends:ty, $given:ty, $size:ty, $rank:ty, $dim:ty) => {{
        let net = symbol(MODEL);
        let (keys, ends, dims) = ([c"x".as_ptr()], [0 as $ends, 4], [2 as $given, 3, 4, 5]);
        let (mut size, mut rank, mut rows) = ([0 as $size; 3], [null::<$rank>(); 3], [null_mut::<*const $dim>(); 3]);
        let mut complete = 0;
        let ([in_size, out_size, aux_size], [in_rank, out_rank, aux_rank]) = (size.each_mut(), rank.each_mut());
        let [in_rows, out_rows, aux_rows] = rows.each_mut();
        // SAFETY: one key with four extents, and places for the results.
        works(unsafe {
            $function(
                net,
                1,
                keys.as_ptr(),
                ends.as_ptr(),
                dims.as_ptr(),
                in_size,
                in_rank,
                in_rows,
                out_size,
                out_rank,
                out_rows,
                aux_size,
                aux_rank,
                aux_rows,
                &mut complete,
            )
        });
        assert_eq!((complete, size), (1, [3, 1, 2]));
        let wanted: [&[&[$dim]]; 3] = [&[&[2, 3, 4, 5], &[3], &[3]], &[&[2, 3, 4, 5]], &[&[3], &[3]]];
        for ((rank, rows), wanted) in rank.into_iter().zip(rows).zip(wanted) {
            // SAFETY: as many ranks and addresses, of extents that are one array.
            let (ranks, rows) = unsafe {
                (std::slice::from_raw_parts(rank, wanted.len()), std::slice::from_raw_parts(rows, wanted.len()))
            };
            let lengths: Vec<usize> = ranks.iter().map(|rank| *rank as usize).collect();
            assert_eq!(lengths, wanted.iter().map(|shape| shape.len()).collect::<Vec<_>>());
            let flat = wanted.concat();
            // SAFETY: as above; a client reads all extents from the first address.
            assert_eq!(unsafe { std::slice::from_raw_parts(rows[0], flat.len()) }, flat);
            let mut place = rows[0];
            for (row, length) in rows.iter().zip(lengths) {
                assert_eq!(*row, place, "the extents of a shape come after those of the one before");
                place = place.wrapping_add(length);
            }
        }
        works(MXSymbolFree(net));
    }};
}

#[test]
fn extents_of_inferred_shapes_are_one_array() {
    inferred!(MXSymbolInferShape, u32, u32, u32, u32, u32);
    inferred!(MXSymbolInferShapePartial, u32, u32, u32, u32, u32);
    inferred!(MXSymbolInferShapeEx, u32, c_int, u32, c_int, c_int);
    inferred!(MXSymbolInferShapePartialEx, u32, c_int, u32, c_int, c_int);
    inferred!(MXSymbolInferShapeEx64, i64, i64, usize, c_int, i64);
    inferred!(MXSymbolInferShapePartialEx64, i64, i64, usize, c_int, i64);
}

#[test]
fn arguments_gradients_and_states_of_an_executor_are_one_array() {
    for (json, states) in [(MODEL, 2), (PLAIN, 0)] {
        let net = symbol(json);
        let (name, dims, ends) = (if states == 0 { c"z" } else { c"x" }, [2u32, 3, 4, 5], [0u32, 4]);
        let (mut arguments, mut aux, mut executor) = (0, 9, null_mut());
        let mut lists: [*mut NDArrayHandle; 3] = [std::ptr::dangling_mut(); 3];
        let [in_args, grads, aux_states] = lists.each_mut();
        // SAFETY: one shape, places for the results, null where nothing is given.
        works(unsafe {
            MXExecutorSimpleBind(
                net,
                1,
                -1,
                0,
                null(),
                null(),
                null(),
                0,
                null(),
                null(),
                1,
                [name.as_ptr()].as_ptr(),
                dims.as_ptr(),
                ends.as_ptr(),
                0,
                null(),
                null(),
                0,
                null(),
                null(),
                0,
                null(),
                null_mut(),
                null(),
                null_mut(),
                null_mut(),
                null_mut(),
                &mut arguments,
                in_args,
                grads,
                &mut aux,
                aux_states,
                null_mut(),
                &mut executor,
            )
        });
        assert_eq!((arguments, aux), (if states == 0 { 1 } else { 3 }, states));
        let count = arguments as usize;
        assert_eq!(lists[1], lists[0].wrapping_add(count));
        assert_eq!(lists[2], if aux == 0 { null_mut() } else { lists[0].wrapping_add(2 * count) });
        // SAFETY: the handles of all lists, one after the other.
        let handles = unsafe { std::slice::from_raw_parts(lists[0], 2 * count + aux as usize) };
        assert!(handles[count..2 * count].iter().all(|gradient| gradient.is_null()));
        for handle in handles.iter().filter(|handle| !handle.is_null()) {
            works(MXNDArrayFree(*handle));
        }
        // SAFETY: the handles are valid.
        works(unsafe { MXExecutorFree(executor) });
        works(MXSymbolFree(net));
    }
}

#[test]
fn lists_without_entries_are_null() {
    let net = symbol(PLAIN);
    assert_eq!(names(MXSymbolListAuxiliaryStates, net), (0, null_mut()));
    assert_eq!(names(MXSymbolListAttr, net), (0, null_mut()));
    assert_eq!(names(MXSymbolListAttrShallow, net), (0, null_mut()));
    let (mut size, mut name_size) = (7, 7);
    let (mut arrays, mut list) = (std::ptr::dangling_mut(), std::ptr::dangling_mut());
    let one = array(&[2]);
    let path = std::env::temp_dir().join(format!("mxrt-memory-{}.params", std::process::id()));
    let path = CString::new(path.to_str().expect("UTF-8")).expect("no zero byte");
    // SAFETY: text, handles and places are valid.
    unsafe {
        works(MXNDArraySave(path.as_ptr(), 1, &one, null()));
        works(MXNDArrayLoad(path.as_ptr(), &mut size, &mut arrays, &mut name_size, &mut list));
        assert_eq!((size, name_size, list), (1, 0, null_mut()), "arrays without names");
        works(MXNDArrayFree(*arrays));
        works(MXNDArraySave(path.as_ptr(), 0, null(), null()));
        works(MXNDArrayLoad(path.as_ptr(), &mut size, &mut arrays, &mut name_size, &mut list));
        assert_eq!((size, arrays, name_size, list), (0, null_mut(), 0, null_mut()), "a file without arrays");
    }
    std::fs::remove_file(path.to_str().expect("UTF-8")).expect("the file");
    // The operator has no argument; the names, types and descriptions of one that has are one array.
    let mut creators = (0, null_mut());
    // SAFETY: the places are valid.
    works(unsafe { MXSymbolListAtomicSymbolCreators(&mut creators.0, &mut creators.1) });
    // SAFETY: as many handles.
    for creator in unsafe { std::slice::from_raw_parts(creators.1, creators.0 as usize) } {
        let (mut text, mut number, mut lists) = ([null(); 4], 0, [null_mut(); 3]);
        let [name, doc, count, returns] = text.each_mut();
        let [arguments, types, docs] = lists.each_mut();
        // SAFETY: the handle and the places are valid.
        works(unsafe {
            MXSymbolGetAtomicSymbolInfo(*creator, name, doc, &mut number, arguments, types, docs, count, returns)
        });
        let place = |list: usize| match number {
            0 => null_mut(),
            _ => lists[0].wrapping_add(list * number as usize),
        };
        assert_eq!(lists, [place(0), place(1), place(2)], "{}", told(text[0]));
    }
    works(MXNDArrayFree(one));
    works(MXSymbolFree(net));
}

#[test]
fn names_stay_until_the_same_function_is_called_again() {
    let (net, plain) = (symbol(MODEL), symbol(PLAIN));
    let (number, arguments) = names(MXSymbolListArguments, net);
    let (_, outputs) = names(MXSymbolListOutputs, net);
    // SAFETY: the symbol and the places are valid.
    let (name, attribute) = unsafe {
        let (mut name, mut attribute, mut success) = (null(), null(), 0);
        works(MXSymbolGetName(net, &mut name, &mut success));
        works(MXSymbolGetAttr(net, c"mood".as_ptr(), &mut attribute, &mut success));
        (name, attribute)
    };
    names(MXSymbolListAuxiliaryStates, net);
    names(MXSymbolListAttr, net);
    // SAFETY: the symbol and the place are valid.
    let json = ask(null(), |out| unsafe { MXSymbolSaveToJSON(plain, out) });
    // SAFETY: as many names as the library said.
    let kept = unsafe { std::slice::from_raw_parts(arguments, number as usize) };
    assert_eq!(kept.iter().map(|name| told(*name)).collect::<Vec<_>>(), ["x", "gamma", "beta"]);
    // SAFETY: there is one output.
    assert_eq!(told(unsafe { *outputs }), "y_output");
    assert_eq!((told(name).as_str(), told(attribute).as_str()), ("y", "good"));
    assert!(told(json).contains("\"z\""));
    works(MXSymbolFree(net));
    works(MXSymbolFree(plain));
}

#[test]
fn handles_of_definitions_live_as_long_as_the_process() {
    let list = |of: unsafe extern "C" fn(*mut u32, *mut *mut *mut c_void) -> c_int| {
        let mut list = (0, null_mut());
        // SAFETY: the places are valid.
        works(unsafe { of(&mut list.0, &mut list.1) });
        list
    };
    let operators = list(MXSymbolListAtomicSymbolCreators);
    let iterators = list(MXListDataIters);
    let one = array(&[2]);
    // SAFETY: the places are valid, and there is an operator of this name.
    unsafe {
        let copy = ask(null_mut(), |out| NNGetOpHandle(c"_copy".as_ptr(), out));
        let (mut number, mut results) = (0, null_mut());
        works(MXImperativeInvoke(copy, 1, &one, &mut number, &mut results, 0, null(), null()));
        works(MXNDArrayFree(*results));
    }
    works(MXNDArrayFree(one));
    assert_eq!(operators, list(NNListUniqueOps), "the array of handles is one and the same");
    assert_eq!(iterators, list(MXListDataIters));
    let elsewhere = std::thread::spawn(move || list(MXListDataIters).1.addr()).join().expect("the thread");
    assert_eq!(elsewhere, iterators.1.addr());
}

#[test]
fn a_record_and_an_index_stay_until_the_same_object_is_asked_again() {
    let path = std::env::temp_dir().join(format!("mxrt-memory-{}.rec", std::process::id()));
    let path = CString::new(path.to_str().expect("UTF-8")).expect("no zero byte");
    // SAFETY: texts, handles and places are valid.
    unsafe {
        let writer = ask(null_mut(), |out| MXRecordIOWriterCreate(path.as_ptr(), out));
        for record in [c"first", c"second"] {
            works(MXRecordIOWriterWriteRecord(writer, record.as_ptr(), record.to_bytes_with_nul().len()));
        }
        works(MXRecordIOWriterFree(writer));
        let readers = [(); 2].map(|()| ask(null_mut(), |out| MXRecordIOReaderCreate(path.as_ptr(), out)));
        let read = |reader| {
            let mut size = 0;
            ask(null(), |buffer| MXRecordIOReaderReadRecord(reader, buffer, &mut size))
        };
        let one = read(readers[0]);
        let other = read(readers[1]);
        assert_eq!(told(read(readers[1])), "second");
        assert!(read(readers[1]).is_null(), "no record is left");
        assert_eq!(told(one), "first");
        assert_ne!(one, other);
        readers.iter().for_each(|reader| works(MXRecordIOReaderFree(*reader)));
    }
    std::fs::remove_file(path.to_str().expect("UTF-8")).expect("the file");
}

#[test]
fn shapes_of_predictors_stay_until_the_same_predictor_is_asked_again() {
    let json = CString::new(PLAIN).expect("no zero byte");
    let predictor = |dims: [u32; 2]| {
        let (key, ends) = ([c"z".as_ptr()], [0u32, 2]);
        // A file without arrays: its magic number, and three zeros.
        let file = [0x112u64, 0, 0, 0];
        // SAFETY: one key with two extents, and the bytes of a file.
        ask(null_mut(), |out| unsafe {
            let (bytes, size) = (file.as_ptr().cast(), size_of_val(&file) as c_int);
            MXPredCreate(json.as_ptr(), bytes, size, 1, -7, 1, key.as_ptr(), ends.as_ptr(), dims.as_ptr(), out)
        })
    };
    let shape = |of: PredictorHandle| {
        let mut rank = 0;
        // SAFETY: the handle and the places are valid.
        let extents = ask(null_mut(), |out| unsafe { MXPredGetOutputShape(of, 0, out, &mut rank) });
        (extents, rank as usize)
    };
    let predictors = [predictor([2, 3]), predictor([5, 7])];
    let shapes = predictors.map(shape);
    // SAFETY: as many extents as the library said.
    let read = shapes.map(|(extents, rank)| unsafe { std::slice::from_raw_parts(extents, rank) });
    assert_eq!(read, [[2, 3], [5, 7]]);
    predictors.iter().for_each(|predictor| works(MXPredFree(*predictor)));
}

#[test]
fn elements_of_a_list_of_arrays_are_one_array() {
    let path = std::env::temp_dir().join(format!("mxrt-memory-{}.list", std::process::id()));
    let text = CString::new(path.to_str().expect("UTF-8")).expect("no zero byte");
    let arrays = [array(&[2]), array(&[3, 1])];
    // SAFETY: texts, handles and places are valid.
    unsafe {
        works(MXNDArraySave(text.as_ptr(), 2, arrays.as_ptr(), null()));
        let bytes = std::fs::read(&path).expect("the file");
        let (mut list, mut number) = (null_mut(), 0);
        works(MXNDListCreate(bytes.as_ptr().cast(), bytes.len() as c_int, &mut list, &mut number));
        let places: [*const f32; 2] = [0, 1].map(|entry| {
            let (mut name, mut data, mut shape, mut rank) = (null(), null(), null(), 0);
            works(MXNDListGet(list, entry, &mut name, &mut data, &mut shape, &mut rank));
            assert_eq!((told(name).as_str(), rank), ("", entry + 1));
            data
        });
        assert_eq!(places[1], places[0].wrapping_add(2));
        works(MXNDListFree(list));
    }
    std::fs::remove_file(&path).expect("the file");
    arrays.iter().for_each(|array| works(MXNDArrayFree(*array)));
}

#[test]
fn a_negative_device_is_the_first_one() {
    // SAFETY: the extents, handles and places are valid.
    unsafe {
        for kind in [1, 3, 5] {
            let made = ask(null_mut(), |out| MXNDArrayCreateEx([2].as_ptr(), 1, kind, -1, 0, 0, out));
            let (mut found, mut number) = (-1, -1);
            works(MXNDArrayGetContext(made, &mut found, &mut number));
            assert_eq!((found, number), (kind, 0));
            works(MXNDArrayFree(made));
        }
        let made = ask(null_mut(), |out| MXNDArrayCreateEx64([2].as_ptr(), 1, 1, c_int::MIN, 0, 0, out));
        let (mut found, mut number) = (-1, -1);
        works(MXNDArrayGetContext(made, &mut found, &mut number));
        assert_eq!((found, number), (1, 0));
        works(MXNDArrayFree(made));
        works(MXRandomSeedContext(5, 1, -3));
    }
}

#[test]
fn an_array_has_no_gradient_and_no_history() {
    let one = array(&[2]);
    // SAFETY: the handles and places are valid.
    unsafe {
        assert!(ask(one, |out| MXNDArrayGetGrad(one, out)).is_null());
        assert_eq!(ask(7, |out| MXNDArrayGetGradState(one, out)), 0);
        let same = ask(null_mut(), |out| MXNDArrayDetach(one, out));
        let data = |of| ask(null_mut(), |out| MXNDArrayGetData(of, out));
        assert_eq!(data(one), data(same));
        works(MXNDArrayFree(same));
        works(MXNDArrayFree(one));
        let mut gradient = null_mut();
        assert_eq!(MXNDArrayGetGrad(one, &mut gradient), -1, "it was freed");
    }
}

#[test]
fn an_array_without_a_value_says_so() {
    // SAFETY: the handle and the places are valid.
    unsafe {
        let none = ask(null_mut(), |out| MXNDArrayCreateNone(out));
        assert_eq!(ask(7, |out| MXNDArrayGetDType(none, out)), -1);
        assert_eq!(ask(7, |out| MXNDArrayGetStorageType(none, out)), -1);
        assert!(ask(std::ptr::dangling_mut(), |out| MXNDArrayGetData(none, out)).is_null());
        assert!(ask(none, |out| MXNDArrayGetGrad(none, out)).is_null());
        let (mut kind, mut number) = (7, 7);
        works(MXNDArrayGetContext(none, &mut kind, &mut number));
        assert_eq!((kind, number), (0, 0));
        let rank = || {
            let mut dims = null();
            ask(7, |out| MXNDArrayGetShapeEx(none, out, &mut dims))
        };
        assert_eq!(rank(), 0);
        let before = ask(0, |out| MXSetIsNumpyShape(1, out));
        assert_eq!(rank(), -1);
        ask(0, |out| MXSetIsNumpyShape(before, out));
        works(MXNDArrayFree(none));
    }
}

#[test]
fn denormal_numbers_count_as_zeros_where_that_is_set() {
    let input = array(&[1]);
    let half = || {
        // SAFETY: the handles and places are valid, and there is an operator of this name.
        unsafe {
            let by = ask(null_mut(), |out| NNGetOpHandle(c"_mul_scalar".as_ptr(), out));
            let (mut number, mut results) = (0, null_mut());
            let (key, value) = ([c"scalar".as_ptr()], [c"0.5".as_ptr()]);
            works(MXImperativeInvoke(by, 1, &input, &mut number, &mut results, 1, key.as_ptr(), value.as_ptr()));
            let mut found = 7f32;
            works(MXNDArraySyncCopyToCPU(*results, (&raw mut found).cast(), 1));
            works(MXNDArrayFree(*results));
            found
        }
    };
    // SAFETY: the number is there while it is copied, and the places are valid.
    unsafe {
        works(MXNDArraySyncCopyFromCPU(input, std::ptr::from_ref(&f32::MIN_POSITIVE).cast(), 1));
        assert!(half() > 0.0);
        assert_eq!(ask(7, |out| MXRTSetFlushDenormals(1, out)), 0);
        assert_eq!(half(), 0.0);
        assert_eq!(ask(7, |out| MXRTSetFlushDenormals(0, out)), 1);
        assert!(half() > 0.0);
    }
    works(MXNDArrayFree(input));
}

#[test]
fn values_of_the_environment_stay() {
    // SAFETY: the texts and places are valid; no other thread of this test changes the environment.
    unsafe {
        let value = |name: &CStr| ask(null(), |out| MXGetEnv(name.as_ptr(), out));
        let (cargo, path) = (value(c"CARGO_MANIFEST_DIR"), value(c"CARGO_PKG_NAME"));
        assert_eq!((told(cargo).as_str(), told(path).as_str()), (env!("CARGO_MANIFEST_DIR"), env!("CARGO_PKG_NAME")));
        assert!(value(c"MXRT_NO_SUCH_VARIABLE").is_null());
    }
}
