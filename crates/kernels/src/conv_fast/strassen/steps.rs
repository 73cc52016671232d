//! The seven products, in the order of their panels of weights, and what becomes of them.

use super::PANELS;

/// Kept sums, in the order in which they lie in scratch.
#[derive(Clone, Copy)]
pub(super) enum Kept {
    /// `a`, then `b`, then `c`.
    Running,
    /// `d`.
    Aside,
    /// `b + d`.
    Both,
}

/// What a step multiplies.
#[derive(Clone, Copy)]
pub(super) enum Input {
    /// A half of the channels at the pixels themselves.
    Own(usize),
    /// The same at their partners.
    Partner(usize),
    /// A sum of quarters.
    Sum(usize),
}

/// Where a step puts sums out.
#[derive(Clone, Copy)]
pub(super) enum Output {
    /// A half of the channels at the pixels themselves.
    Own(usize),
    /// The same at their partners.
    Partner(usize),
    Kept(Kept),
}

/// One product: `sums = from + panel * input`, kept as they are; `output = sums + add`.
#[derive(Clone, Copy)]
pub(super) struct Step {
    pub panel: usize,
    pub input: Input,
    pub from: Option<Kept>,
    pub keep: Option<Kept>,
    pub add: Option<Kept>,
    pub output: Option<Output>,
}

/// The product of a panel, of which nothing becomes.
const fn step(panel: usize, input: Input) -> Step {
    Step { panel, input, from: None, keep: None, add: None, output: None }
}

const FIRST: Step = Step { keep: Some(Kept::Running), ..step(0, Input::Own(0)) };
const OWN_FIRST: Step = Step { from: Some(Kept::Running), output: Some(Output::Own(0)), ..step(1, Input::Own(1)) };
const SECOND: Step = Step { from: Some(Kept::Running), keep: Some(Kept::Running), ..step(2, Input::Sum(1)) };
const THIRD: Step = Step { from: Some(Kept::Running), keep: Some(Kept::Running), ..step(5, Input::Sum(2)) };
const OWN_LAST: Step = Step { from: Some(Kept::Running), output: Some(Output::Own(1)), ..step(6, Input::Sum(3)) };

/// For rows with partners.
pub(super) const PAIRED: [Step; PANELS] = [
    FIRST,
    OWN_FIRST,
    SECOND,
    Step {
        keep: Some(Kept::Aside),
        add: Some(Kept::Running),
        output: Some(Output::Kept(Kept::Both)),
        ..step(3, Input::Sum(0))
    },
    Step { from: Some(Kept::Both), output: Some(Output::Partner(0)), ..step(4, Input::Partner(1)) },
    Step { add: Some(Kept::Aside), output: Some(Output::Partner(1)), ..THIRD },
    OWN_LAST,
];
/// For rows without; their windows may reach rows with partners.
pub(super) const LONE: [Step; 5] = [FIRST, OWN_FIRST, SECOND, THIRD, OWN_LAST];
