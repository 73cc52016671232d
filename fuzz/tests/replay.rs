//! Each target over its seeds, and over all that was found before.

use mxrt_fuzz::TARGETS;
use std::path::Path;

#[test]
fn every_input_gives_an_answer_or_an_error() {
    for target in TARGETS {
        let inputs = target.inputs().unwrap();
        assert!(!inputs.is_empty(), "{} has no seeds", target.name);
        for (name, bytes) in inputs.into_iter().chain(target.findings().unwrap()) {
            // Shown if the next line panics.
            println!("{}: {name}", target.name);
            target.check(&bytes);
        }
    }
}

#[test]
fn every_file_of_a_target_has_its_row() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/targets");
    let name = |entry: std::io::Result<std::fs::DirEntry>| entry.unwrap().file_name().into_string().unwrap();
    let mut files: Vec<String> = folder.read_dir().unwrap().map(name).filter(|name| name != "mod.rs").collect();
    files.sort();
    assert_eq!(files, TARGETS.iter().map(|target| format!("{}.rs", target.name)).collect::<Vec<_>>());
}
