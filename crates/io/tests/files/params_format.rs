//! Parameter files as MXNet 1.9.1 writes and reads them.

use crate::common::{Directory, engine, floats, hex, values};
use mxrt_engine::{Access, FailureKind, OpError, OpSpec};
use mxrt_io::params::{NpShape, Params, ParamsError, load, load_from_bytes, save, save_to_bytes};
use mxrt_tensor::{Context, DType, NDArray, StorageType, TensorType};

/// `nd.save(f, {'arg:w': nd.array([[1,2],[3,4]])})`, bytes written by MXNet.
const NAMED: &str = "12 01 00 00 00 00 00 00 | 00 00 00 00 00 00 00 00
     01 00 00 00 00 00 00 00 | c9 fa 93 f9 | 00 00 00 00
     02 00 00 00 | 02 00 00 00 00 00 00 00 | 02 00 00 00
     00 00 00 00 | 01 00 00 00 | 00 00 00 00 | 00 00 00 00
     00 00 80 3f 00 00 00 40 00 00 40 40 00 00 80 40
     01 00 00 00 00 00 00 00 | 05 00 00 00 00 00 00 00
     61 72 67 3a 77";
const HEADER: &str = "1201000000000000 0000000000000000 0100000000000000";
const NO_NAMES: &str = "0000000000000000";
/// `nd.save(f, {'w': nd.ones((4, 3)).tostype('row_sparse')})`: the array is written while it is still
/// to be computed, bytes written by MXNet.
const PENDING_ROW_SPARSE: &str = "1201000000000000 0000000000000000 0100000000000000
     c9fa93f9 01000000
     02000000 0000000000000000 0300000000000000
     02000000 0400000000000000 0300000000000000
     0100000000000000 00000000
     06000000 01000000 0400000000000000
     0000803f0000803f0000803f 0000803f0000803f0000803f
     0000803f0000803f0000803f 0000803f0000803f0000803f
     0000000000000000 0100000000000000 0200000000000000 0300000000000000
     0100000000000000 0100000000000000 77";
const NAME_R: &str = "0100000000000000 0100000000000000 72";
/// row_sparse ([[1,2]],[1]) of shape (3,2).
const ROW_SPARSE: &str = "c9fa93f9 01000000
     02000000 0100000000000000 0200000000000000
     02000000 0300000000000000 0200000000000000
     0100000000000000 00000000
     06000000 01000000 0100000000000000
     0000803f 00000040 0100000000000000";
/// csr ([5.],[1],[0,0,1]) of shape (2,3).
const CSR: &str = "c9fa93f9 02000000
     01000000 0100000000000000
     02000000 0200000000000000 0300000000000000
     0100000000000000 00000000
     06000000 01000000 0300000000000000
     06000000 01000000 0100000000000000
     0000a040
     0000000000000000 0000000000000000 0100000000000000
     0100000000000000";
/// An np-shape scalar 3.0.
const NP_SCALAR: &str = "cafa93f9 00000000 00000000 0100000000000000 00000000 00004040";

fn read(text: &str) -> Result<Params, ParamsError> {
    load_from_bytes(engine(), &hex(text), NpShape::Off)
}

fn message(text: &str) -> String {
    read(text).expect_err("an error").to_string()
}

fn list(text: &str) -> Vec<NDArray> {
    match read(text) {
        Ok(Params::List(arrays)) => arrays,
        other => panic!("expected a list, got {other:?}"),
    }
}

fn named(params: Result<Params, ParamsError>) -> Vec<(String, NDArray)> {
    match params {
        Ok(Params::Named(arrays)) => arrays,
        other => panic!("expected names, got {other:?}"),
    }
}

fn to_bytes(params: &Params) -> Vec<u8> {
    save_to_bytes(params, NpShape::Off, &mut || true).expect("bytes")
}

#[test]
fn a_file_that_mxnet_wrote_is_read_and_written_again_byte_for_byte() {
    let bytes = hex(NAMED);
    assert_eq!(bytes.len(), 101);
    let params = load_from_bytes(engine(), &bytes, NpShape::Off);
    let arrays = named(params);
    assert_eq!(arrays[0].0, "arg:w");
    assert_eq!(arrays[0].1.shape()[..], [2, 2]);
    assert_eq!(arrays[0].1.dtype(), DType::F32);
    assert_eq!(values(&arrays[0].1), [1.0, 2.0, 3.0, 4.0]);
    assert_eq!(to_bytes(&Params::Named(arrays)), bytes);
}

#[test]
fn a_trained_model_survives_load_and_save_unchanged() {
    let original = include_bytes!("../data/conv1d.params");
    let directory = Directory::new();
    let path = directory.file("model.params", original);
    let params = load(engine(), &path, NpShape::Off).expect("parameters");
    let again = directory.path("again.params");
    save(&again, &params, NpShape::Off, &mut || true).expect("saved");
    assert_eq!(std::fs::read(again).unwrap(), original);
}

#[test]
fn arrays_without_names_come_back_as_a_list() {
    let arrays = vec![floats(&[2], &[1.0, 2.0]), floats(&[1, 1], &[3.0])];
    let bytes = to_bytes(&Params::List(arrays));
    let Ok(Params::List(again)) = load_from_bytes(engine(), &bytes, NpShape::Off) else { panic!("a list") };
    assert_eq!(again.iter().map(values).collect::<Vec<_>>(), [vec![1.0, 2.0], vec![3.0]]);
}

#[test]
fn no_arrays_at_all_are_32_bytes_and_an_empty_list() {
    let bytes = to_bytes(&Params::Named(Vec::new()));
    assert_eq!(bytes.len(), 32);
    assert!(matches!(load_from_bytes(engine(), &bytes, NpShape::Off), Ok(Params::List(arrays)) if arrays.is_empty()));
}

#[test]
fn of_two_arrays_with_one_name_the_last_counts() {
    let (a, b, c) = (floats(&[1], &[1.0]), floats(&[1], &[2.0]), floats(&[2], &[3.0, 4.0]));
    let twice = Params::Named(vec![("w".into(), a), ("v".into(), b), ("w".into(), c)]);
    let again = named(load_from_bytes(engine(), &to_bytes(&twice), NpShape::Off));
    let names: Vec<&str> = again.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["w", "v"]);
    assert_eq!(values(&again[0].1), [3.0, 4.0]);
}

#[test]
fn bytes_behind_the_names_are_ignored() {
    assert_eq!(read(&format!("{NAMED} 00 01 02")).expect("parameters").len(), 1);
}

#[test]
fn every_dtype_survives_saving_and_loading() {
    for code in 0..13 {
        let dtype = DType::from_code(code).expect("a type");
        let bytes: Vec<u8> = (0..6 * dtype.size() as u8).map(|b| b % 2).collect();
        let array =
            NDArray::from_bytes(engine(), Context::cpu(0), TensorType::new(dtype, [2, 3]), &bytes).expect("an array");
        let again =
            named(load_from_bytes(engine(), &to_bytes(&Params::Named(vec![("x".into(), array)])), NpShape::Off));
        assert_eq!(again[0].1.dtype(), dtype);
        assert_eq!(again[0].1.to_bytes().expect("bytes"), bytes);
    }
}

#[test]
fn records_of_the_first_formats_are_read() {
    let data = "0000803f 00000040 00004040 00008040";
    let before_v1 = format!("{HEADER} 02000000 02000000 02000000 0100000000000000 00000000 {data} {NO_NAMES}");
    let v1 = format!(
        "{HEADER} c8fa93f9 02000000 0200000000000000 0200000000000000 0100000000000000 00000000 \
         {data} {NO_NAMES}"
    );
    for text in [before_v1, v1] {
        let arrays = list(&text);
        assert_eq!(arrays[0].shape()[..], [2, 2]);
        assert_eq!(values(&arrays[0]), [1.0, 2.0, 3.0, 4.0]);
    }
}

#[test]
fn arrays_from_other_devices_load_on_the_cpu() {
    for device in ["0200000003000000", "0100000003000000", "0900000000000000"] {
        let text =
            format!("{HEADER} c9fa93f9 00000000 01000000 0100000000000000 {device} 00000000 00004040 {NO_NAMES}");
        assert_eq!(list(&text)[0].context(), Context::cpu(0));
    }
}

#[test]
fn an_array_with_an_empty_axis_loads_empty() {
    let text = format!(
        "{HEADER} c9fa93f9 00000000 02000000 0000000000000000 0300000000000000 0100000000000000 \
         00000000 {NO_NAMES}"
    );
    assert_eq!(list(&text)[0].shape()[..], [0, 3]);
}

/// A list of four arrays that MXNet wrote: `c` csr and `r` row_sparse of the same matrix, and empty
/// ones, `e` and `z`.
const SPARSE: &str = "1201000000000000 0000000000000000 0400000000000000
     c9fa93f9 02000000 01000000 0400000000000000 02000000 0300000000000000 0400000000000000
     0100000000000000 00000000 06000000 01000000 0400000000000000 06000000 01000000 0400000000000000
     0000803f 00000040 00004040 000080c0
     0000000000000000 0200000000000000 0200000000000000 0400000000000000
     0100000000000000 0300000000000000 0000000000000000 0200000000000000
     c9fa93f9 01000000 02000000 0200000000000000 0400000000000000 02000000 0300000000000000 0400000000000000
     0100000000000000 00000000 06000000 01000000 0200000000000000
     00000000 0000803f 00000000 00000040 00004040 00000000 000080c0 00000000
     0000000000000000 0200000000000000
     c9fa93f9 02000000 01000000 0000000000000000 02000000 0200000000000000 0300000000000000
     0100000000000000 00000000 06000000 01000000 0300000000000000 06000000 01000000 0000000000000000
     0000000000000000 0000000000000000 0000000000000000
     c9fa93f9 01000000 02000000 0000000000000000 0300000000000000 02000000 0200000000000000 0300000000000000
     0100000000000000 00000000 06000000 01000000 0000000000000000
     0400000000000000 0100000000000000 63 0100000000000000 72 0100000000000000 65 0100000000000000 7a";

/// `c + o` of two csr matrices, saved by MXNet, whose arrays have room for values that the row
/// pointers do not count.
const WITH_ROOM: &str = "1201000000000000 0000000000000000 0100000000000000
     c9fa93f9 02000000 01000000 0700000000000000 02000000 0300000000000000 0400000000000000
     0100000000000000 00000000 06000000 01000000 0400000000000000 06000000 01000000 0700000000000000
     0000a040 0000803f 0000803f 000080c0 00004040 00000000 00000000
     0000000000000000 0200000000000000 0300000000000000 0500000000000000
     0000000000000000 0100000000000000 0000000000000000 0200000000000000
     0000000000000000 0000000000000000 0000000000000000 0000000000000000";

#[test]
fn sparse_arrays_are_read_and_written_byte_for_byte() {
    let Ok(params) = read(SPARSE) else { panic!("arrays") };
    let storage = |name: &str| params.get(name).expect(name).storage_type();
    assert_eq!([storage("c"), storage("e")], [StorageType::Csr; 2]);
    assert_eq!([storage("r"), storage("z")], [StorageType::RowSparse; 2]);
    let dense = [0.0, 1.0, 0.0, 2.0, 0.0, 0.0, 0.0, 0.0, 3.0, 0.0, -4.0, 0.0];
    for name in ["c", "r"] {
        assert_eq!(values(params.get(name).expect(name)), dense, "{name}");
    }
    assert_eq!(values(params.get("e").expect("e")), [0.0; 6]);
    assert_eq!(save_to_bytes(&params, NpShape::Off, &mut || true).expect("bytes"), hex(SPARSE));
    let refused = save_to_bytes(&params, NpShape::Global, &mut || true).expect_err("an error").to_string();
    assert!(refused.contains("array 'c' is sparse") && refused.contains("tostype('default')"), "{refused}");
}

/// `nd.abs(nd.sparse.zeros('csr', (3, 2)))` as MXNet saves it: without storage.
#[test]
fn a_csr_matrix_without_storage_is_empty() {
    let record = "c9fa93f9 02000000 01000000 0000000000000000 02000000 0300000000000000 0200000000000000
         0100000000000000 00000000 06000000 01000000 0000000000000000 06000000 01000000 0000000000000000";
    let arrays = list(&format!("{HEADER} {record} {NO_NAMES}"));
    assert_eq!(arrays[0].storage_type(), StorageType::Csr);
    assert_eq!(values(&arrays[0]), [0.0; 6]);
}

#[test]
fn values_beyond_the_row_pointers_mean_nothing() {
    let arrays = list(&format!("{WITH_ROOM} {NO_NAMES}"));
    assert_eq!(values(&arrays[0]), [5.0, 1.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 3.0, 0.0, -4.0, 0.0]);
}

#[test]
fn positions_of_other_integer_types_are_read() {
    let record = "c9fa93f9 01000000 02000000 0100000000000000 0200000000000000 02000000 0300000000000000
         0200000000000000 0100000000000000 00000000 04000000 01000000 0100000000000000 0000803f 00000040 02000000";
    assert_eq!(values(&list(&format!("{HEADER} {record} {NO_NAMES}"))[0]), [0.0, 0.0, 0.0, 0.0, 1.0, 2.0]);
}

#[test]
fn damaged_positions_are_errors_that_name_the_array() {
    for (damaged, words) in [
        (ROW_SPARSE.replace("00000040 0100000000000000", "00000040 0300000000000000"), "row 3 at position 0"),
        (ROW_SPARSE.replace("00000040 0100000000000000", "00000040 ffffffffffffffff"), "row -1 at position 0"),
        (CSR.replace("0000000000000000 0000000000000000 01", "0000000000000000 0200000000000000 01"), "must not fall"),
        (CSR.replace("0000a040\n     0000000000000000", "0000a040\n     0100000000000000"), "first row pointer is 1"),
    ] {
        let error = message(&format!("{HEADER} {damaged} {NAME_R}"));
        assert!(error.contains("array 'r'") && error.contains(words), "{error}");
    }
    let counts = ROW_SPARSE.replacen("02000000 0100000000000000 02", "02000000 0200000000000000 02", 1);
    let error = message(&format!("{HEADER} {counts} {NAME_R}"));
    assert!(error.contains("storage shape of array 0 of 1") && error.contains("expected (1, 2)"), "{error}");
}

#[test]
fn unknown_codes_are_named_with_their_value_and_position() {
    let storage = message(&format!("{HEADER} c9fa93f9 09000000"));
    assert!(storage.contains("storage type of array 0 of 1, byte 28: found 9"), "{storage}");
    let dtype = message(&format!(
        "{HEADER} c9fa93f9 00000000 01000000 0100000000000000 0100000000000000 63000000 00004040 \
         {NO_NAMES}"
    ));
    assert!(dtype.contains("dtype of array 0 of 1, byte 52: found unknown type code 99"), "{dtype}");
    let record = message(&format!("{HEADER} 0dd0feca 00000000"));
    assert!(record.contains("magic number of array 0 of 1, byte 24: found 0xcafed00d"), "{record}");
    let list = message("89504e470d0a1a0a 0000000000000000 0000000000000000");
    assert!(list.contains("magic number of the list, byte 0") && list.contains("expected 0x112"), "{list}");
}

#[test]
fn an_array_that_never_had_a_shape_is_refused_by_name() {
    let text = message(&format!("{HEADER} c9fa93f9 00000000 00000000 {NAME_R}"));
    assert!(text.contains("array 'r' is empty"), "{text}");
}

#[test]
fn impossible_extents_and_sizes_are_refused() {
    let record = |dims: &str| {
        message(&format!("{HEADER} c9fa93f9 00000000 02000000 {dims} 0100000000000000 00000000 {NO_NAMES}"))
    };
    let negative = record("feffffffffffffff 0100000000000000");
    assert!(negative.contains("found extent -2"), "{negative}");
    let huge = record("0000000000010000 0100000000000000");
    assert!(huge.contains("truncated") && huge.contains("elements of array 0 of 1"), "{huge}");
    let overflowing = record("0000000000000040 0000000000000040");
    assert!(overflowing.contains("more elements than any machine can hold"), "{overflowing}");
    let ranks = message(&format!("{HEADER} c9fa93f9 00000000 40420f00 {NO_NAMES}"));
    assert!(ranks.contains("truncated") && ranks.contains("8000000 bytes are needed"), "{ranks}");
    let count = message("1201000000000000 0000000000000000 ffffffffffffffff 00000000");
    assert!(count.contains("number of arrays") && count.contains("18446744073709551615"), "{count}");
}

#[test]
fn names_must_be_as_many_as_arrays_and_utf8() {
    let bytes = hex(NAMED);
    let mut two = bytes[..80].to_vec();
    two.extend(hex("0200000000000000 0100000000000000 61 0100000000000000 62"));
    let error = load_from_bytes(engine(), &two, NpShape::Off).expect_err("an error").to_string();
    assert!(error.contains("number of names") && error.contains("found 2, expected 0 or 1"), "{error}");
    let mut latin = bytes;
    latin[96] = 0xff;
    let error = load_from_bytes(engine(), &latin, NpShape::Off).expect_err("an error").to_string();
    assert!(error.contains("text of name 0 of 1, byte 96") && error.contains("not UTF-8"), "{error}");
}

#[test]
fn a_sparse_array_that_was_saved_while_pending_is_read_by_the_shape_of_its_indices() {
    let Ok(params) = read(PENDING_ROW_SPARSE) else { panic!("an array") };
    assert_eq!(values(params.get("w").expect("w")), [1.0; 12]);
}

#[test]
fn arrays_of_np_shape_files_that_both_meanings_have_need_no_switch() {
    let record = "cafa93f9 00000000 02000000 0100000000000000 0200000000000000 01000000 00000000 00000000 \
                  0000803f 00000040";
    for flag in [NpShape::Off, NpShape::ThreadLocal, NpShape::Global] {
        let read = load_from_bytes(engine(), &hex(&format!("{HEADER} {record} {NO_NAMES}")), flag);
        let Ok(Params::List(arrays)) = read else { panic!("a list") };
        assert_eq!(arrays[0].shape().to_vec(), [1, 2]);
        assert_eq!(values(&arrays[0]), [1.0, 2.0]);
    }
    let empty = "cafa93f9 00000000 02000000 0000000000000000 0200000000000000 01000000 00000000 00000000";
    let Ok(Params::List(arrays)) = read(&format!("{HEADER} {empty} {NO_NAMES}")) else { panic!("a list") };
    assert_eq!(arrays[0].shape().to_vec(), [0, 2]);
}

#[test]
fn np_shape_files_and_np_shape_callers_must_agree() {
    let np = hex(&format!("{HEADER} {NP_SCALAR} {NO_NAMES}"));
    let off = load_from_bytes(engine(), &np, NpShape::Off).expect_err("an error").to_string();
    assert!(off.contains("was saved in np shape semantics, must be loaded in the same semantics"), "{off}");
    for flag in [NpShape::ThreadLocal, NpShape::Global] {
        let Ok(Params::List(arrays)) = load_from_bytes(engine(), &np, flag) else { panic!("a list") };
        assert!(arrays[0].shape().is_empty());
        assert_eq!(values(&arrays[0]), [3.0]);
        assert_eq!(save_to_bytes(&Params::List(arrays), flag, &mut || true).expect("bytes"), np);
    }
    let older = load_from_bytes(engine(), &hex(NAMED), NpShape::ThreadLocal).expect_err("an error").to_string();
    assert!(older.contains("was not saved in np shape semantics, but being loaded in np shape"), "{older}");
    assert_eq!(load_from_bytes(engine(), &hex(NAMED), NpShape::Global).expect("parameters").len(), 1);
}

#[test]
fn a_scalar_cannot_be_saved_outside_np_shape() {
    let scalar = Params::Named(vec![("s".into(), floats(&[], &[1.0]))]);
    let error = save_to_bytes(&scalar, NpShape::Off, &mut || true).expect_err("an error").to_string();
    assert!(error.contains("array 's' is a scalar"), "{error}");
}

#[test]
fn a_view_saves_only_its_own_elements() {
    let whole = floats(&[3, 2], &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
    let row = whole.view(2, [1, 2].into()).expect("a view");
    let bytes = to_bytes(&Params::List(vec![row]));
    let Ok(Params::List(again)) = load_from_bytes(engine(), &bytes, NpShape::Off) else { panic!("a list") };
    assert_eq!(values(&again[0]), [3.0, 4.0]);
}

#[test]
fn missing_files_and_directories_are_named_with_advice() {
    let directory = Directory::new();
    let missing = OpError::from(load(engine(), directory.path("none.params"), NpShape::Off).expect_err("an error"));
    assert_eq!(missing.kind, FailureKind::FileNotFound);
    assert!(
        missing.message.contains("none.params\": No such file or directory. Check the path"),
        "{}",
        missing.message
    );
    let folder = OpError::from(load(engine(), &directory, NpShape::Off).expect_err("an error"));
    assert_eq!(folder.kind, FailureKind::Data);
    assert!(folder.message.contains("Is a directory"), "{}", folder.message);
    let empty = load(engine(), directory.file("empty", b""), NpShape::Off).expect_err("an error").to_string();
    assert!(empty.contains("empty' is truncated"), "{empty}");
    let one = Params::List(vec![floats(&[1], &[1.0])]);
    let nowhere = save(directory.path("no/where"), &one, NpShape::Off, &mut || true).expect_err("an error");
    assert!(nowhere.to_string().contains("No such file or directory"), "{nowhere}");
    let folder = save(&directory, &one, NpShape::Off, &mut || true).expect_err("an error").to_string();
    assert!(folder.contains("Is a directory"), "{folder}");
}

#[test]
fn saving_over_a_file_leaves_it_whole_and_nothing_beside_it() {
    let directory = Directory::new();
    let path = directory.file("w.params", b"what was there");
    let failed = NDArray::new(engine(), Context::cpu(0), TensorType::new(DType::F32, [1])).expect("an array");
    let vars = [(failed.var(), Access::Write)];
    engine().push(OpSpec::new("broken", &vars), |_| Err(OpError::new(FailureKind::Operator, "it broke")));
    let error = save(&path, &Params::List(vec![failed]), NpShape::Off, &mut || true).expect_err("an error");
    assert!(error.to_string().contains("it broke"), "{error}");
    assert_eq!(std::fs::read(&path).unwrap(), b"what was there");

    save(&path, &Params::List(vec![floats(&[1], &[1.0])]), NpShape::Off, &mut || true).expect("saved");
    assert_eq!(load(engine(), &path, NpShape::Off).expect("parameters").len(), 1);
    assert_eq!(directory.names(), ["w.params"]);
}

#[test]
fn saving_through_a_link_keeps_the_link() {
    let directory = Directory::new();
    directory.file("real.params", b"old");
    let link = directory.path("link.params");
    std::os::unix::fs::symlink("real.params", &link).unwrap();
    save(&link, &Params::List(vec![floats(&[1], &[1.0])]), NpShape::Off, &mut || true).expect("saved");
    assert!(link.symlink_metadata().unwrap().is_symlink());
    assert_eq!(load(engine(), directory.path("real.params"), NpShape::Off).expect("parameters").len(), 1);
}
