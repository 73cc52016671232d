//! The program that libFuzzer drives. `FUZZ_TARGET` names the target, `FUZZ_CORPUS` the folder that
//! gets its seeds first.
#![no_main]

use libfuzzer_sys::fuzz_target;
use mxrt_fuzz::Target;
use std::path::Path;
use std::sync::LazyLock;

static TARGET: LazyLock<&'static Target> = LazyLock::new(|| {
    let name = std::env::var("FUZZ_TARGET").expect("FUZZ_TARGET names the target");
    Target::find(&name).unwrap_or_else(|| panic!("FUZZ_TARGET={name}: there is no such target"))
});

fn add_seeds(corpus: &Path) {
    for (name, bytes) in TARGET.inputs().expect("the seeds are read") {
        std::fs::write(corpus.join(name), bytes).expect("the seed is written");
    }
}

fuzz_target!(
    init: {
        if let Some(corpus) = std::env::var_os("FUZZ_CORPUS") {
            add_seeds(corpus.as_ref());
        }
    },
    |bytes: &[u8]| TARGET.check(bytes)
);
