//! Bearer tokens from a file, one of which each request must have.

use crate::log::Log;
use crate::refusal::{Cause, Refusal};
use crate::regular;
use crate::watched::Watched;
use hyper::HeaderMap;
use hyper::header::AUTHORIZATION;
use std::path::PathBuf;

/// Shortest token, in characters. Shorter ones are guessed too easily.
const SHORTEST: usize = 16;

/// Tokens of a file, one a line. Empty lines and lines that begin with `#` are ignored.
pub(crate) struct Tokens(Watched<Vec<String>>);

impl Tokens {
    pub(crate) fn new(file: PathBuf, log: &Log) -> Result<Tokens, String> {
        Watched::new(vec![file], read, log).map(Tokens)
    }

    /// Refuses a request without a known token.
    pub(crate) fn check(&self, headers: &HeaderMap) -> Result<(), Refusal> {
        let given = headers.get(AUTHORIZATION).and_then(|value| value.to_str().ok());
        let given = given.and_then(|value| {
            let (scheme, token) = value.split_once(' ')?;
            scheme.eq_ignore_ascii_case("bearer").then_some(token.trim())
        });
        let tokens = self.0.get();
        // All tokens are compared, so that the time does not tell which one was nearly right.
        let known = given.is_some_and(|given| tokens.iter().fold(false, |known, token| known | same(token, given)));
        if known {
            return Ok(());
        }
        let message = "this server wants a token: the header 'Authorization: Bearer TOKEN'";
        Err(Refusal::new(Cause::Unauthenticated, message))
    }
}

fn same(token: &str, given: &str) -> bool {
    let differences = token.bytes().zip(given.bytes()).fold(0, |all, (a, b)| all | (a ^ b));
    token.len() == given.len() && std::hint::black_box(differences) == 0
}

fn read(files: &[PathBuf]) -> Result<Vec<String>, String> {
    let file = files[0].display();
    let text =
        regular::read_text(&files[0], regular::USUAL).map_err(|error| format!("the file of tokens {file}: {error}"))?;
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
    let tokens: Vec<String> = lines.map(str::to_owned).collect();
    if tokens.is_empty() {
        return Err(format!("the file of tokens {file} has none; expected one a line"));
    }
    match tokens.iter().find(|token| token.len() < SHORTEST || !token.bytes().all(|b| b.is_ascii_graphic())) {
        // The token itself is not shown, as the text may end in a log.
        Some(_) => Err(format!(
            "the file of tokens {file} has one that is shorter than {SHORTEST} characters, or has others than letters, digits and signs"
        )),
        None => Ok(tokens),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::log::LogForm;

    #[test]
    fn only_tokens_of_the_file_are_let_in() {
        let file = std::env::temp_dir().join(format!("mxrt-tokens-{}", std::process::id()));
        std::fs::write(&file, "# of tests\n\n0123456789abcdef\n fedcba9876543210 \n").expect("a file");
        let log = Log::new(LogForm::Text, false).expect("a thread");
        let tokens = Tokens::new(file.clone(), &log).expect("tokens");
        let check = |value: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(AUTHORIZATION, value.parse().expect("a header"));
            tokens.check(&headers).is_ok()
        };
        assert!(check("Bearer 0123456789abcdef") && check("bearer  fedcba9876543210"));
        for wrong in
            ["Bearer 0123456789abcde", "Bearer 0123456789abcdefg", "Bearer ", "Basic 0123456789abcdef", "# of tests"]
        {
            assert!(!check(wrong), "{wrong}");
        }
        assert!(tokens.check(&HeaderMap::new()).is_err_and(|refusal| refusal.cause == Cause::Unauthenticated));
        for content in ["", "# nothing\n", "short\n", "0123456789 abcdef\n"] {
            std::fs::write(&file, content).expect("a file");
            assert!(Tokens::new(file.clone(), &log).is_err(), "{content:?}");
        }
        std::fs::remove_file(&file).expect("a file");
        assert!(Tokens::new(file, &log).is_err_and(|error| !error.is_empty()));
    }
}
