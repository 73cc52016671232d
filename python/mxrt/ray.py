"""Models on Ray: ``predict`` over datasets, ``deployment`` for Ray Serve.

Ray is no part of mxrt: ``pip install 'mxrt[ray]'``.

Ray starts processes with ``OMP_NUM_THREADS=1`` unless they ask for more cores, which mxrt obeys. So
both ask for the cores of a node and say how many there are: one copy of the model in a node, which
computes on all of its cores.
"""

from __future__ import annotations

import asyncio
import json
import os
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from ._system import temporary
from .base import MXNetError, MXNetNotImplementedError, MXNetValueError

__all__ = ["Replica", "call", "deployment", "predict", "read_records"]

#: Failures of Ray after which a request may be sent again; others are the request's own.
_TRANSPORT = ("ActorDiedError", "ActorUnavailableError", "NodeDiedError", "WorkerCrashedError")


def _ray(part: str = "") -> Any:
    import importlib

    try:
        return importlib.import_module("ray" + part)
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] != "ray":
            raise
        raise MXNetNotImplementedError("mxrt.ray needs Ray: pip install 'mxrt[ray]'") from None


def _nodes() -> list[int]:
    """Cores of the living nodes that have any."""
    ray = _ray()
    if not ray.is_initialized():
        ray.init()
    cores = [int(node["Resources"].get("CPU", 0)) for node in ray.nodes() if node["Alive"]]
    cores = [count for count in cores if count > 0]
    if not cores:
        raise MXNetError("no living node of the Ray cluster has a core")
    return cores


def _placed(cores: int) -> dict[str, Any]:
    """The resources of a copy of the model: the cores, which mxrt uses."""
    return {
        "num_cpus": cores,
        "runtime_env": {"env_vars": {"MXRT_CORES": str(cores), "OMP_NUM_THREADS": str(cores)}},
    }


def _in_store(model: str | os.PathLike[str], params: str | os.PathLike[str] | None) -> tuple[str, Any]:
    """The symbol file, and the parameters in Ray's object store, for all copies."""
    import numpy as np

    from .cli._errors import CommandError
    from .cli._model import find

    try:
        found = find(os.fspath(model), None if params is None else os.fspath(params))
        content = np.fromfile(found.params, dtype="uint8") if found.params is not None else np.empty(0, "uint8")
        symbol = found.symbol.read_text()
    except CommandError as error:
        raise MXNetValueError(str(error)) from None
    finally:
        temporary.remove_all()
    return symbol, _ray().put(content)


class Replica:
    """A model in one process, which takes and returns arrays by name.

    Parameters
    ----------
    symbol : text of the symbol file
    params : bytes of the parameter file, a reference to them in Ray's object store, or none of them
    """

    def __init__(self, symbol: str, params: Any) -> None:
        from . import gluon, nd
        from .gluon.parameter_dict import strip_kind
        from .symbol import load_json

        if hasattr(params, "hex") and not isinstance(params, bytes):  # an ObjectRef
            params = _ray().get(params)
        held = nd.load_frombuffer(bytes(params)) if len(params) else {}
        names = {strip_kind(name) for name in held}
        graph = load_json(symbol)
        self.inputs: list[str] = [name for name in graph.list_inputs() if name not in names]
        self.outputs: list[str] = graph.list_outputs()
        if labels := [name for name in graph._labels() if name in self.inputs]:
            raise MXNetError(f"the graph asks for {', '.join(labels)}: save it without its loss")
        with temporary.folder() as folder:
            graph.save(f"{folder}/model-symbol.json")
            file = None
            if held:
                file = f"{folder}/model-0000.params"
                Path(file).write_bytes(bytes(params))
            self._block = gluon.SymbolBlock.imports(f"{folder}/model-symbol.json", self.inputs, file)
        self._call: Callable[..., Any] = self._block

    def __call__(self, arrays: Mapping[str, Any], timeout: float | None = None) -> dict[str, Any]:
        """Outputs by name: numpy arrays.

        Parameters
        ----------
        arrays : the inputs by name
        timeout : seconds; a call that has not started by then does not run

        Raises
        ------
        MXNetError : a name, type or shape is wrong, the model failed, or the time is over
        """
        import numpy as np

        from . import nd

        if set(arrays) != set(self.inputs):
            raise MXNetValueError(f"got the inputs {', '.join(arrays)}; wanted {', '.join(self.inputs)}")
        given = [np.ascontiguousarray(arrays[name]) for name in self.inputs]
        more = {} if timeout is None else {"deadline": timeout}
        made = self._call(*[nd.array(array, dtype=array.dtype) for array in given], **more)
        results = made if isinstance(made, (list, tuple)) else [made]
        return {name: result.asnumpy() for name, result in zip(self.outputs, results, strict=True)}


# ---- datasets ----------------------------------------------------------------------------------

#: The column of what is wrong with a row, until rows with an error are put aside.
_ERROR = "mxrt_error"


class _Mapper:
    """The function that Ray Data runs: a replica over batches of rows."""

    def __init__(
        self,
        symbol: str,
        params: Any,
        columns: dict[str, str],
        preprocess: Callable[[dict[str, Any]], dict[str, Any]] | None,
        errors: bool,
    ) -> None:
        self._replica = Replica(symbol, params)
        self._columns = {name: columns.get(name, name) for name in self._replica.inputs}
        self._preprocess = preprocess
        self._errors = errors
        self._like: dict[str, Any] = {}

    def __call__(self, batch: dict[str, Any]) -> dict[str, Any]:
        import numpy as np

        rows = len(next(iter(batch.values())))
        try:
            made = self._answers(batch)
            errors = [""] * rows
        except Exception as error:
            if not self._errors:
                raise
            # One bad row fails its batch: each row alone.
            made, errors = self._row_by_row(batch, rows, error)
        given = {name: column for name, column in batch.items() if name not in self._inputs(batch)}
        added = {_ERROR: np.array(errors, object)} if self._errors else {}
        return {**given, **made, **added}

    def _inputs(self, batch: dict[str, Any]) -> set[str]:
        """Columns that are not part of the result, since rows of them may differ in shape."""
        return {name for name in batch if self._errors and name in self._columns.values()}

    def _answers(self, batch: dict[str, Any]) -> dict[str, Any]:
        if self._preprocess is not None:
            batch = self._preprocess(batch)
        lacking = [column for column in self._columns.values() if column not in batch]
        if lacking:
            raise MXNetValueError(f"the dataset has no column {', '.join(lacking)}; it has {', '.join(batch)}")
        made = self._replica({name: _stacked(batch[column]) for name, column in self._columns.items()})
        self._like = self._like or {name: value[:1] * 0 for name, value in made.items()}
        return made

    def _row_by_row(self, batch: dict[str, Any], rows: int, error: Exception) -> tuple[dict[str, Any], list[str]]:
        import numpy as np

        found: list[dict[str, Any] | None] = []
        errors = []
        for row in range(rows):
            try:
                found.append(self._answers({name: column[row : row + 1] for name, column in batch.items()}))
                errors.append("")
            except Exception as problem:
                found.append(None)
                errors.append(f"{type(problem).__name__}: {problem}")
        if not self._like:  # no shape of an answer is known
            raise MXNetError(f"no row of the first {rows} could be computed: {error}") from error
        answers = [self._like if one is None else one for one in found]
        return {name: np.concatenate([one[name] for one in answers]) for name in self._replica.outputs}, errors


def _stacked(column: Any) -> Any:
    """A column as one array; rows of one shape may come as objects."""
    import numpy as np

    return np.stack(list(column)) if column.dtype == object else column


class _Aside:
    """Writes rows with an error to a file of its own, and lets the others pass."""

    def __init__(self, folder: str) -> None:
        self._file = Path(folder) / f"bad-{uuid.uuid4().hex}.jsonl"

    def __call__(self, table: Any) -> Any:
        good, bad = _divided(table)
        if bad:
            with self._file.open("a") as file:
                file.write(bad)
        return good


def _divided(table: Any) -> tuple[Any, str]:
    """The rows without an error, as an Arrow table, and those with one, as lines of JSON."""
    import importlib

    compute = importlib.import_module("pyarrow.compute")
    is_good = compute.equal(table.column(_ERROR), "")
    outputs_too = table.filter(compute.invert(is_good))
    plain = [name for name in outputs_too.column_names if _is_plain(outputs_too.schema.field(name).type)]
    lines = [json.dumps(row, default=str) + "\n" for row in outputs_too.select(plain).to_pylist()]
    return table.filter(is_good).drop_columns([_ERROR]), "".join(lines)


def _is_plain(kind: Any) -> bool:
    """Whether a value of this Arrow type is written where a row is named: numbers and texts."""
    import importlib

    types = importlib.import_module("pyarrow").types
    return bool(
        types.is_integer(kind) or types.is_floating(kind) or types.is_string(kind) or types.is_large_string(kind)
    )


def predict(
    dataset: Any,
    model: str | os.PathLike[str],
    *,
    params: str | os.PathLike[str] | None = None,
    columns: Mapping[str, str] | None = None,
    preprocess: Callable[[dict[str, Any]], dict[str, Any]] | None = None,
    rows: int = 64,
    cores: int | None = None,
    copies: int | None = None,
    ordered: bool = False,
    bad_rows: str | os.PathLike[str] | None = None,
    to: str | os.PathLike[str] | None = None,
    part_rows: int = 8192,
) -> Any:
    """Adds a column for each output of a model to a dataset of Ray.

    Folders of images come from ``ray.data.read_images``, tables from ``ray.data.read_parquet``, and
    files of records from ``read_records``.

    Parameters
    ----------
    dataset : a ``ray.data.Dataset`` with a column for each input, of arrays of one shape
    model, params : PREFIX, PREFIX-symbol.json or a folder with one of these; the parameter file, if
        it is not the newest next to the symbol file
    columns : columns of inputs, by the names of inputs, where they differ
    preprocess : converts a batch of rows (arrays by column) to one that has the inputs' columns
    rows : rows that the model is called with
    cores : cores of a copy of the model; None: those of the smallest node
    copies : copies of the model; None: one for each node
    ordered : keep the order of rows
    bad_rows : folder for rows that fail, as lines of JSON: their numbers, texts and errors. The
        others continue, without the columns of inputs. None: a row that fails ends the run
    to : folder for parts in parquet, of ``part_rows`` rows of the dataset each, in order. A run
        that was ended continues after the existing parts. None: the dataset is returned, and
        computed when it is read
    part_rows : rows of a part

    Returns
    -------
    The dataset with its new columns; where ``to`` is named, that which reads the parts

    Raises
    ------
    MXNetError : the model cannot be read, or ``to`` has parts of another run
    """
    data = _ray(".data")
    nodes = _nodes()
    cores = cores or min(nodes)
    symbol, stored = _in_store(model, params)
    if ordered or to is not None:
        dataset.context.execution_options.preserve_order = True

    def mapped(of: Any) -> Any:
        return of.map_batches(
            _Mapper,
            fn_constructor_args=(symbol, stored, dict(columns or {}), preprocess, bad_rows is not None),
            batch_size=rows,
            batch_format="numpy",
            compute=data.ActorPoolStrategy(size=copies or len(nodes)),
            **_placed(cores),
        )

    aside = None if bad_rows is None else Path(bad_rows).absolute()
    if aside is not None:
        aside.mkdir(parents=True, exist_ok=True)
    if to is not None:
        _write_parts(dataset, mapped, Path(to), part_rows, {"part_rows": part_rows, "symbol": symbol}, aside)
        return data.read_parquet(str(to), partitioning=None)
    made = mapped(dataset)
    if aside is None:
        return made
    # One process writes, which needs no core for it.
    return made.map_batches(
        _Aside,
        fn_constructor_args=(str(aside),),
        batch_format="pyarrow",
        compute=data.ActorPoolStrategy(size=1),
        num_cpus=0,
    )


def _write_parts(
    dataset: Any, mapped: Callable[[Any], Any], to: Path, part_rows: int, run: dict[str, Any], aside: Path | None
) -> None:
    import importlib

    parquet = importlib.import_module("pyarrow.parquet")
    to.mkdir(parents=True, exist_ok=True)
    about = to / "_run.json"  # a name that readers of parquet pass over
    if about.exists() and json.loads(about.read_text()) != run:
        raise MXNetValueError(f"{to} has parts of another model or part_rows; name another folder")
    about.write_text(json.dumps(run))
    done = len(list(to.glob("part-*.parquet")))
    if done:
        dataset = dataset.split_at_indices([done * part_rows])[1]
    for number, table in enumerate(mapped(dataset).iter_batches(batch_size=part_rows, batch_format="pyarrow"), done):
        part = to / f"part-{number:06d}.parquet"
        if aside is not None:
            table, bad = _divided(table)
            if bad:
                (aside / f"bad-{number:06d}.jsonl").write_text(bad)
        # In one step, so that a part which is there is whole.
        partial = to / f"_part-{number:06d}.partial"
        parquet.write_table(table, partial)
        partial.rename(part)


def read_records(files: Sequence[str | os.PathLike[str]]) -> Any:
    """A dataset of the records of RecordIO files, in their order: ``id`` and ``label`` (numbers; of
    several labels a list) and ``image``, the bytes of the image. Each file is read by one task.
    """
    paths = [{"file": str(Path(file).absolute())} for file in files]
    for path in paths:
        if not Path(path["file"]).is_file():
            raise FileNotFoundError(f"{path['file']}: there is no such file")
    return _ray(".data").from_items(paths, override_num_blocks=max(len(paths), 1)).flat_map(_records_of)


def _records_of(row: dict[str, str]) -> Iterator[dict[str, Any]]:
    from .recordio import MXRecordIO, unpack

    reader = MXRecordIO(row["file"], "r")
    try:
        while (content := reader.read()) is not None:
            header, image = unpack(content)
            yield {"id": header.id, "label": header.label, "image": bytes(image)}
    finally:
        reader.close()


# ---- Ray Serve ---------------------------------------------------------------------------------


class _Served(Replica):
    """The application that Ray Serve runs: a replica whose requests are computed concurrently."""

    def __init__(self, symbol: str, params: Any, batch: int) -> None:
        from .serve import Batcher

        super().__init__(symbol, params)
        if batch:
            self._call = Batcher(self._block, batch)

    async def __call__(  # type: ignore[override]
        self, arrays: Mapping[str, Any], timeout: float | None = None
    ) -> dict[str, Any]:
        return await asyncio.to_thread(super().__call__, arrays, timeout)


def deployment(
    model: str | os.PathLike[str],
    *,
    params: str | os.PathLike[str] | None = None,
    name: str = "mxrt",
    cores: int | None = None,
    copies: int | None = None,
    batch: int = 0,
    **options: Any,
) -> Any:
    """An application of Ray Serve: ``ray.serve.run(mxrt.ray.deployment("models/faces"))``.

    Its handle takes arrays by name, and ``timeout`` in seconds; see ``call``.

    Parameters
    ----------
    model, params : PREFIX, PREFIX-symbol.json or a folder with one of these; the parameter file, if
        it is not the newest next to the symbol file
    name : name of the deployment
    cores : cores of a copy of the model; None: those of the smallest node
    copies : copies of the model; None: one for each node
    batch : largest number of rows of requests that are computed together, while others are
        computed; 0: each request alone
    options : other options of ``ray.serve.deployment``
    """
    serve = _ray(".serve")
    nodes = _nodes()
    cores = cores or min(nodes)
    symbol, stored = _in_store(model, params)
    # Requests wait in the engine, which orders them and joins batches, rather than at Ray's router.
    settings = {"max_ongoing_requests": 4 * cores, "num_replicas": copies or len(nodes), **options}
    made = serve.deployment(_Served, name=name, ray_actor_options=_placed(cores), **settings)
    return made.bind(symbol, stored, batch)


def call(handle: Any, arrays: Mapping[str, Any], timeout: float | None = None, tries: int = 3) -> dict[str, Any]:
    """Asks a deployment and waits for the answer.

    A request whose process or node died is sent again. An error of the request itself is not: it is
    raised at once.
    """
    for turn in range(tries):
        try:
            return dict(handle.remote(dict(arrays), timeout).result(timeout_s=timeout))
        except Exception as error:
            if type(error).__name__ not in _TRANSPORT or turn + 1 == tries:
                raise
    raise MXNetValueError(f"tries is {tries}; expected 1 or more")
