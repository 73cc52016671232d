//! Graphs: lists of work, which run as one piece. Each node has to wait for the one before it. And
//! captures of other libraries, which forbid calls.

use crate::capture;
use crate::kernels::{Arguments, HostKernel};
use crate::state::{Code, Here, INVALID_VALUE};
use std::cell::Cell;
use std::ffi::c_uint;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

pub(crate) const UNSUPPORTED: Code = 900;
/// The mode in which captures of others forbid a thread nothing.
const RELAXED: c_uint = 2;

/// Launches of graphs so far.
pub(crate) static LAUNCHES: AtomicUsize = AtomicUsize::new(0);

/// Whether another library captures in the mode that forbids other threads what might wait, and how
/// many calls did so.
static FOREIGN: AtomicBool = AtomicBool::new(false);
static FORBIDDEN: AtomicUsize = AtomicUsize::new(0);

thread_local!(static MODE: Cell<c_uint> = const { Cell::new(0) });

/// `cuThreadExchangeStreamCaptureMode`: what captures of others mean for this thread.
pub(crate) fn exchange_mode(mode: c_uint) -> Result<c_uint, Code> {
    if mode > RELAXED { Err(INVALID_VALUE) } else { Ok(MODE.replace(mode)) }
}

/// Begins or ends a capture of another library; how many forbidden calls there were.
pub(crate) fn foreign_capture(begins: bool) -> usize {
    forbid(begins);
    FORBIDDEN.swap(0, Ordering::SeqCst)
}

/// Captures of others begin or end to forbid threads what might wait.
pub(crate) fn forbid(begins: bool) {
    FOREIGN.store(begins, Ordering::SeqCst);
}

/// A call that might wait.
pub(crate) fn might_wait() -> Result<(), Code> {
    if !FOREIGN.load(Ordering::SeqCst) || MODE.get() == RELAXED {
        return Ok(());
    }
    FORBIDDEN.fetch_add(1, Ordering::SeqCst);
    capture::spoil();
    Err(UNSUPPORTED)
}

/// A piece of work that can be done again.
pub(crate) enum Node {
    Kernel {
        kernel: &'static HostKernel,
        grid: [c_uint; 3],
        block: [c_uint; 3],
        shared: usize,
        arguments: Arguments,
    },
    Copy {
        to: u64,
        from: u64,
        bytes: usize,
    },
    Clear {
        at: u64,
        bytes: usize,
    },
    /// Work of a library.
    Library(Arc<dyn Fn() + Send + Sync>),
    /// Another graph.
    Graph(Arc<Vec<Node>>),
}

/// `CUgraph` and `CUgraphExec`.
pub(crate) struct Graph {
    nodes: Arc<Vec<Node>>,
    device: usize,
    uses: Arc<Uses>,
}

#[derive(Default)]
struct Uses {
    launched: AtomicUsize,
    running: AtomicBool,
}

impl Graph {
    pub fn new(device: usize) -> Graph {
        Graph { nodes: Arc::default(), device, uses: Arc::default() }
    }

    /// Adds a node that waits for `behind`: the number of the last one, if there is one.
    pub fn add(&mut self, behind: &[usize], node: Node) -> Result<usize, Code> {
        let last = self.nodes.len();
        match behind {
            [] if last == 0 => {}
            [number] if *number == last && last > 0 => {}
            _ => return Err(INVALID_VALUE),
        }
        self.push(node)?;
        Ok(last + 1)
    }

    /// Adds a node after the last one.
    pub fn push(&mut self, node: Node) -> Result<(), Code> {
        Arc::get_mut(&mut self.nodes).ok_or(INVALID_VALUE)?.push(node);
        Ok(())
    }

    /// The graph as a node of another one.
    pub fn as_node(&self) -> Node {
        Node::Graph(self.nodes.clone())
    }

    /// `cuGraphInstantiateWithFlags`.
    pub fn instance(&self) -> Graph {
        Graph { nodes: self.nodes.clone(), device: self.device, uses: Arc::default() }
    }

    pub fn launch(&self, here: &Here, stream: usize) -> Result<(), Code> {
        if self.device != here.index {
            return Err(INVALID_VALUE);
        }
        let (nodes, uses) = (self.nodes.clone(), self.uses.clone());
        self.uses.launched.fetch_add(1, Ordering::SeqCst);
        let launched = here.launch(stream, "graph", move || {
            if uses.running.swap(true, Ordering::SeqCst) {
                wrong("two launches of a graph, which share its memory, run concurrently");
            }
            nodes.iter().for_each(Node::run);
            uses.running.store(false, Ordering::SeqCst);
            uses.launched.fetch_sub(1, Ordering::SeqCst);
        });
        match launched {
            Ok(()) => LAUNCHES.fetch_add(1, Ordering::Relaxed),
            Err(_) => self.uses.launched.fetch_sub(1, Ordering::SeqCst),
        };
        launched
    }

    /// `cuGraphExecDestroy`.
    pub fn check_unused(&self) {
        if self.uses.launched.load(Ordering::SeqCst) > 0 {
            wrong("a graph is destroyed before its launch has run");
        }
    }
}

fn wrong(what: &str) -> ! {
    eprintln!("the stand-in of the CUDA driver: {what}");
    std::process::abort();
}

impl Node {
    fn run(&self) {
        match self {
            Node::Kernel { kernel, grid, block, shared, arguments } => {
                kernel.run(*grid, *block, *shared, arguments.clone());
            }
            // SAFETY: the caller's promise to the driver; memory of these devices is the host's.
            Node::Copy { to, from, bytes } => unsafe {
                std::ptr::copy(place(*from).cast_const(), place(*to), *bytes);
            },
            // SAFETY: as above.
            Node::Clear { at, bytes } => unsafe { place(*at).write_bytes(0, *bytes) },
            Node::Library(work) => work(),
            Node::Graph(nodes) => nodes.iter().for_each(Node::run),
        }
    }
}

fn place(at: u64) -> *mut u8 {
    std::ptr::with_exposed_provenance_mut(at as usize)
}
