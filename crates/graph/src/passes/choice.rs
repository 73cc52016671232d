//! Choice of the passes that run.

use super::names;

/// A choice of passes: all of them, unless some are switched off. Results stay right without any of
/// them; they differ in speed, and in rounding.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct PassChoice {
    /// one bit for each pass that does not run
    off: u64,
}

impl PassChoice {
    /// Reads a list such as `-fuse_conv,-merge_equal`. `-all` switches everything off, and a later
    /// `+name` switches a pass on again. Errors name the unknown word and list the known passes.
    pub fn parse(text: &str) -> Result<PassChoice, String> {
        let mut choice = PassChoice::default();
        for word in text.split(',').map(str::trim).filter(|word| !word.is_empty()) {
            let (off, name) = match (word.strip_prefix('-'), word.strip_prefix('+')) {
                (Some(name), _) => (true, name),
                (_, Some(name)) => (false, name),
                _ => return Err(format!("'{word}' must begin with - (off) or + (on); {}", known())),
            };
            let bits = match (name, bit(name)) {
                ("all", _) => u64::MAX,
                (_, Some(bit)) => bit,
                _ => return Err(format!("there is no pass '{name}'; {}", known())),
            };
            choice.off = if off { choice.off | bits } else { choice.off & !bits };
        }
        Ok(choice)
    }

    /// Whether a pass runs.
    pub fn runs(self, name: &str) -> bool {
        bit(name).is_some_and(|bit| self.off & bit == 0)
    }
}

fn bit(name: &str) -> Option<u64> {
    names().position(|n| n == name).map(|at| 1 << at)
}

fn known() -> String {
    format!("known: {}, all", names().collect::<Vec<_>>().join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passes_run_unless_they_are_switched_off() {
        let choice = PassChoice::parse("-fuse_conv, -assign_layouts").expect("both are known");
        assert!(!choice.runs("fuse_conv") && !choice.runs("assign_layouts") && choice.runs("merge_equal"));
        assert_eq!(PassChoice::parse(""), Ok(PassChoice::default()));
        let one = PassChoice::parse("-all,+merge_equal").expect("both are known");
        assert_eq!(names().filter(|n| one.runs(n)).collect::<Vec<_>>(), ["merge_equal"]);
    }

    #[test]
    fn an_unknown_pass_is_an_error_that_lists_the_known_ones() {
        let error = PassChoice::parse("-fuse_everything").expect_err("there is no such pass");
        assert!(error.contains("'fuse_everything'") && names().all(|n| error.contains(n)), "{error}");
        assert!(PassChoice::parse("drop_dead").is_err_and(|e| e.contains("must begin with -")));
    }
}
