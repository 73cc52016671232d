//! Writes the table of operators: one row for every file of `src` that has a
//! `pub static OPS: &[OpDef]`.

use std::path::{Path, PathBuf};
use std::{env, fs, io};

/// The line that makes a file one of operators.
const MARK: &str = "pub static OPS: &[OpDef]";

fn main() -> io::Result<()> {
    println!("cargo::rerun-if-changed=src");
    let mut rows = Vec::new();
    collect(Path::new("src"), &mut rows)?;
    rows.sort();
    let out = PathBuf::from(env::var_os("OUT_DIR").ok_or(io::ErrorKind::NotFound)?);
    fs::write(out.join("table.rs"), format!("&[\n{}]\n", rows.concat()))
}

/// Adds a row for every file of operators below a folder.
fn collect(folder: &Path, rows: &mut Vec<String>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            collect(&path, rows)?;
        } else if path.extension().is_some_and(|e| e == "rs")
            && fs::read_to_string(&path)?.lines().any(|line| line.trim_start().starts_with(MARK))
        {
            let below_src = if path.ends_with("mod.rs") { folder } else { &path.with_extension("") };
            let module: Vec<_> = below_src.iter().skip(1).map(|part| part.to_string_lossy()).collect();
            rows.push(format!("    crate::{}::OPS,\n", module.join("::")));
        }
    }
    Ok(())
}
