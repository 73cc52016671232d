//! Makes the arguments of kernels in Rust from their declarations in the source of the kernels.
//!
//! A declaration is a structure at the beginning of a line: pointers, numbers, arrays of these, and
//! structures that were declared before. `struct Take` becomes `TakeArgument`, with fields of the same
//! names, order and sizes.

use std::collections::HashMap;
use std::fmt::Write as _;

/// Declarations of files in the order of these; each file's name and text.
pub fn generate(files: &[(String, String)]) -> Result<String, String> {
    let mut known = Known::default();
    for (name, text) in files {
        let failed = |number: usize, why: String| format!("{name}:{}: {why}", number + 1);
        let mut lines = text.lines().enumerate();
        while let Some((number, line)) = lines.next() {
            known.constant(line);
            let Some(structure) = line.strip_prefix("struct ").and_then(|rest| rest.strip_suffix(" {")) else {
                continue;
            };
            let body: Vec<(usize, &str)> = lines.by_ref().take_while(|(_, line)| *line != "};").collect();
            if body.iter().any(|(_, line)| line.contains('(') && !line.trim_start().starts_with("//")) {
                // A structure with functions is no argument, except that all of a divisor is its number.
                continue;
            }
            let fields = body.iter().map(|(number, line)| known.fields(line).map_err(|why| failed(*number, why)));
            let fields = fields.collect::<Result<Vec<String>, String>>()?.concat();
            known.declare(structure, &fields).map_err(|why| failed(number, why))?;
        }
    }
    Ok(known.rust)
}

/// Constants and structures that were declared.
#[derive(Default)]
struct Known {
    constants: HashMap<String, usize>,
    structures: Vec<String>,
    /// constants that are in the Rust text
    written: Vec<String>,
    rust: String,
}

impl Known {
    /// Notes `#define NAME NUMBER`.
    fn constant(&mut self, line: &str) {
        let mut words = line.split_whitespace();
        if let (Some("#define"), Some(name), Some(Ok(number))) =
            (words.next(), words.next(), words.next().map(str::parse::<usize>))
        {
            self.constants.insert(name.to_owned(), number);
        }
    }

    fn declare(&mut self, name: &str, fields: &str) -> Result<(), String> {
        if self.structures.iter().any(|known| known == name) {
            return Err(format!("there are two structures '{name}'"));
        }
        self.structures.push(name.to_owned());
        let _ = write!(
            self.rust,
            "/// `{name}` of the source.\n#[repr(C)]\n#[derive(Clone, Copy)]\npub(crate) struct {name}Argument {{\n\
             {fields}}}\n\n"
        );
        Ok(())
    }

    /// The fields of a line, such as `const void *from, *to;` or `i64 n, steps[AXES];`.
    fn fields(&mut self, line: &str) -> Result<String, String> {
        let code = line.split("//").next().unwrap_or_default().trim();
        if code.is_empty() {
            return Ok(String::new());
        }
        let code = code.strip_suffix(';').ok_or_else(|| format!("'{code}' does not end in a semicolon"))?;
        let code = code.strip_prefix("const ").unwrap_or(code);
        let word = |c: char| c.is_alphanumeric() || c == '_';
        let (kind, names) = code.split_at(code.find(|c| !word(c)).unwrap_or(code.len()));
        names.split(',').map(|name| self.field(kind, name.trim())).collect()
    }

    fn field(&mut self, kind: &str, name: &str) -> Result<String, String> {
        let (pointer, name) = match name.strip_prefix('*') {
            Some(name) => (true, name.trim()),
            None => (false, name),
        };
        let mut parts = name.split('[');
        let name = parts.next().unwrap_or_default();
        let mut of = if pointer { "u64".to_owned() } else { self.element(kind)? };
        for extent in parts.rev() {
            let extent = extent.trim_end_matches(']');
            of = format!("[{of}; {}]", self.extent(extent)?);
        }
        Ok(format!("    pub {name}: {of},\n"))
    }

    /// A number, or the name of a constant, which the Rust text declares, too.
    fn extent<'a>(&mut self, extent: &'a str) -> Result<&'a str, String> {
        if extent.parse::<usize>().is_ok() || self.written.iter().any(|written| written == extent) {
            return Ok(extent);
        }
        let number = self.constants.get(extent).ok_or_else(|| format!("'{extent}' is no known number"))?;
        let _ = write!(self.rust, "/// `{extent}` of the source.\npub(crate) const {extent}: usize = {number};\n\n");
        self.written.push(extent.to_owned());
        Ok(extent)
    }

    fn element(&self, kind: &str) -> Result<String, String> {
        Ok(match kind {
            "i64" | "Divisor" => "i64".to_owned(),
            "u64" => "u64".to_owned(),
            "int" => "i32".to_owned(),
            "u32" => "u32".to_owned(),
            "float" => "f32".to_owned(),
            "double" => "f64".to_owned(),
            other if self.structures.iter().any(|known| known == other) => format!("{other}Argument"),
            other => return Err(format!("'{other}' is neither a number nor a structure that was declared before")),
        })
    }
}
