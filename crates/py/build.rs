//! The name by which extensions that were linked to the module find it in the process, and the
//! script by which linkers find it: the name of its file, which depends on the Python.

use pyo3_build_config::{GilUsed, InterpreterConfig, PythonAbiKind, StableAbi};
use std::path::Path;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let module = module(pyo3_build_config::get());
    if std::env::var("CARGO_CFG_TARGET_OS").is_ok_and(|os| os == "linux") {
        println!("cargo::rustc-link-arg-cdylib=-Wl,-soname,{module}");
    }
    let script = format!(
        "/* For linkers: -lmxrt is the module of Python. With .so at its end Python would take this for one. */\n\
         INPUT({module})\n"
    );
    let folder = std::env::var("OUT_DIR").expect("Cargo sets OUT_DIR");
    std::fs::write(Path::new(&folder).join("libmxrt.a"), script).expect("OUT_DIR can be written");
}

/// The name of the file, as Maturin gives it.
fn module(python: &InterpreterConfig) -> String {
    let version = format!("cpython-{}{}", python.version().major, python.version().minor);
    let interface = match python.target_abi().kind() {
        PythonAbiKind::Stable(StableAbi::Abi3) => return "_mxrt.abi3.so".to_owned(),
        PythonAbiKind::Stable(StableAbi::Abi3t) => "abi3t".to_owned(),
        PythonAbiKind::VersionSpecific(GilUsed::GilEnabled) => version,
        PythonAbiKind::VersionSpecific(GilUsed::FreeThreaded) => version + "t",
    };
    let target = |part| std::env::var(format!("CARGO_CFG_TARGET_{part}")).unwrap_or_default();
    let (arch, env) = (target("ARCH"), target("ENV"));
    format!("_mxrt.{interface}-{arch}-linux-{env}.so")
}
