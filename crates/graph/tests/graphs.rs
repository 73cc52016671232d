//! Tests of graphs, in one program: each would be linked to all operators.

mod common;

mod accuracy;
mod attention;
mod cached_op;
mod calls;
mod chains;
mod control_flow;
mod custom;
mod data_dependent;
mod hostile;
mod infer;
mod json;
mod labels;
mod long_graphs;
mod plans;
mod random_graphs;
mod recorded;
mod scalars;
mod shared_constants;
mod small_weights;
mod symbol;
mod training;

#[test]
fn every_file_of_tests_is_in_this_program() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests");
    for entry in std::fs::read_dir(folder).expect("the folder of this file") {
        let path = entry.expect("its entries").path();
        let name = path.file_stem().expect("a name").to_string_lossy();
        if path.extension().is_some_and(|kind| kind == "rs") && name != "graphs" {
            assert!(include_str!("graphs.rs").contains(&format!("\nmod {name};\n")), "{name}.rs is not run");
        }
    }
}
