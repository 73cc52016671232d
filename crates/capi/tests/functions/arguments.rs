//! The arguments of operators and iterators: names, order and types are those of libmxnet 1.9.1.
//!
//! `recorded/libmxnet_arguments.txt` holds what libmxnet answers: a name, in parentheses the argument
//! that counts the inputs, and then a line for each argument with its type.

use crate::common::repository;
use mxrt_capi::*;
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{CStr, c_char};
use std::ptr::{null, null_mut};

#[derive(Default)]
struct Description {
    /// the argument that counts the inputs
    counting: String,
    /// names and types
    arguments: Vec<(String, String)>,
}

impl Description {
    fn names(&self) -> Vec<&str> {
        self.arguments.iter().map(|(name, _)| name.as_str()).collect()
    }
}

type Descriptions = BTreeMap<String, Description>;

fn file(name: &str) -> String {
    let path = repository().join("crates/capi/tests/recorded").join(name);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The descriptions by libmxnet.
fn recorded() -> Descriptions {
    let mut all = Descriptions::new();
    let mut last = String::new();
    for line in file("libmxnet_arguments.txt").lines() {
        if let Some(argument) = line.strip_prefix("  ") {
            let (name, kind) = argument.split_once(": ").expect("a name and a type");
            let description = all.get_mut(&last).expect("a line with a name first");
            description.arguments.push((name.to_owned(), kind.to_owned()));
            continue;
        }
        let (name, counting) = line.split_once(" (").unwrap_or((line, ""));
        last = name.to_owned();
        let counting = counting.trim_end_matches(')').to_owned();
        all.insert(last.clone(), Description { counting, arguments: Vec::new() });
    }
    all
}

fn works(code: i32) {
    assert_eq!(code, 0);
}

fn text(pointer: *const c_char) -> String {
    // SAFETY: the library's text lives as long as the process.
    unsafe { CStr::from_ptr(pointer) }.to_str().expect("UTF-8").to_owned()
}

fn texts(pointer: *mut *const c_char, number: u32) -> Vec<String> {
    (0..number as usize)
        // SAFETY: the library gives as many texts as it says.
        .map(|i| text(unsafe { *pointer.add(i) }))
        .collect()
}

fn paired(number: u32, names: *mut *const c_char, types: *mut *const c_char) -> Vec<(String, String)> {
    texts(names, number).into_iter().zip(texts(types, number)).collect()
}

/// The descriptions of operators by this library.
fn operators() -> Descriptions {
    let mut all = Descriptions::new();
    let (mut size, mut creators) = (0, null_mut());
    // SAFETY: the places are valid.
    works(unsafe { MXSymbolListAtomicSymbolCreators(&mut size, &mut creators) });
    for i in 0..size as usize {
        let (mut name, mut doc, mut counting, mut returns) = (null(), null(), null(), c"unset".as_ptr());
        let (mut number, mut names, mut types, mut docs) = (0, null_mut(), null_mut(), null_mut());
        // SAFETY: the handle is one of `size`, and the places are valid.
        works(unsafe {
            MXSymbolGetAtomicSymbolInfo(
                *creators.add(i),
                &mut name,
                &mut doc,
                &mut number,
                &mut names,
                &mut types,
                &mut docs,
                &mut counting,
                &mut returns,
            )
        });
        assert!(returns.is_null(), "{}: MXNet gives no return type", text(name));
        let description = Description { counting: text(counting), arguments: paired(number, names, types) };
        all.insert(text(name), description);
    }
    all
}

/// The descriptions of iterators by this library.
fn iterators() -> Descriptions {
    let mut all = Descriptions::new();
    let (mut size, mut creators) = (0, null_mut());
    // SAFETY: the places are valid.
    works(unsafe { MXListDataIters(&mut size, &mut creators) });
    for i in 0..size as usize {
        let (mut name, mut doc) = (null(), null());
        let (mut number, mut names, mut types, mut docs) = (0, null_mut(), null_mut(), null_mut());
        // SAFETY: the handle is one of `size`, and the places are valid.
        works(unsafe {
            let creator = *creators.add(i);
            MXDataIterGetIterInfo(creator, &mut name, &mut doc, &mut number, &mut names, &mut types, &mut docs)
        });
        let arguments = paired(number, names, types);
        all.insert(text(name), Description { arguments, ..Description::default() });
    }
    all
}

/// The differences of two descriptions: the name, if other arguments are listed or counted, and
/// name and argument for a type.
fn differences(name: &str, ours: &Description, theirs: &Description) -> BTreeMap<String, String> {
    let mut all = BTreeMap::new();
    let lists = [(ours.names(), &ours.counting), (theirs.names(), &theirs.counting)];
    if lists[0] != lists[1] {
        all.insert(name.to_owned(), format!("{:?}; MXNet: {:?}", lists[0], lists[1]));
    }
    for (argument, kind) in &ours.arguments {
        let recorded = theirs.arguments.iter().find(|(name, _)| name == argument);
        if let Some((_, recorded)) = recorded.filter(|(_, recorded)| recorded != kind) {
            all.insert(format!("{name} {argument}"), format!("{kind:?}; MXNet: {recorded:?}"));
        }
    }
    all
}

#[test]
fn wrappers_are_generated_from_mxnets_arguments_in_mxnets_order() {
    let recorded = recorded();
    let mut described = operators();
    described.append(&mut iterators());
    let mut common = 0;
    let mut found = BTreeMap::new();
    for (name, ours) in &described {
        if let Some(theirs) = recorded.get(name) {
            common += 1;
            found.append(&mut differences(name, ours, theirs));
        }
    }
    assert!(common > 550, "{common} names are in both libraries");
    let known = file("known_argument_differences.txt");
    let known: BTreeSet<&str> = known.lines().filter(|line| !line.is_empty() && !line.starts_with('#')).collect();
    let new: Vec<_> = found.iter().filter(|(place, _)| !known.contains(place.as_str())).collect();
    assert!(new.is_empty(), "neither MXNet's answers nor known differences: {new:#?}");
    let old: Vec<_> = known.iter().filter(|place| !found.contains_key(**place)).collect();
    assert!(old.is_empty(), "known differences that agree with MXNet: {old:?}");
}
