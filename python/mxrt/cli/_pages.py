"""The pages of errors: one for each kind."""

from __future__ import annotations

from typing import Any, NamedTuple

from .._output.codes import CODES

__all__ = ["PAGES", "Page", "find_page"]


class Page(NamedTuple):
    """The meaning of an error, by an example, and what to do."""

    kind: str
    name: str
    summary: str
    example: str
    cause: str
    remedies: tuple[str, ...]

    @property
    def code(self) -> str:
        """The code that texts of such errors end with."""
        return CODES[self.kind]

    @property
    def names(self) -> tuple[str, ...]:
        """Names by which the page is found."""
        return (self.code, self.name, *(kind for kind, code in CODES.items() if code == self.code))

    def as_dict(self) -> dict[str, Any]:
        """The page as data."""
        return {"code": self.code, **self._asdict()}


PAGES = (
    Page(
        "shape",
        "MXNetShapeError",
        "Shapes of arrays do not fit together. It is a ValueError.",
        "net(mx.nd.zeros((2, 3, 8, 8)))\n"
        "input 'data': got (2, 3, 8, 8), wanted (2, 1, 8, 8): axis 1 must be 1, not 3. Convolution ...",
        "An input has another number of axes, channels or columns than the parameters of the first layer that reads "
        "it. The error names the input, what it got and what is wanted, then the layer; the attributes input, got and "
        "wanted of the error say the same to a program.",
        (
            "Look at the inputs of the model: mxrt inspect MODEL.",
            "A missing batch: an image of (3, 224, 224) is x.expand_dims(0).",
            "Channels last, as OpenCV and PIL have them: x.transpose((0, 3, 1, 2)).",
            "Parameters of another model: mxrt inspect MODEL --params lists their shapes.",
        ),
    ),
    Page(
        "data",
        "MXNetDataError",
        "A file, or what is in it, cannot be used. It is a ValueError.",
        "mx.nd.load('model-0000.params')\n'model-0000.params': It is a pointer of Git LFS, which stands for the file",
        "A file is truncated, is of another kind than its name says, or is damaged. The message has the file and the "
        "place in it.",
        (
            "Copy or download the file again and compare its size with the original.",
            "git lfs pull, where the file is a pointer of Git LFS.",
            "mxrt check MODEL says what else is wrong.",
        ),
    ),
    Page(
        "file_not_found",
        "MXNetFileNotFoundError",
        "A file, or the folder it is in, is not there. It is a FileNotFoundError, and so an OSError.",
        "mx.sym.load('model-symbol.json')",
        "The name is wrong, or the program runs in another folder than you expect.",
        (
            "os.getcwd() says in which folder the program runs; give a whole path.",
            "A model is two files: PREFIX-symbol.json and PREFIX-NNNN.params.",
        ),
    ),
    Page(
        "value",
        "MXNetValueError",
        "An argument or attribute has a value that is not allowed. It is a ValueError.",
        "mx.nd.Pooling(x, kernel=(0, 0))",
        "A value is out of range, or parameters lack, are too many, or have the wrong names.",
        (
            "The message says what is expected.",
            "For a model that misses parameters: mxrt inspect MODEL; --params names another file.",
        ),
    ),
    Page(
        "type",
        "MXNetTypeError",
        "Element types do not fit, or an argument is of the wrong type. It is a TypeError.",
        "net(mx.nd.zeros((1, 64), dtype='float64'))\ninput 'data': got float64, wanted float32",
        "Parameters are float32 (or float16), and the input is an array of mxrt of another type. Arrays of numpy "
        "are converted automatically.",
        ("x.astype('float32') converts.", "net.cast('float16') changes the parameters."),
    ),
    Page(
        "index",
        "MXNetIndexError",
        "An index is out of range. It is an IndexError.",
        "mx.nd.take(table, rows, mode='raise').asnumpy()\n"
        "take: index 7 is out of range for axis 0 with size 3: expected 0 <= index < 3",
        "The index is not smaller than the extent of its axis.",
        (
            "Compare the numbers of the input with the rows of the table.",
            "take with mode='clip' (the default) or 'wrap' accepts every index; Embedding clips.",
            "x[9] outside of an array is an IndexError of Python, without a code.",
        ),
    ),
    Page(
        "key",
        "MXNetKeyError",
        "A name is not known. It is a KeyError.",
        "reader.read_idx(9)\n'images.idx' has no record with the key 9",
        "A key or name is not there, or is spelled otherwise.",
        (
            "reader.keys lists the keys of an index of records.",
            "net.collect_params()['conv0_wieght'] is a KeyError of Python, without a code: mxrt inspect MODEL "
            "--params lists the names of parameters, which begin with the name of their block.",
        ),
    ),
    Page(
        "not_implemented",
        "MXNetNotImplementedError",
        "The feature or operator is not in mxrt. It is a NotImplementedError.",
        "mx.sym.load('model-symbol.json')\n"
        "cannot load the symbol: Operator my_operator is not registered (node 'out', 1 node uses it)",
        "The model uses an operator that mxrt does not have. The message names each one with a node that uses it.",
        (
            "mxrt inspect MODEL lists all operators, and which are supported.",
            "Cut the model before such an operator: internals = sym.get_internals(); internals['layer_output'].",
            "An operator written in Python: mx.operator.CustomOp.",
        ),
    ),
    Page(
        "training",
        "TrainingNotSupportedError",
        "The call belongs to training, which mxrt does not do. It is a NotImplementedError.",
        "loss.backward()",
        "mxrt runs trained models.",
        ("Train with MXNet, export, and load the files here.", "Leave autograd.record() and Trainer.step() out."),
    ),
    Page(
        "memory",
        "MXNetMemoryError",
        "There is no memory for an array. It is a MemoryError.",
        "mx.set_memory_limit(100_000_000); net(large)",
        "The machine, its control group, or the limit of mxrt (MXRT_MEMORY_LIMIT_MB) has no more. Others continue.",
        (
            "A smaller batch: mxrt bench MODEL says what a call takes.",
            "Fewer concurrent calls: each has its own arrays.",
            "Raise the limit: mx.set_memory_limit(bytes).",
        ),
    ),
    Page(
        "deadline",
        "MXNetTimeoutError",
        "The deadline of a call passed before it began. It is a TimeoutError.",
        "net(x, deadline=0.01)",
        "All cores were busy with earlier calls.",
        ("A later deadline, or a higher priority=.", "mxrt profile MODEL --callers N shows how long calls wait."),
    ),
    Page(
        "cancelled",
        "MXNetCancelledError",
        "The call was cancelled before it began, so that there is no result.",
        "y = net(x); y.cancel(); y.asnumpy()",
        "The program cancelled it, the coroutine that awaited it was cancelled, or with cancel_on_drop=True its result "
        "was dropped.",
        ("Call again if the result is wanted after all.",),
    ),
    Page(
        "device",
        "MXNetDeviceError",
        "The device is not available, or arrays are on different ones.",
        "mx.nd.zeros((2,), ctx=mx.gpu(0))",
        "There is no such GPU, its driver is missing, or an operator got arrays of the CPU and of a GPU.",
        ("mxrt doctor says which GPUs there are and what is missing.", "x.as_in_context(mx.cpu()) moves an array."),
    ),
    Page(
        "operator",
        "MXNetError",
        "An operator failed. It is a RuntimeError; the other classes of mxrt.base derive from it.",
        "y = op(x); y.asnumpy()",
        "The failure travels with the data: it is raised where a result that depends on it is read. The attributes "
        "op, node, attrs and shapes say which operator it was.",
        ("MXRT_DEBUG=1 adds the line of the program that called the operator, as pushed_at.",),
    ),
    Page(
        "multiple",
        "MultipleErrors",
        "Several operators failed; errors has them one by one.",
        "mx.nd.waitall()",
        "waitall raises all failures that no wait has raised before.",
        ("Look at error.errors; each has its own code.",),
    ),
    Page(
        "shutdown",
        "MXNetShutdownError",
        "The interpreter is ending, and the engine accepts no more work.",
        "a daemon thread that calls net(x) after the main thread has returned",
        "A thread or an exit handler outlives the program.",
        ("Join the threads before the program ends.",),
    ),
    Page(
        "panic",
        "InternalError",
        "A defect of mxrt itself. The process continues; only results that depend on the call fail.",
        "an operator ended in a way that it must not",
        "mxrt made a mistake.",
        ("Report it with the output of mxrt info, the message, and the -symbol.json of the model if you can.",),
    ),
    Page(
        "model",
        "ModelError",
        "A command found that the model or the data are wrong. The status is 1.",
        "mxrt inspect net.zip\nmxrt inspect: 'net.zip' is a damaged archive: ...; copy or download it again",
        "A file is damaged, of another kind, or does not fit the model. The sentence names it.",
        ("Do what the sentence says.", "--debug shows where in the code the error was raised."),
    ),
    Page(
        "usage",
        "UsageError",
        "A command line names what is not there, or lacks something. The status is 2.",
        "mxrt run digits\nmxrt run: there is no file 'digits-symbol.json' ...",
        "A name is mistyped, an option has a value that is not allowed, or the shell is in another folder.",
        ("mxrt COMMAND --help lists the options, with an example.", "pwd says in which folder the shell is."),
    ),
    Page(
        "request",
        "HTTP 400 to 431",
        "mxrt serve was asked for what it does not have, or in a way that it does not understand.",
        "curl localhost:8000/v2/models/digit/infer -d '{}'\n"
        '{"code":"MX-REQUEST","error":"there is no model \'digit\'..."}',
        "The path, the method, the token, the form of the body, or a name in it is wrong. Shapes and types that do not "
        "fit have the codes MX-SHAPE and MX-TYPE.",
        (
            "Do what the sentence in error says.",
            "GET /v2/models/MODEL lists the inputs with their shapes and types.",
        ),
    ),
    Page(
        "busy",
        "HTTP 409, 429 and 503",
        "mxrt serve has no room for the request now: its queue is full, the model is being loaded, or it ends.",
        "the queue of 'digits' is full: ...",
        "More requests arrive than the machine can answer, or the server is at its start or end.",
        (
            "Send it again after the seconds of Retry-After.",
            "The settings queue_requests and queue_bytes bound the queue; GET /metrics shows how long requests wait.",
        ),
    ),
    Page(
        "hook",
        "HTTP 500 of a hook",
        "A function of the file of hooks, or of inference.py, raised an exception.",
        "a hook of the model failed; the server's log says how",
        "The function failed. Its exception is in the log and not in the answer, as it may name what a client must "
        "not see.",
        (
            "Read the traceback in the log of the server.",
            "A ValueError is answered with status 400 and its text: raise one where the request is wrong.",
        ),
    ),
)


def find_page(word: str) -> Page | None:
    """The page of a code, of a kind, or of a class, in upper or lower case."""
    plain = word.strip().strip("[]").lower().rpartition(".")[2]
    return next((page for page in PAGES if plain in map(str.lower, page.names)), None)
