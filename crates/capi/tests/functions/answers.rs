//! Answers of MXNet 1.9.1 that programs may depend on: its library was asked the same by ctypes.

use mxrt_capi::*;
use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::ptr::{null, null_mut};

/// `y = a + a`, with an attribute of the variable that MXNet keeps as `__lr_mult__`.
const MODEL: &CStr = c"{\"nodes\": [
  {\"op\": \"null\", \"name\": \"a\", \"attrs\": {\"__lr_mult__\": \"2\"}, \"inputs\": []},
  {\"op\": \"elemwise_add\", \"name\": \"y\", \"inputs\": [[0, 0, 0], [0, 0, 0]]}],
  \"arg_nodes\": [0], \"heads\": [[1, 0, 0]]}";

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

fn model() -> SymbolHandle {
    // SAFETY: text and place are valid.
    ask(null_mut(), |out| unsafe { MXSymbolCreateFromJSON(MODEL.as_ptr(), out) })
}

fn array(values: &[f32]) -> NDArrayHandle {
    let shape = [values.len() as u32];
    // SAFETY: one extent, and a place for the handle.
    let made = ask(null_mut(), |out| unsafe { MXNDArrayCreate(shape.as_ptr(), 1, 1, 0, 0, out) });
    // SAFETY: as many elements as said.
    works(unsafe { MXNDArraySyncCopyFromCPU(made, values.as_ptr().cast(), values.len()) });
    made
}

fn shape(array: NDArrayHandle) -> Vec<c_int> {
    let (mut rank, mut dims) = (7, null());
    // SAFETY: places for the results, which hold as many extents as the rank says.
    unsafe {
        works(MXNDArrayGetShapeEx(array, &mut rank, &mut dims));
        if rank > 0 { std::slice::from_raw_parts(dims, rank as usize).to_vec() } else { Vec::new() }
    }
}

#[test]
fn null_is_freed_as_nothing() {
    let none = null_mut::<c_void>();
    let functions =
        [MXNDArrayFree as extern "C" fn(*mut c_void) -> c_int, MXSymbolFree, MXFreeCachedOp, MXPredFree, MXNDListFree];
    functions.iter().for_each(|free| works(free(none)));
    // SAFETY: null is no object.
    unsafe {
        works(NNSymbolFree(none));
        works(MXExecutorFree(none));
        works(MXDataIterFree(none));
    }
}

#[test]
fn a_pointer_that_is_kept_too_long_shows_the_next_list_in_the_same_memory() {
    let (long, short) = (array(&[0.0; 5]), array(&[0.0; 3]));
    let (mut rank, mut first, mut second) = (0, null(), null());
    // SAFETY: places for the results; each list has one extent.
    unsafe {
        works(MXNDArrayGetShapeEx(long, &mut rank, &mut first));
        works(MXNDArrayGetShapeEx(short, &mut rank, &mut second));
        assert_eq!((first, *first), (second, 3));
    }
    works(MXNDArrayFree(long));
    works(MXNDArrayFree(short));
}

#[test]
fn the_values_of_a_dense_array_are_the_array() {
    let dense = array(&[1.0, 2.0]);
    // SAFETY: a place for the handle.
    let values = ask(null_mut(), |out| unsafe { MXNDArrayGetDataNDArray(dense, out) });
    // SAFETY: two elements each.
    unsafe {
        works(MXNDArraySyncCopyFromCPU(values, [3.0f32, 4.0].as_ptr().cast(), 2));
        let mut found = [0.0f32; 2];
        works(MXNDArraySyncCopyToCPU(dense, found.as_mut_ptr().cast(), 2));
        assert_eq!(found, [3.0, 4.0]);
    }
    works(MXNDArrayFree(values));
    works(MXNDArrayFree(dense));
}

#[test]
fn with_numpys_shapes_one_element_can_become_a_scalar() {
    let (one, two) = (array(&[5.0]), array(&[1.0, 2.0]));
    // SAFETY: no extents, and places for the results.
    unsafe {
        let before = ask(0, |prev| MXSetIsNumpyShape(1, prev));
        let scalar = ask(null_mut(), |out| MXNDArrayReshape64(one, 0, null(), 0, out));
        assert_eq!(shape(scalar), [0; 0]);
        let mut value = 0.0f32;
        works(MXNDArraySyncCopyToCPU(scalar, (&raw mut value).cast(), 1));
        assert_eq!(value, 5.0);
        assert_eq!(MXNDArrayReshape64(two, 0, null(), 0, &mut null_mut()), -1);
        works(MXSetIsNumpyShape(before, &mut 0));
        [one, two, scalar].into_iter().for_each(|array| works(MXNDArrayFree(array)));
    }
}

#[test]
fn an_input_symbol_stands_for_every_input_of_an_operator() {
    let net = model();
    let (mut inputs, mut number) = (null_mut(), 7);
    // SAFETY: places for the results, as many handles as said.
    unsafe {
        works(MXSymbolGetInputSymbols(net, &mut inputs, &mut number));
        assert_eq!(number, 2);
        let variables = [*inputs, *inputs.add(1)];
        works(MXSymbolGetInputSymbols(variables[0], &mut inputs, &mut number));
        assert_eq!((number, inputs), (0, null_mut()));
        variables.into_iter().for_each(|variable| works(MXSymbolFree(variable)));
    }
    works(MXSymbolFree(net));
}

type GetAttr = unsafe extern "C" fn(SymbolHandle, *const c_char, *mut *const c_char, *mut c_int) -> c_int;

#[test]
fn nnvms_function_knows_attributes_by_the_key_that_is_kept() {
    let net = model();
    let (mut inputs, mut number) = (null_mut(), 0);
    // SAFETY: places for the results.
    let variable = unsafe {
        works(MXSymbolGetInputSymbols(net, &mut inputs, &mut number));
        *inputs
    };
    let found = |function: GetAttr, key: &CStr| {
        let (mut text, mut success) = (null(), 7);
        // SAFETY: a text, and places for the results.
        works(unsafe { function(variable, key.as_ptr(), &mut text, &mut success) });
        // SAFETY: a text unless it is null.
        (success, (!text.is_null()).then(|| unsafe { CString::from(CStr::from_ptr(text)) }))
    };
    let two = Some(CString::from(c"2"));
    assert_eq!(found(MXSymbolGetAttr, c"lr_mult"), (1, two.clone()));
    assert_eq!(found(NNSymbolGetAttr, c"lr_mult"), (0, None));
    assert_eq!(found(NNSymbolGetAttr, c"__lr_mult__"), (1, two));
    assert_eq!(found(NNSymbolGetAttr, c"name"), (1, Some(CString::from(c"a"))));
    works(MXSymbolFree(variable));
    works(MXSymbolFree(net));
}

fn outputs(symbol: SymbolHandle) -> u32 {
    // SAFETY: a place for the number.
    ask(0, |out| unsafe { MXSymbolGetNumOutputs(symbol, out) })
}

#[test]
fn backends_and_executors_give_their_graph() {
    let net = model();
    let x = array(&[1.0]);
    // SAFETY: texts, one array, and places for the handles.
    unsafe {
        let other = ask(null_mut(), |out| MXGenBackendSubgraph(net, c"MKLDNN".as_ptr(), out));
        assert_eq!(MXGenBackendSubgraph(net, c"nothing".as_ptr(), &mut null_mut()), -1);
        let executor = ask(null_mut(), |out| MXExecutorBind(net, 1, 0, 1, &x, null(), null(), 0, null(), out));
        let bound = ask(null_mut(), |out| MXExecutorGetOptimizedSymbol(executor, out));
        assert_eq!((outputs(other), outputs(bound)), (1, 1));
        works(MXExecutorFree(executor));
        [other, bound, net].into_iter().for_each(|symbol| works(MXSymbolFree(symbol)));
    }
    works(MXNDArrayFree(x));
}

#[test]
fn the_process_is_a_worker_and_has_no_old_functions() {
    // SAFETY: a text, and places for the results.
    unsafe {
        assert_eq!(ask(7, |out| MXKVStoreIsWorkerNode(out)), 1);
        assert_eq!(ask(7, |out| MXKVStoreIsServerNode(out)), 0);
        assert_eq!(ask(7, |out| MXKVStoreIsSchedulerNode(out)), 0);
        let none = ask(std::ptr::dangling_mut(), |out| MXGetFunction(c"negative".as_ptr(), out));
        assert!(none.is_null());
        let domain = ask(null_mut(), |out| MXProfileCreateDomain(c"domain".as_ptr(), out));
        works(MXProfileSetMarker(domain, c"moment".as_ptr(), c"marker".as_ptr()));
        works(MXProfileDestroyHandle(domain));
    }
}

/// `SoftmaxOutput` reads a label that no program has to set.
const LABELLED: &CStr = c"{\"nodes\": [
  {\"op\": \"null\", \"name\": \"x\", \"inputs\": []},
  {\"op\": \"null\", \"name\": \"l_label\", \"inputs\": []},
  {\"op\": \"SoftmaxOutput\", \"name\": \"l\", \"inputs\": [[0, 0, 0], [1, 0, 0]]}],
  \"arg_nodes\": [0, 1], \"heads\": [[2, 0, 0]]}";

#[test]
fn a_label_that_was_not_declared_can_be_set() {
    // SAFETY: texts, shapes as said, and places for the results.
    unsafe {
        // A file of no arrays.
        let mut bytes = vec![0u8; 24];
        bytes[..8].copy_from_slice(&0x112u64.to_le_bytes());
        bytes.extend([0u8; 8]);
        let (keys, ends, dims) = ([c"x".as_ptr()], [0u32, 2], [1u32, 2]);
        let predictor = ask(null_mut(), |out| {
            MXPredCreate(
                LABELLED.as_ptr(),
                bytes.as_ptr().cast(),
                bytes.len() as c_int,
                1,
                0,
                1,
                keys.as_ptr(),
                ends.as_ptr(),
                dims.as_ptr(),
                out,
            )
        });
        works(MXPredSetInput(predictor, c"x".as_ptr(), [1.0f32, 1.0].as_ptr(), 2));
        works(MXPredSetInput(predictor, c"l_label".as_ptr(), [1.0f32].as_ptr(), 1));
        works(MXPredForward(predictor));
        let mut found = [0.0f32; 2];
        works(MXPredGetOutput(predictor, 0, found.as_mut_ptr(), 2));
        assert_eq!(found, [0.5, 0.5]);
        works(MXPredFree(predictor));
    }
}

/// A dense layer over everything but the first axis.
const DENSE: &CStr = c"{\"nodes\": [
  {\"op\": \"null\", \"name\": \"x\", \"inputs\": []},
  {\"op\": \"Flatten\", \"name\": \"f\", \"inputs\": [[0, 0, 0]]},
  {\"op\": \"null\", \"name\": \"w\", \"inputs\": []},
  {\"op\": \"FullyConnected\", \"name\": \"y\", \"attrs\": {\"num_hidden\": \"7\", \"no_bias\": \"True\"},
   \"inputs\": [[1, 0, 0], [2, 0, 0]]}],
  \"arg_nodes\": [0, 2], \"heads\": [[3, 0, 0]]}";

type InferShape = unsafe extern "C" fn(
    SymbolHandle,
    u32,
    *const *const c_char,
    *const u32,
    *const c_int,
    *mut u32,
    *mut *const c_int,
    *mut *mut *const c_int,
    *mut u32,
    *mut *const c_int,
    *mut *mut *const c_int,
    *mut u32,
    *mut *const c_int,
    *mut *mut *const c_int,
    *mut c_int,
) -> c_int;

#[test]
fn shapes_that_are_known_in_part_are_inferred_as_far_as_by_mxnet() {
    // SAFETY: text and place are valid.
    let net = ask(null_mut(), |out| unsafe { MXSymbolCreateFromJSON(DENSE.as_ptr(), out) });
    let (keys, ends, dims) = ([c"x".as_ptr()], [0u32, 3], [0 as c_int, 3, 5]);
    for (function, all) in [(MXSymbolInferShapePartialEx as InferShape, 1), (MXSymbolInferShapeEx, 0)] {
        let (mut size, mut rank, mut rows, mut complete) = ([7u32; 3], [null(); 3], [null_mut(); 3], 7);
        let ([in_size, out_size, aux_size], [in_rank, out_rank, aux_rank]) = (size.each_mut(), rank.each_mut());
        let [in_rows, out_rows, aux_rows] = rows.each_mut();
        // SAFETY: one key with three extents, and places for the results.
        works(unsafe {
            function(
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
        // SAFETY: the ranks of two arguments and an output.
        unsafe { assert_eq!((size[0], *rank[0], *rank[0].add(1), *rank[1], complete), (2, 3, 0, 0, all)) };
    }
    works(MXSymbolFree(net));
}

#[test]
fn symbols_and_executors_are_printed_in_mxnets_words() {
    let printed = |symbol| {
        // SAFETY: a place for the text, which is valid until the next call.
        let text = ask(null(), |out| unsafe { MXSymbolPrint(symbol, out) });
        // SAFETY: as above.
        unsafe { CStr::from_ptr(text) }.to_str().expect("UTF-8").to_owned()
    };
    let net = model();
    let lines = "Symbol Outputs:\n\toutput[0]=y(0)\nVariable:a\n--------------------\nOp:elemwise_add, Name=y\n\
                 Inputs:\n\targ[0]=a(0) version=0\n\targ[1]=a(0) version=0\n";
    assert_eq!(printed(net), lines);
    let x = array(&[1.0]);
    // SAFETY: a text, one array, and places for the results.
    unsafe {
        let executor = ask(null_mut(), |out| MXExecutorBind(net, 1, 0, 1, &x, null(), null(), 0, null(), out));
        let text = CStr::from_ptr(ask(null(), |out| MXExecutorPrint(executor, out))).to_str().expect("UTF-8");
        assert!(text.starts_with(lines) && text.contains("Total 0 MB allocated"));
        works(MXExecutorFree(executor));
        let variable = ask(null_mut(), |out| MXSymbolCreateVariable(c"v".as_ptr(), out));
        assert_eq!(printed(variable), "Variable:v\n");
        let operator = ask(null_mut(), |out| NNGetOpHandle(c"negative".as_ptr(), out));
        let atom = ask(null_mut(), |out| MXSymbolCreateAtomicSymbol(operator, 0, null(), null(), out));
        assert_eq!(printed(atom), "AtomicFunctor  Op:negative\n");
        [variable, atom, net].into_iter().for_each(|symbol| works(MXSymbolFree(symbol)));
    }
    works(MXNDArrayFree(x));
}
