//! Checks that `src/grpc/generated` agrees with the protocol's files in `proto`. `MXRT_WRITE=1`
//! writes it.

use prost_types::{DescriptorProto, FileDescriptorProto, FileDescriptorSet};
use protox::prost::Message;
use std::collections::{BTreeSet, HashMap};
use std::fmt::Write;
use std::path::{Path, PathBuf};

/// Files that reflection describes.
const FILES: [&str; 5] =
    ["grpc_service.proto", "model_config.proto", "health.proto", "reflection.proto", "reflection_v1alpha.proto"];
/// Files whose messages the server reads and writes, with the module for each. Both versions of
/// reflection have the same messages.
const MODULES: [(&str, &str); 3] =
    [("grpc_service.proto", "inference"), ("health.proto", "health"), ("reflection.proto", "reflection")];
/// Words in names of messages that belong to methods which the server does not have.
const UNUSED: [&str; 4] = ["ModelStreamInfer", "SharedMemory", "TraceSetting", "LogSettings"];
/// File with the configuration of models, of which the server writes these messages and fields.
const CONFIG: &str = "model_config.proto";
const WRITTEN: [(&str, &[&str]); 3] = [
    ("ModelInput", &["name", "data_type", "dims"]),
    ("ModelOutput", &["name", "data_type", "dims"]),
    ("ModelConfig", &["name", "platform", "max_batch_size", "input", "output", "backend"]),
];

fn here(folder: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(folder)
}

fn described(file: &str) -> FileDescriptorSet {
    let mut compiler = protox::Compiler::new([here("proto")]).expect("the folder of the protocol's files");
    compiler.include_imports(true).open_file(file).unwrap_or_else(|error| panic!("{file}: {error}"));
    compiler.file_descriptor_set()
}

fn rust_of(file: &str) -> String {
    let mut set = described(file);
    set.file.retain(|described| [file, CONFIG].contains(&described.name()));
    for described in &mut set.file {
        if described.name() == CONFIG {
            described.message_type.retain_mut(keep_written);
            described.enum_type.retain(|kept| kept.name() == "DataType");
        }
        described.source_code_info = None;
        described.service.clear();
        described.dependency.clear();
        described.message_type.retain(|message| !UNUSED.iter().any(|word| message.name().contains(word)));
    }
    let module = |file: FileDescriptorProto| (prost_build::Module::from_protobuf_package_name(file.package()), file);
    let made: HashMap<_, String> = prost_build::Config::new()
        .bytes(["."])
        .generate(set.file.into_iter().map(module).collect())
        .expect("Rust of a file of the protocol");
    made.into_values().collect()
}

/// Removes the fields of a message that the server does not write. Returns whether any is left.
fn keep_written(message: &mut DescriptorProto) -> bool {
    let row = WRITTEN.iter().find(|row| row.0 == message.name());
    message.field.retain(|field| row.is_some_and(|row| row.1.contains(&field.name())));
    message.nested_type.clear();
    message.enum_type.clear();
    message.oneof_decl.clear();
    row.is_some()
}

/// Returns the names that a file declares, in the form in which reflection looks them up.
fn symbols(file: &FileDescriptorProto) -> BTreeSet<String> {
    fn messages(scope: &str, of: &[DescriptorProto], to: &mut BTreeSet<String>) {
        for message in of {
            let name = format!("{scope}.{}", message.name());
            to.extend(message.enum_type.iter().map(|inner| format!("{name}.{}", inner.name())));
            messages(&name, &message.nested_type, to);
            to.insert(name);
        }
    }
    let package = file.package();
    let mut found = BTreeSet::new();
    messages(package, &file.message_type, &mut found);
    found.extend(file.enum_type.iter().map(|name| format!("{package}.{}", name.name())));
    for service in &file.service {
        let name = format!("{package}.{}", service.name());
        found.extend(service.method.iter().map(|method| format!("{name}.{}", method.name())));
        found.insert(name);
    }
    found
}

/// Makes all generated files, by name.
fn generated() -> Vec<(String, Vec<u8>)> {
    let mut files = Vec::new();
    for (file, module) in MODULES {
        let text = format!("// Made by tests/protocol_files.rs of proto/{file}.\n{}", rust_of(file));
        files.push((format!("{module}.rs"), text.into_bytes()));
    }
    let mut table = String::from("// Made by tests/protocol_files.rs of the files in proto.\n&[\n");
    for file in FILES {
        let mut described = described(file).file.into_iter().find(|one| one.name() == file).expect("the file itself");
        described.source_code_info = None;
        let package = described.package();
        let services: Vec<String> = described.service.iter().map(|s| format!("{package}.{}", s.name())).collect();
        let stem = file.trim_end_matches(".proto");
        let _ = write!(table, "    ProtocolFile {{\n        name: {file:?},\n        services: &{services:?},\n");
        let _ = write!(table, "        imports: &{:?},\n        symbols: &[\n", described.dependency);
        for symbol in symbols(&described) {
            let _ = writeln!(table, "            {symbol:?},");
        }
        let _ = write!(table, "        ],\n        descriptor: include_bytes!(\"{stem}.bin\"),\n    }},\n");
        files.push((format!("{stem}.bin"), described.encode_to_vec()));
    }
    table.push_str("]\n");
    files.push(("files.rs".to_owned(), table.into_bytes()));
    files
}

#[test]
fn the_generated_files_are_those_of_the_protocol() {
    let folder = here("src/grpc/generated");
    for (name, content) in generated() {
        let path = folder.join(&name);
        if std::env::var_os("MXRT_WRITE").is_some() {
            std::fs::write(&path, &content).expect("writing a generated file");
        }
        let there = std::fs::read(&path).unwrap_or_default();
        assert!(there == content, "{name} differs: MXRT_WRITE=1 cargo test -p mxrt-serve --test protocol_files");
    }
}

/// Returns the fields of all messages of a package: name, number, type and label.
fn fields(set: &FileDescriptorSet) -> BTreeSet<String> {
    fn of(scope: &str, messages: &[DescriptorProto], to: &mut BTreeSet<String>) {
        for message in messages {
            let name = format!("{scope}.{}", message.name());
            for field in &message.field {
                let (label, kind) = (field.label(), field.r#type());
                let named = field.type_name();
                to.insert(format!("{name}.{} = {}: {label:?} {kind:?} {named}", field.name(), field.number()));
            }
            of(&name, &message.nested_type, to);
        }
    }
    let mut found = BTreeSet::new();
    set.file.iter().for_each(|file| of(file.package(), &file.message_type, &mut found));
    found
}

#[test]
fn the_standard_is_a_part_of_what_is_spoken() {
    let spoken = fields(&described("grpc_service.proto"));
    let standard = fields(&described("open_inference_grpc.proto"));
    let lacking: Vec<&String> = standard.difference(&spoken).collect();
    // An option of the standard, of which the server has nothing to say.
    let is_optional = |field: &&String| field.to_lowercase().contains("modelmetadataresponse.properties");
    assert!(standard.len() > 50 && lacking.iter().all(is_optional), "{lacking:#?}");
}
