//! Arguments and outcomes of a turn: of a request, and of one of its stages.

use super::inputs::{ExecutableInputs, HeldValue, StageInputs};
use crate::plan::RunSite;
use mxrt_engine::{Engine, Resume};
use mxrt_ops::RandomKey;
use std::collections::HashSet;

/// A function that begins what a suspended request waits for, and returns at once.
pub(in crate::run) type Begin = Box<dyn FnOnce(Resume) + Send>;

/// Arguments of an executable: the request.
#[derive(Clone, Copy)]
pub(in crate::run) struct ExecutableRequest<'a> {
    pub engine: &'static Engine,
    /// op of the host that runs the stages
    pub site: &'a dyn RunSite,
    pub inputs: &'a dyn ExecutableInputs,
    /// piece of the random stream, if the graph draws
    pub random: Option<RandomKey>,
}

/// Outcome of a turn of a stage; `O` is a stage that has begun and not ended.
pub(super) enum StageEnd<O> {
    /// There is more to do; others may go first.
    Again(O),
    /// The stage waits for something outside of the engine.
    Suspended(O, Begin),
    Done(Vec<HeldValue>),
}

impl<O> StageEnd<O> {
    /// The outcome of a stage that is one of several kinds.
    pub fn map<P>(self, open: impl FnOnce(O) -> P) -> StageEnd<P> {
        match self {
            StageEnd::Again(stage) => StageEnd::Again(open(stage)),
            StageEnd::Suspended(stage, begin) => StageEnd::Suspended(open(stage), begin),
            StageEnd::Done(made) => StageEnd::Done(made),
        }
    }
}

/// Outcome of a turn of a request.
pub(in crate::run) enum TurnEnd {
    /// There is more to do; others may go first.
    Again,
    /// The request waits for something outside of the engine, which this function begins.
    Suspended(Begin),
    /// All results, or their failures, have been made.
    Done(Vec<HeldValue>),
}

/// Arguments of a stage.
pub(super) struct StageCall<'a> {
    pub request: &'a ExecutableRequest<'a>,
    /// inputs of the whole graph that one stage alone reads
    pub read_once: &'a HashSet<usize>,
    /// number of the stage
    pub number: usize,
    pub inputs: &'a StageInputs<'a>,
}

impl StageCall<'_> {
    /// A piece of the random stream that belongs to the stage.
    pub fn key(&self, draw: u64) -> Option<RandomKey> {
        self.request.random.map(|key| key.inner((self.number as u64) << 32 | draw))
    }
}
