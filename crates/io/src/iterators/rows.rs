//! Rows of numbers in text files. Lines are read in order, by one worker at a time, and blocks of
//! them become numbers side by side.

use super::batch::SampleError;
use super::lines::{Files, LinePosition, LineReader};
use super::prefetch::{Prefetcher, Problem, Producer};
use crate::DataError;
use mxrt_engine::Engine;
use mxrt_engine::memory::Block as Memory;
use std::sync::Arc;

/// Bytes of text in a block, unless one line has more: about a millisecond of work.
const TEXT: usize = 1 << 19;
/// Bytes of rows in a block, unless one row has more.
const ROWS: usize = 1 << 20;
/// Lines in a block.
const LINES: usize = 1 << 14;
/// Workers at most: they are faster than batches are made.
const WORKERS: usize = 4;

/// Lines that were read together.
struct LineBlock {
    text: Vec<u8>,
    /// Ends of the lines in the text.
    ends: Vec<usize>,
    places: Vec<LinePosition>,
    files: Arc<Files>,
}

/// Reads blocks.
struct Blocks {
    engine: &'static Engine,
    lines: LineReader,
    /// Lines in a block.
    most: usize,
    /// The failure after the last block.
    failure: Option<DataError>,
}

impl Blocks {
    fn read(&mut self) -> Result<Option<LineBlock>, DataError> {
        if let Some(failure) = self.failure.take() {
            return Err(failure);
        }
        let files = self.lines.files().clone();
        let mut block = LineBlock { text: Vec::new(), ends: Vec::new(), places: Vec::new(), files };
        while block.text.len() < TEXT && block.ends.len() < self.most {
            match self.lines.next() {
                Ok(true) => {
                    let line = self.lines.text();
                    let place = self.lines.place();
                    let room = block.text.try_reserve(line.len()).is_ok();
                    if !room || block.ends.try_reserve(1).is_err() || block.places.try_reserve(1).is_err() {
                        return Err(no_memory(&block.files, place));
                    }
                    block.text.extend_from_slice(line);
                    block.ends.push(block.text.len());
                    block.places.push(place);
                }
                Ok(false) => break,
                Err(error) if block.ends.is_empty() => return Err(error),
                Err(error) => {
                    self.failure = Some(error);
                    break;
                }
            }
        }
        Ok((!block.ends.is_empty()).then_some(block))
    }
}

impl Producer for Blocks {
    type Item = LineBlock;
    type Error = DataError;

    fn next(&mut self) -> Result<Option<LineBlock>, DataError> {
        self.engine.compute(|| self.read())
    }

    fn reset(&mut self, _delivered: u64) -> Result<(), DataError> {
        self.failure = None;
        self.lines.rewind();
        Ok(())
    }

    fn failure(problem: Problem) -> DataError {
        DataError::Prefetch(problem)
    }
}

fn no_memory(files: &Files, place: LinePosition) -> DataError {
    DataError::Memory(format!("{}: there is no memory for it", files.say(place)))
}

/// The rows of a block, and the other values of each line.
struct Parsed<T> {
    rows: Memory,
    found: Vec<Result<T, DataError>>,
    places: Vec<LinePosition>,
    files: Arc<Files>,
}

fn parsed<T>(
    engine: &'static Engine,
    block: LineBlock,
    row: usize,
    parse: impl Fn(&[u8], &mut [u8]) -> Result<T, String>,
) -> Result<Parsed<T>, DataError> {
    let LineBlock { text, ends, places, files } = block;
    let bytes = row.saturating_mul(ends.len());
    let mut rows = engine
        .memory()
        .alloc(bytes)
        .map_err(|refusal| DataError::Memory(format!("{}: no memory for the row: {refusal}", files.say(places[0]))))?;
    let mut found = Vec::new();
    if found.try_reserve_exact(ends.len()).is_err() {
        return Err(no_memory(&files, places[0]));
    }
    let mut begin = 0;
    for (number, (end, place)) in ends.into_iter().zip(&places).enumerate() {
        let result = parse(&text[begin..end], &mut rows.as_mut_slice()[number * row..][..row]);
        found.push(result.map_err(|problem| DataError::Content { place: files.say(*place), problem }));
        begin = end;
    }
    Ok(Parsed { rows, found, places, files })
}

type ParseStage<T> = Prefetcher<Blocks, Parsed<T>>;

/// Gives rows one after the other.
pub(super) struct RowReader<T> {
    start: Box<dyn Fn() -> Result<ParseStage<T>, DataError> + Send>,
    /// The workers, from the first row on.
    stage: Option<ParseStage<T>>,
    block: Option<Parsed<T>>,
    /// How many rows of the block were given.
    given: usize,
    row: usize,
}

impl<T: Clone + Send + 'static> RowReader<T> {
    /// Rows of `row` bytes. `parse` writes a line's numbers into one, and gives what else it has or
    /// what is wrong with it.
    pub(super) fn new(
        engine: &'static Engine,
        row: usize,
        open: impl Fn() -> Result<LineReader, DataError> + Clone + Send + Sync + 'static,
        parse: impl Fn(&[u8], &mut [u8]) -> Result<T, String> + Clone + Send + Sync + 'static,
    ) -> Result<RowReader<T>, DataError> {
        // Files that cannot be read are reported now.
        open()?;
        let most = (ROWS / row.max(1)).clamp(1, LINES);
        // Of rows that are large few are in memory.
        let workers = if row > ROWS { 1 } else { engine.cores().min(WORKERS) };
        let start = move || {
            let (open, parse) = (open.clone(), parse.clone());
            let make = move || Ok(Blocks { engine, lines: open()?, most, failure: None });
            let work = move |block: LineBlock| engine.compute(|| parsed(engine, block, row, &parse));
            Prefetcher::with_workers(workers, if row > ROWS { 1 } else { 2 * workers }, make, work)
        };
        Ok(RowReader { start: Box::new(start), stage: None, block: None, given: 0, row })
    }

    /// Writes the next row into `to`, and gives what else its line has; `None` at the end.
    pub(super) fn next(&mut self, to: &mut [u8]) -> Result<Option<T>, SampleError> {
        loop {
            if let Some(block) = &self.block
                && let Some(found) = block.found.get(self.given)
            {
                to.copy_from_slice(&block.rows.as_slice()[self.given * self.row..][..self.row]);
                self.given += 1;
                return found.clone().map(Some).map_err(SampleError::Sample);
            }
            let stage = match &mut self.stage {
                Some(stage) => stage,
                none => none.insert((self.start)()?),
            };
            let Some(block) = stage.next()? else { return Ok(None) };
            (self.block, self.given) = (Some(block), 0);
        }
    }

    /// The position of the row returned last, for messages.
    pub(super) fn place(&self) -> String {
        match &self.block {
            Some(block) => block.files.say(block.places[self.given.saturating_sub(1)]),
            None => "before the first line".to_owned(),
        }
    }

    /// Goes back to the first row.
    pub(super) fn rewind(&mut self) -> Result<(), DataError> {
        (self.block, self.given) = (None, 0);
        self.stage.as_ref().map_or(Ok(()), Prefetcher::reset)
    }
}
