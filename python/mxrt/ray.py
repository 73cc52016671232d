"""Models on Ray: ``predict`` over datasets, ``deployment`` for Ray Serve.

Ray is no part of mxrt: ``pip install 'mxrt[ray]'``.

Ray starts processes with ``OMP_NUM_THREADS=1`` unless they ask for more cores, which mxrt obeys. So
both ask for the cores of a node and say how many there are: one copy of the model in a node, which
computes on all of its cores.
"""

from __future__ import annotations

import json
import os
import tempfile
import uuid
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from .base import MXNetError, MXNetNotImplementedError, MXNetValueError

__all__ = ["Replica", "call", "deployment", "predict"]

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
    """Where a copy of the model runs: on so many cores, which mxrt uses."""
    return {
        "num_cpus": cores,
        "runtime_env": {"env_vars": {"MXRT_CORES": str(cores), "OMP_NUM_THREADS": str(cores)}},
        "scheduling_strategy": "SPREAD",
    }


def _in_store(model: Any, params: Any) -> tuple[str, Any]:
    """The symbol file, and the parameters in Ray's object store, for all copies."""
    import numpy as np

    from .bench.model import UsageError
    from .serve import Model, _files

    try:
        symbol, file = _files(model if isinstance(model, Model) else Model(model, params))
    except UsageError as error:
        raise MXNetValueError(str(error)) from None
    content = np.fromfile(file, dtype="uint8") if file is not None else np.empty(0, "uint8")
    return symbol.read_text(), _ray().put(content)


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
        self.inputs = [name for name in graph.list_inputs() if name not in names]
        self.outputs = graph.list_outputs()
        if labels := [name for name in self.inputs if name.endswith("label")]:
            raise MXNetError(f"the graph asks for {', '.join(labels)}: save it without its loss")
        with tempfile.TemporaryDirectory() as folder:
            graph.save(f"{folder}/model-symbol.json")
            file = None
            if held:
                file = f"{folder}/model-0000.params"
                Path(file).write_bytes(bytes(params))
            self._block = gluon.SymbolBlock.imports(f"{folder}/model-symbol.json", self.inputs, file)

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
        made = self._block(*[nd.array(array, dtype=array.dtype) for array in given], **more)
        results = made if isinstance(made, (list, tuple)) else [made]
        return {name: result.asnumpy() for name, result in zip(self.outputs, results, strict=True)}


# ---- datasets ----------------------------------------------------------------------------------


class _Mapper:
    """What Ray Data runs: a replica over batches of rows."""

    def __init__(self, symbol: str, params: Any, columns: dict[str, str], bad_rows: str | None) -> None:
        self._replica = Replica(symbol, params)
        names = columns or {name: name for name in self._replica.inputs}
        self._columns = {name: names.get(name, name) for name in self._replica.inputs}
        self._bad = None if bad_rows is None else Path(bad_rows) / f"bad-{uuid.uuid4().hex}.jsonl"

    def __call__(self, batch: dict[str, Any]) -> dict[str, Any]:
        import numpy as np

        lacking = [column for column in self._columns.values() if column not in batch]
        if lacking:
            raise MXNetValueError(f"the dataset has no column {', '.join(lacking)}; it has {', '.join(batch)}")
        try:
            made = self._replica({name: _stacked(batch[column]) for name, column in self._columns.items()})
            return {**batch, **made}
        except (MXNetError, ValueError, TypeError):
            if self._bad is None:
                raise
        # One bad row fails its batch: each row alone.
        rows = len(next(iter(batch.values())))
        good, results = [], []
        for row in range(rows):
            try:
                one = {name: _stacked(batch[column][row : row + 1]) for name, column in self._columns.items()}
                results.append(self._replica(one))
                good.append(row)
            except (MXNetError, ValueError, TypeError) as error:
                self._write_bad({key: value[row] for key, value in batch.items()}, error)
        made = {
            name: np.concatenate([result[name] for result in results]) if results else np.empty(0, "float32")
            for name in self._replica.outputs
        }
        return {**{key: value[good] for key, value in batch.items()}, **made}

    def _write_bad(self, row: dict[str, Any], error: Exception) -> None:
        inputs = set(self._columns.values())
        known = {key: value for key, value in row.items() if key not in inputs}
        assert self._bad is not None
        with self._bad.open("a") as file:
            file.write(json.dumps({"row": known, "error": f"{type(error).__name__}: {error}"}, default=str) + "\n")


def _stacked(column: Any) -> Any:
    """A column as one array; rows of one shape may come as objects."""
    import numpy as np

    return np.stack(list(column)) if column.dtype == object else column


def predict(
    dataset: Any,
    model: Any,
    *,
    params: str | os.PathLike[str] | None = None,
    columns: Mapping[str, str] | None = None,
    rows: int = 64,
    cores: int | None = None,
    copies: int | None = None,
    ordered: bool = False,
    bad_rows: str | os.PathLike[str] | None = None,
    to: str | os.PathLike[str] | None = None,
    part_rows: int = 8192,
) -> Any:
    """Adds a column for each output of a model to a dataset of Ray.

    Parameters
    ----------
    dataset : a ``ray.data.Dataset`` with a column for each input, of arrays of one shape
    model, params : as ``mxrt.serve.Model`` takes them
    columns : columns of inputs, by the names of inputs, where they differ
    rows : rows that the model is called with
    cores : cores of a copy of the model; None: those of the smallest node
    copies : copies of the model; None: one for each node
    ordered : keep the order of rows
    bad_rows : folder for rows that fail, with their errors; the others go on. None: a row that
        fails ends the run
    to : folder for parts in parquet, ``part_rows`` rows each, in order. Parts that are there are
        not computed again. None: the dataset is returned, and computed when it is read

    Returns
    -------
    The dataset with its new columns; where ``to`` is named, that which reads the parts
    """
    data = _ray(".data")
    nodes = _nodes()
    cores = cores or min(nodes)
    symbol, stored = _in_store(model, params)
    if bad_rows is not None:
        Path(bad_rows).mkdir(parents=True, exist_ok=True)
    folder = None if bad_rows is None else str(Path(bad_rows).absolute())
    if ordered or to is not None:
        dataset.context.execution_options.preserve_order = True

    def mapped(of: Any) -> Any:
        return of.map_batches(
            _Mapper,
            fn_constructor_args=(symbol, stored, dict(columns or {}), folder),
            batch_size=rows,
            batch_format="numpy",
            compute=data.ActorPoolStrategy(size=copies or len(nodes)),
            **_placed(cores),
        )

    return mapped(dataset) if to is None else _in_parts(data, dataset, mapped, Path(to), part_rows)


def _in_parts(data: Any, dataset: Any, mapped: Any, to: Path, part_rows: int) -> Any:
    to.mkdir(parents=True, exist_ok=True)
    for left in to.glob("*.partial"):
        left.unlink()
    done = len(list(to.glob("part-*.parquet")))
    if done:
        dataset = dataset.split_at_indices([done * part_rows])[1]
    number = done
    for given in _cut(dataset, part_rows):
        partial = to / f"part-{number:06d}.partial"
        # In one step, so that a part which is there is whole.
        _write(data, mapped(given), partial)
        partial.rename(partial.with_suffix(".parquet"))
        number += 1
    return data.read_parquet(str(to))


def _cut(dataset: Any, rows: int) -> Iterator[Any]:
    """Datasets of so many rows."""
    total = dataset.count()
    if total:
        yield from dataset.split_at_indices(list(range(rows, total, rows)))


def _write(data: Any, dataset: Any, file: Path) -> None:
    import importlib

    pyarrow, parquet = (importlib.import_module(name) for name in ("pyarrow", "pyarrow.parquet"))
    tables = list(dataset.iter_batches(batch_size=None, batch_format="pyarrow"))
    tables = [table for table in tables if len(table)]
    table = pyarrow.concat_tables(tables) if tables else pyarrow.table({})
    parquet.write_table(table, file)


# ---- Ray Serve ---------------------------------------------------------------------------------


def deployment(
    model: Any,
    *,
    params: str | os.PathLike[str] | None = None,
    name: str = "mxrt",
    cores: int | None = None,
    copies: int | None = None,
    **options: Any,
) -> Any:
    """An application of Ray Serve: ``ray.serve.run(mxrt.ray.deployment("models/faces"))``.

    Its handle takes arrays by name, and ``timeout`` in seconds; see ``call``.

    Parameters
    ----------
    model, params : as ``mxrt.serve.Model`` takes them
    name : of the deployment
    cores : cores of a copy of the model; None: those of the smallest node
    copies : copies of the model; None: one for each node
    options : others of ``ray.serve.deployment``
    """
    serve = _ray(".serve")
    nodes = _nodes()
    cores = cores or min(nodes)
    symbol, stored = _in_store(model, params)
    # Requests wait in the engine, which orders them, rather than at Ray's router.
    settings = {"max_ongoing_requests": 4 * cores, "num_replicas": copies or len(nodes), **options}
    made = serve.deployment(Replica, name=name, ray_actor_options=_actor(cores), **settings)
    return made.bind(symbol, stored)


def _actor(cores: int) -> dict[str, Any]:
    placed = _placed(cores)
    return {key: placed[key] for key in ("num_cpus", "runtime_env")}


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
