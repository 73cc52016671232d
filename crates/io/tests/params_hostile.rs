//! Damaged and malicious parameter files: an error or a valid result, never a panic, never much
//! memory.

mod common;

use common::{engine, floats, hex};
use mxrt_io::params::{NpShape, Params, load_from_bytes, save_to_bytes};
use proptest::prelude::*;
use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// The system's allocator, with a count of the bytes in use and of the most there were.
struct Counting {
    used: AtomicUsize,
    most: AtomicUsize,
}

impl Counting {
    fn add(&self, bytes: usize) {
        let used = self.used.fetch_add(bytes, Relaxed) + bytes;
        self.most.fetch_max(used, Relaxed);
    }
}

// SAFETY: every call goes to the system's allocator unchanged; only numbers are kept beside.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        self.add(layout.size());
        // SAFETY: the caller's promises are those that `System` asks for.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        self.used.fetch_sub(layout.size(), Relaxed);
        // SAFETY: the caller's promises are those that `System` asks for.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting { used: AtomicUsize::new(0), most: AtomicUsize::new(0) };

/// The allocator is shared by all tests of this file, so only one of them may measure at a time.
static ALONE: Mutex<()> = Mutex::new(());

const SLACK: usize = 64 << 20;

/// Loads under each flag, checks what came, and returns the most memory that was in use beyond what
/// was before.
fn try_load(bytes: &[u8]) -> usize {
    engine().memory().trim();
    let before = ALLOCATOR.used.load(Relaxed);
    ALLOCATOR.most.store(before, Relaxed);
    for flag in [NpShape::Off, NpShape::ThreadLocal, NpShape::Global] {
        match load_from_bytes(engine(), bytes, flag) {
            Ok(params) => check(&params),
            Err(error) => assert!(error.to_string().len() > 20, "{error}"),
        }
    }
    ALLOCATOR.most.load(Relaxed).saturating_sub(before)
}

/// A valid result can be read to the last byte and saved again.
fn check(params: &Params) {
    let arrays: Vec<_> = match params {
        Params::List(arrays) => arrays.iter().collect(),
        Params::Named(arrays) => arrays.iter().map(|(_, array)| array).collect(),
    };
    let sparse = arrays.iter().any(|array| array.is_sparse());
    for array in arrays {
        // A dense copy of a sparse array may be larger than any memory.
        match array.is_sparse() {
            true => drop(array.read_stored(None).expect("a value").parts().expect("parts")),
            false => assert_eq!(array.to_bytes().expect("bytes").len(), array.nbytes()),
        }
    }
    let np_shape = if sparse { NpShape::Off } else { NpShape::Global };
    save_to_bytes(params, np_shape, &mut || true).expect("saved");
}

fn files() -> Vec<Vec<u8>> {
    let named = Params::Named(vec![
        ("arg:fc_weight".into(), floats(&[2, 3], &[1.0; 6])),
        ("arg:fc_bias".into(), floats(&[2], &[0.5; 2])),
        ("aux:mean".into(), floats(&[1, 1, 1, 1], &[2.0])),
    ]);
    let sparse = "1201000000000000 0000000000000000 0200000000000000
         c9fa93f9 02000000 01000000 0100000000000000 02000000 0200000000000000 0300000000000000
         0100000000000000 00000000 06000000 01000000 0300000000000000 06000000 01000000 0100000000000000
         0000a040 0000000000000000 0000000000000000 0100000000000000 0100000000000000
         02000000 02000000 01000000 0100000000000000 00000000 0000803f 00000040
         0200000000000000 0100000000000000 61 0100000000000000 62";
    vec![
        save_to_bytes(&named, NpShape::Off, &mut || true).expect("bytes"),
        save_to_bytes(&named, NpShape::Global, &mut || true).expect("bytes"),
        include_bytes!("data/conv1d.params").to_vec(),
        hex(sparse),
    ]
}

#[test]
fn every_cut_is_an_error() {
    let _alone = ALONE.lock();
    for file in files() {
        for cut in 0..file.len() {
            for flag in [NpShape::Off, NpShape::Global] {
                assert!(load_from_bytes(engine(), &file[..cut], flag).is_err(), "cut at {cut} of {}", file.len());
            }
            assert!(try_load(&file[..cut]) < file.len() + SLACK);
        }
    }
}

#[test]
fn every_changed_byte_gives_an_error_or_a_valid_result() {
    let _alone = ALONE.lock();
    for mut file in files() {
        for at in 0..file.len() {
            let original = file[at];
            let changes = (0..8).map(|bit| original ^ (1 << bit)).chain([0, 0xff, 0x7f, original ^ 0xff]);
            for changed in changes {
                file[at] = changed;
                let most = try_load(&file);
                assert!(most < file.len() + SLACK, "byte {at} as {changed}: {most} bytes");
            }
            file[at] = original;
        }
    }
}

#[test]
fn lengths_far_beyond_the_file_take_no_memory() {
    let _alone = ALONE.lock();
    let header = "1201000000000000 0000000000000000";
    let lies = [
        format!("{header} ffffffffffffff7f"),
        format!("{header} 0100000000000000 c9fa93f9 00000000 ffffff7f"),
        format!("{header} 0100000000000000 c9fa93f9 00000000 01000000 0000000001000000 0100000000000000 00000000"),
        format!("{header} 0100000000000000 ffffff3f"),
        format!("{header} 0000000000000000 ffffffffffffffff"),
        format!(
            "{header} 0100000000000000 c9fa93f9 00000000 01000000 0000000000000000 0100000000000000 00000000
             0100000000000000 ffffffffffffff7f"
        ),
    ];
    for lie in lies {
        let bytes = hex(&lie);
        assert!(load_from_bytes(engine(), &bytes, NpShape::Off).is_err());
        let most = try_load(&bytes);
        assert!(most < 1 << 20, "{most} bytes for {lie}");
    }
}

#[test]
fn a_long_name_is_shown_by_its_beginning_and_read_once() {
    let _alone = ALONE.lock();
    const LONG: usize = 32 << 20;
    // An array of one float, or one without a shape, and a name.
    let header = "1201000000000000 0000000000000000 0100000000000000 c9fa93f9 00000000";
    let one = "01000000 0100000000000000 0100000000000000 00000000 0000803f";
    for (array, letter, words) in [(one, 0xff, "is not UTF-8"), ("00000000", b'n', "is empty (it was saved before")] {
        let mut file = hex(&format!("{header} {array} 0100000000000000"));
        file.extend((LONG as u64).to_le_bytes());
        file.resize(file.len() + LONG, letter);
        engine().memory().trim();
        let before = ALLOCATOR.used.load(Relaxed);
        ALLOCATOR.most.store(before, Relaxed);
        let error = load_from_bytes(engine(), &file, NpShape::Off).expect_err("no such array").to_string();
        assert!(error.contains(words) && error.len() < 500, "{} bytes of {words}", error.len());
        let most = ALLOCATOR.most.load(Relaxed) - before;
        assert!(most < 2 * LONG + (8 << 20), "{most} bytes for a name of {LONG}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn arbitrary_bytes_behind_a_good_header_do_no_harm(count in 0u64..5, bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        let _alone = ALONE.lock();
        let mut file = hex("1201000000000000 0000000000000000");
        file.extend(count.to_le_bytes());
        file.extend(bytes);
        prop_assert!(try_load(&file) < file.len() + SLACK);
    }

    #[test]
    fn records_of_small_numbers_do_no_harm(fields in prop::collection::vec(
        prop_oneof![Just(0u32), Just(1), Just(2), Just(3), Just(u32::MAX), Just(0xF993_FAC9), Just(0xF993_FACA), Just(0xF993_FAC8), any::<u32>()],
        0..40,
    )) {
        let _alone = ALONE.lock();
        let mut file = hex("1201000000000000 0000000000000000 0100000000000000");
        file.extend(fields.iter().flat_map(|field| field.to_le_bytes()));
        prop_assert!(try_load(&file) < file.len() + SLACK);
    }

    #[test]
    fn what_is_saved_is_loaded(shapes in prop::collection::vec(prop::collection::vec(0usize..4, 1..5), 0..6)) {
        let _alone = ALONE.lock();
        let arrays: Vec<_> = shapes
            .iter()
            .enumerate()
            .map(|(i, shape)| {
                let values: Vec<f32> = (0..shape.iter().product::<usize>()).map(|v| v as f32).collect();
                (format!("p{i}"), floats(shape, &values))
            })
            .collect();
        let bytes = save_to_bytes(&Params::Named(arrays.clone()), NpShape::Off, &mut || true).expect("bytes");
        let again = load_from_bytes(engine(), &bytes, NpShape::Off).expect("parameters");
        prop_assert_eq!(again.len(), arrays.len());
        for (name, array) in &arrays {
            let loaded = again.get(name).expect("the same names");
            prop_assert_eq!(loaded.shape(), array.shape());
            prop_assert_eq!(loaded.to_bytes().expect("bytes"), array.to_bytes().expect("bytes"));
        }
    }
}
