//! Operator calls and symbol files made by structure end in an answer or an error.
//!
//! A few thousand; `MXRT_STRUCTURED_INPUTS=30000` sets another number, and
//! `MXRT_STRUCTURED_INPUTS_SEED` where to begin. A failure prints the seed of its case.

use crate::structured::{Choices, calls, graphs};
use std::collections::HashMap;

/// Splitmix: every seed gives another case.
fn seeded(mut state: u64) -> impl FnMut(usize) -> usize {
    move |bound| {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((mixed ^ (mixed >> 31)) % bound as u64) as usize
    }
}

fn number(variable: &str, usual: u64) -> u64 {
    std::env::var(variable).map_or(usual, |text| text.parse().expect("a number"))
}

fn seeds(usual: u64) -> std::ops::Range<u64> {
    let first = number("MXRT_STRUCTURED_INPUTS_SEED", 0);
    first..first + number("MXRT_STRUCTURED_INPUTS", usual)
}

/// Says which case was the last one, where a panic ends the test.
struct Case(u64, String);

impl Drop for Case {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("MXRT_STRUCTURED_INPUTS=1 MXRT_STRUCTURED_INPUTS_SEED={}: {}", self.0, self.1);
        }
    }
}

#[test]
fn operator_calls_give_results_or_errors() {
    let operators = calls::operators();
    let mut computed: HashMap<&str, (usize, usize)> = HashMap::new();
    for seed in seeds(4000) {
        let op = operators[seed as usize % operators.len()];
        let _case = Case(seed, op.name.to_owned());
        let outcome = calls::call(&mut Choices(&mut seeded(seed)), op);
        let tally = computed.entry(op.name).or_default();
        tally.0 += 1;
        tally.1 += usize::from(outcome == calls::Outcome::Computed);
    }
    let (all, good) = computed.values().fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1));
    let never: Vec<&str> = computed.iter().filter(|(_, t)| t.0 >= 8 && t.1 == 0).map(|(name, _)| *name).collect();
    println!("{all} calls of {} operators, {good} computed something; never: {never:?}", computed.len());
    assert!(all < 1000 || 2 * good >= all, "{good} of {all} computed something; never: {never:?}");
}

#[test]
fn symbol_files_give_results_or_errors() {
    let mut outcomes = [0; 3];
    for seed in seeds(2000) {
        let mut decide = seeded(seed);
        let choices = &mut Choices(&mut decide);
        let text = graphs::text(choices);
        let _case = Case(seed, text.clone());
        outcomes[graphs::use_text(choices, &text) as usize] += 1;
    }
    let [refused, loaded, computed] = outcomes;
    println!("{} files: {refused} refused, {loaded} loaded, {computed} computed", refused + loaded + computed);
    let all = refused + loaded + computed;
    assert!(all < 1000 || (computed >= all / 4 && refused >= all / 20), "{outcomes:?}");
}

#[test]
fn choices_that_are_all_alike_come_to_an_end() {
    for choice in [0, usize::MAX] {
        let mut decide = |bound: usize| choice.min(bound - 1);
        let choices = &mut Choices(&mut decide);
        let text = graphs::text(choices);
        graphs::use_text(choices, &text);
    }
}
