//! The arguments of the kernels, made from their declarations in `cuda/` (`build/arguments.rs`).

// Some structures of the source are no arguments.
#![allow(dead_code)]

include!(concat!(env!("OUT_DIR"), "/arguments.rs"));

#[cfg(test)]
#[path = "../build/arguments.rs"]
mod generator;

#[cfg(test)]
mod tests {
    use super::generator::generate;

    fn of(text: &str) -> Result<String, String> {
        generate(&[("a.h".to_owned(), text.to_owned())])
    }

    #[test]
    fn a_structure_keeps_names_order_and_sizes() {
        let source = "#define MANY 3\nstruct Part {\n    int a, b;    // two\n};\nstruct Whole {\n    // All.\n    \
                      const void *from, *to;\n    Divisor n;\n    float sides[MANY][2];\n    Part part;\n};\n";
        let rust = of(source).unwrap();
        let fields = ["from: u64", "to: u64", "n: i64", "sides: [[f32; 2]; MANY]", "part: PartArgument"];
        let at: Vec<usize> = fields.iter().map(|field| rust.find(&format!("pub {field},")).expect(field)).collect();
        assert!(at.is_sorted(), "{rust}");
        assert!(rust.contains("pub(crate) const MANY: usize = 3;"), "{rust}");
    }

    #[test]
    fn what_cannot_be_an_argument_is_named_with_its_line() {
        for (field, why) in [
            ("Unknown u;", "a.h:2: 'Unknown' is neither a number"),
            ("int a[MANY];", "a.h:2: 'MANY' is no known number"),
            ("int a", "a.h:2: 'int a' does not end in a semicolon"),
        ] {
            let error = of(&format!("struct A {{\n    {field}\n}};\n")).unwrap_err();
            assert!(error.contains(why), "{error}");
        }
        assert!(of("struct A {\n};\nstruct A {\n};\n").unwrap_err().contains("a.h:3: there are two structures 'A'"));
    }
}
