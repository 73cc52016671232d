//! Every function of the headers, called with handles that are none and with null pointers.

use crate::common::header::{Declaration, declarations};
use crate::common::{self, Arguments, Directory, ENGINES, check_program, compile};
use std::fmt::Write;

/// Kinds of handles, and the variable of the program that holds a good one.
const HANDLES: [(&str, &str); 11] = [
    ("NDArrayHandle", "array"),
    ("SymbolHandle", "symbol"),
    ("CachedOpHandle", "cached_op"),
    ("ExecutorHandle", "executor"),
    ("PredictorHandle", "predictor"),
    ("NDListHandle", "list"),
    ("ModelHandle", "model"),
    ("ProfileHandle", "domain"),
    ("AtomicSymbolCreator", "op"),
    ("OpHandle", "op"),
    ("DataIterCreator", "creator"),
];

/// Pointers that may be null, or handles that may be anything.
const OPTIONAL: [&str; 6] =
    ["shared_exec_handle", "shared_exec", "kvStoreHandle", "kvstoreHandle", "prop_handle", "callback_handle"];

/// A pointer to a function, though its name ends as those of handles do.
const FUNCTION: &str = "CustomOpPropCreator";

/// How a variant of a call fills one argument.
enum Fill<'a> {
    Good,
    Null,
    Expression(&'a str),
}

fn is_handle(kind: &str) -> bool {
    let kind = kind.trim_start_matches("const ");
    !kind.contains('*') && kind != FUNCTION && (kind.ends_with("Handle") || kind.ends_with("Creator"))
}

fn argument(kind: &str, fill: Fill<'_>) -> String {
    match fill {
        Fill::Null => "NULL".to_owned(),
        Fill::Expression(text) => text.to_owned(),
        Fill::Good
            if kind == FUNCTION
                || kind.ends_with("Func")
                || kind.ends_with("Deleter")
                || kind.ends_with("Callback") =>
        {
            "NULL".into()
        }
        Fill::Good if kind == "ContextHandle" || kind == "EngineFnPropertyHandle" => "cpu".into(),
        Fill::Good if is_handle(kind) => {
            let bare = kind.trim_start_matches("const ");
            let known = HANDLES.iter().find(|(name, _)| *name == bare);
            known.map_or_else(|| "NULL".to_owned(), |(_, variable)| (*variable).to_owned())
        }
        Fill::Good if kind.contains('*') => "scratch".into(),
        Fill::Good => "1".into(),
    }
}

/// One call: argument `special` is filled in another way, the others well.
fn call(function: &Declaration, special: usize, fill: &str) -> String {
    let arguments = function.arguments.iter().enumerate().map(|(i, (kind, _))| {
        let how = match fill {
            _ if i != special => Fill::Good,
            "" => Fill::Null,
            text => Fill::Expression(text),
        };
        argument(kind, how)
    });
    format!("{}({})", function.name, arguments.collect::<Vec<_>>().join(", "))
}

/// Whether a function frees an object: null is none.
fn frees(name: &str) -> bool {
    name.contains("Free") || name == "MXProfileDestroyHandle"
}

/// The statements that try one function.
fn attempts(function: &Declaration) -> String {
    let mut text = String::new();
    for (i, (kind, name)) in function.arguments.iter().enumerate() {
        if OPTIONAL.contains(&name.as_str()) {
            continue;
        }
        if is_handle(kind) && !kind.starts_with("const ") && kind != "ContextHandle" && kind != "EngineFnPropertyHandle"
        {
            let own = HANDLES.iter().find(|(known, _)| *known == kind).map_or("", |(_, variable)| *variable);
            for wrong in ["NULL", "(void *)(space + 8)", "(void *)3", "array", "symbol", "predictor", "op", "gone"] {
                if wrong == "NULL" && frees(&function.name) {
                    writeln!(text, "    SURVIVES({});", call(function, i, "")).expect("written");
                } else if wrong != own {
                    writeln!(text, "    REFUSED({}, \"{name}\");", call(function, i, wrong)).expect("written");
                }
            }
        } else if kind.contains('*') || kind == "ContextHandle" {
            writeln!(text, "    SURVIVES({});", call(function, i, "")).expect("written");
            if kind == "const char*" {
                writeln!(text, "    SURVIVES({});", call(function, i, "\"\\xff\\xfe\"")).expect("written");
            }
        } else if kind == "int" {
            writeln!(text, "    SURVIVES({});", call(function, i, "-1")).expect("written");
            writeln!(text, "    SURVIVES({});", call(function, i, "INT_MIN")).expect("written");
        }
    }
    text
}

const PROGRAM: &str = r#"
#include <mxrt.h>
#include <limits.h>
#include "check.h"

static char space[1 << 16];
static int cpu[] = {1, 0};
static NDArrayHandle array, gone;
static SymbolHandle symbol;
static CachedOpHandle cached_op;
static ExecutorHandle executor;
static PredictorHandle predictor;
static NDListHandle list;
static ModelHandle model;
static ProfileHandle domain;
static OpHandle op;
static DataIterCreator creator;
#define scratch ((void *)space)

/* The function says no, and says why. */
#define REFUSED(call, argument)                                                           \
    do {                                                                                  \
        ++checks;                                                                         \
        fresh();                                                                          \
        if ((call) != -1 || !MXGetLastError()[0]) {                                       \
            fprintf(stderr, "%s with a wrong %s is not refused\n", #call, argument);      \
            exit(1);                                                                      \
        }                                                                                 \
    } while (0)
/* The function comes back, and says why if it says no. */
#define SURVIVES(call)                                                                    \
    do {                                                                                  \
        ++checks;                                                                         \
        fresh();                                                                          \
        if ((call) == -1 && !MXGetLastError()[0]) {                                       \
            fprintf(stderr, "%s fails without a message\n", #call);                       \
            exit(1);                                                                      \
        }                                                                                 \
    } while (0)

static const char *MODEL =
    "{\"nodes\": [{\"op\": \"null\", \"name\": \"x\", \"inputs\": []},"
    "{\"op\": \"null\", \"name\": \"w\", \"inputs\": []},"
    "{\"op\": \"elemwise_add\", \"name\": \"y\", \"inputs\": [[0, 0, 0],[1,0,0]]}],"
    "\"arg_nodes\": [0,1], \"heads\": [[2, 0, 0]]}";

static char *file;
static int file_size;

static void make(void) {
    static const uint32_t one[] = {1}, ends[] = {0, 1};
    static const char *keys[] = {"x"}, *names[] = {"arg:w"};
    DataIterCreator *creators;
    uint32_t number;
    WORKS(MXNDArrayCreate(one, 1, 1, 0, 0, &array));
    WORKS(MXSymbolCreateFromJSON(MODEL, &symbol));
    NDArrayHandle both[2]; both[0]=array; both[1]=array;
    WORKS(MXCreateCachedOp(symbol, &cached_op));
    WORKS(MXExecutorBind(symbol, 1, 0, 2, both, NULL, NULL, 0, NULL, &executor));
    if (!file) {
        WORKS(MXNDArraySave("bad_input.params", 1, &array, names));
        file = content("bad_input.params", &file_size);
        WORKS(MXNDArrayCreate(one, 1, 1, 0, 0, &gone));
        WORKS(MXNDArrayFree(gone));
    }
    WORKS(MXPredCreate(MODEL, file, file_size, 1, 0, 1, keys, ends, one, &predictor));
    WORKS(MXNDListCreate(file, file_size, &list, &number));
    WORKS(MXRTModelCreate(MODEL, file, (size_t)file_size, 1, keys, 1, 0, 0, NULL, NULL, &model));
    WORKS(MXProfileCreateDomain("domain", &domain));
    WORKS(NNGetOpHandle("relu", &op));
    WORKS(MXListDataIters(&number, &creators));
    creator = creators[0];
}

/* Scratch memory is zero again. What a call has freed is made again. */
static void fresh(void) {
    int code;
    uint32_t number;
    const char *text, **names;
    memset(space, 0, sizeof space);
    if (MXNDArrayGetDType(array, &code) || MXSymbolGetNumOutputs(symbol, &number) || MXExecutorPrint(executor, &text) ||
        MXPredGetOutputType(predictor, 0, &code) || MXRTModelListInputs(model, &number, &names))
        make();
}

int main(void) {
    make();
ATTEMPTS
    printf("%d checks\n", checks);
    return 0;
}
"#;

#[test]
fn wrong_handles_are_refused_and_null_pointers_do_no_harm() {
    let mut text = String::new();
    let mut tried = 0;
    for function in declarations().iter().filter(|function| function.returns == "int") {
        let statements = attempts(function);
        tried += usize::from(!statements.is_empty());
        text += &statements;
    }
    assert!(tried > 140, "{tried} functions");
    let directory = Directory::new("bad-input");
    let source = directory.0.join("bad_input.c");
    std::fs::write(&source, PROGRAM.replace("ATTEMPTS", &text)).expect("a file");
    let check = common::repository().join("crates/capi/tests/programs/check.h");
    std::fs::copy(check, directory.0.join("check.h")).expect("a file");
    let program = directory.0.join("bad_input");
    compile(&source, &program);
    let (success, text) = common::run_in(&program, &directory.0);
    assert!(success && text.contains(" checks"), "{text}");
}

#[test]
fn lists_that_contradict_themselves_are_refused() {
    check_program("lists", Arguments::Folder, &ENGINES[..1]);
}
