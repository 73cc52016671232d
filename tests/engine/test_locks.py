"""Every lock above the engine follows one of the rules of ARCHITECTURE.md for forks, and is listed
here.
"""

from __future__ import annotations

import re

from support import ROOT

# The engine has a protocol of its own. Devices, simulated ones too, are lost in a child.
RUST = ["capi", "graph", "io", "kernels", "ops", "py", "serve", "tensor"]

GATE = "inside the fork gate"
OP = "held inside operators only, which a fork waits for"
NEW_QUEUE = "renewed: a child has a queue of its own after a reset"
NO_SERVER = "not used in a child, which has none of the threads of a server"
NEW_TURN = "renewed: a child waits for no turn of its parent"
#: File, what it uses, and why no child finds it locked.
LOCKS = {
    ("crates/capi/src/custom.rs", "ForkSafeMutex"): GATE,
    ("crates/capi/src/custom.rs", "ForkSafeRwLock"): GATE,
    ("crates/capi/src/engine.rs", "ForkSafeMutex"): GATE,
    ("crates/capi/src/handles.rs", "ForkSafeRwLock"): GATE,
    ("crates/capi/src/iterators.rs", "ForkSafeMutex"): GATE,
    ("crates/capi/src/profiler.rs", "ForkSafeMutex"): GATE,
    ("crates/capi/src/profiler_objects.rs", "ForkSafeMutex"): GATE,
    ("crates/capi/src/records.rs", "ForkSafeMutex"): GATE,
    ("crates/capi/src/symbol.rs", "ForkSafeRwLock"): GATE,
    ("crates/capi/src/training.rs", "ForkSafeMutex"): GATE,
    ("crates/capi/src/unfinished.rs", "ForkSafeMutex"): GATE,
    ("crates/graph/src/compile/inner/mod.rs", "ForkSafeMutex"): GATE,
    ("crates/graph/src/memory/constants.rs", "ForkSafeMutex"): GATE,
    ("crates/graph/src/memory/shared.rs", "ForkSafeMutex"): GATE,
    ("crates/graph/src/memory/shared.rs", "ForkSafeRwLock"): GATE,
    ("crates/graph/src/plan/constants.rs", "ForkSafeMutex"): GATE,
    ("crates/graph/src/plan/constants.rs", "ForkSafeRwLock"): GATE,
    ("crates/graph/src/run/build_turn.rs", "ForkSafeMutex"): GATE,
    ("crates/graph/src/run/build_turn.rs", "std::sync::Mutex"): NEW_TURN,
    ("crates/graph/src/run/build_turn.rs", "std::sync::Condvar"): NEW_TURN,
    ("crates/graph/src/run/device_plan/constants.rs", "ForkSafeMutex"): GATE,
    ("crates/graph/src/run/device_plan/mod.rs", "ForkSafeMutex"): GATE,
    ("crates/graph/src/run/device_plan/replay.rs", "ForkSafeMutex"): GATE,
    ("crates/graph/src/run/executor.rs", "ForkSafeMutex"): GATE,
    ("crates/graph/src/run/executable/output_types.rs", "ForkSafeMutex"): GATE,
    ("crates/graph/src/run/placements.rs", "ForkSafeMutex"): GATE,
    ("crates/graph/src/run/plan_cache.rs", "ForkSafeRwLock"): GATE,
    ("crates/graph/src/run/segment.rs", "ForkSafeMutex"): GATE,
    ("crates/graph/src/run/staged_graph.rs", "ForkSafeMutex"): GATE,
    ("crates/graph/src/run/stored_nodes.rs", "ForkSafeMutex"): GATE,
    ("crates/graph/src/run/training_op.rs", "ForkSafeMutex"): GATE,
    ("crates/graph/src/symbol/node.rs", "ForkSafeRwLock"): GATE,
    ("crates/io/src/iterators/prefetch.rs", "ForkSafeMutex"): GATE,
    ("crates/graph/src/run/state_updates.rs", "ForkSafeMutex"): GATE,
    ("crates/ops/src/custom/call.rs", "ForkSafeMutex"): GATE,
    ("crates/ops/src/custom/definition.rs", "ForkSafeMutex"): GATE,
    ("crates/ops/src/custom/definition.rs", "ForkSafeRwLock"): GATE,
    ("crates/ops/src/execution/random_stream.rs", "ForkSafeMutex"): GATE,
    ("crates/ops/src/sparse/stored_call.rs", "ForkSafeMutex"): GATE,
    ("crates/py/src/custom.rs", "ForkSafeMutex"): GATE,
    ("crates/py/src/serve.rs", "ForkSafeMutex"): GATE,
    ("crates/tensor/src/array.rs", "ForkSafeMutex"): GATE,
    ("crates/tensor/src/derived.rs", "ForkSafeMutex"): GATE,
    ("crates/tensor/src/ready.rs", "ForkSafeMutex"): GATE,
    ("crates/graph/src/run/measure.rs", "parking_lot::Mutex"): OP,
    ("crates/graph/src/run/on_device.rs", "parking_lot::Mutex"): OP,
    ("crates/graph/src/run/call_plan.rs", "parking_lot::Mutex"): OP,
    ("crates/kernels/src/conv/pooled.rs", "std::sync::Mutex"): OP,
    ("crates/kernels/src/linalg/mod.rs", "std::sync::Mutex"): OP,
    ("crates/kernels/src/par/mod.rs", "std::sync::Mutex"): OP,
    ("crates/kernels/src/vision/multibox_target.rs", "std::sync::Mutex"): OP,
    ("crates/io/src/iterators/prefetch.rs", "std::sync::Mutex"): NEW_QUEUE,
    ("crates/io/src/iterators/prefetch.rs", "std::sync::Condvar"): NEW_QUEUE,
    (
        "crates/ops/src/execution/operator_cache.rs",
        "parking_lot::Mutex",
    ): "only tried: a locked one is passed over",
    ("crates/py/src/custom.rs", "std::sync::Mutex"): "renewed: the queue of a child is made of the open calls",
    ("crates/py/src/custom.rs", "std::sync::Condvar"): "renewed: the queue of a child is made of the open calls",
    ("crates/py/src/notify.rs", "std::sync::Mutex"): "renewed: notices belong to a process",
    ("crates/py/src/notify.rs", "std::sync::Condvar"): "renewed: notices belong to a process",
    ("crates/serve/src/account.rs", "std::sync::Mutex"): NO_SERVER,
    ("crates/serve/src/batch/mod.rs", "std::sync::Mutex"): NO_SERVER,
    ("crates/serve/src/log/sink.rs", "std::sync::Condvar"): NO_SERVER,
    ("crates/serve/src/log/sink.rs", "std::sync::Mutex"): NO_SERVER,
    ("crates/serve/src/model/labels.rs", "std::sync::Mutex"): NO_SERVER,
    ("crates/serve/src/progress.rs", "std::sync::Mutex"): NO_SERVER,
    ("crates/serve/src/repository/mod.rs", "std::sync::Mutex"): NO_SERVER,
    ("crates/serve/src/traces.rs", "std::sync::Mutex"): NO_SERVER,
    ("crates/serve/src/turns.rs", "std::sync::Mutex"): NO_SERVER,
    ("crates/serve/src/server.rs", "std::sync::Mutex"): NO_SERVER,
    ("crates/serve/src/watched.rs", "std::sync::Mutex"): NO_SERVER,
    ("crates/tensor/src/params.rs", "parking_lot::RwLock"): "inside the fork gate, by `Engine::without_fork`",
    ("crates/tensor/src/release.rs", "parking_lot::Mutex"): OP,
}
NAMES = ("Mutex", "RwLock", "Condvar", "ReentrantMutex", "ForkSafeMutex", "ForkSafeRwLock")


PREPARED = "made by mxrt_kernels::prepare inside the gate, before any kernel is bound"
#: File, the type of a static value that is made at its first use, and why no child waits for it.
FIRST_USES = {
    ("crates/kernels/src/amx/mod.rs", "OnceLock"): PREPARED,
    ("crates/kernels/src/cache_class.rs", "OnceLock"): PREPARED,
    ("crates/kernels/src/conv/select.rs", "LazyLock"): PREPARED,
    ("crates/kernels/src/isa.rs", "OnceLock"): PREPARED,
    ("crates/kernels/src/processor_time.rs", "OnceLock"): "compiled only where there is no fork",
    ("crates/kernels/src/vector_units.rs", "OnceLock"): PREPARED,
}


def first_uses(text: str) -> set[str]:
    """The types of static values of a file that are made at their first use, except for those
    that a fork waits for.
    """
    text = re.split(r"#\[cfg\(test\)\]\s*mod \w+ \{", re.sub(r"//.*", "", text))[0]
    kinds = "LazyLock|OnceLock|OnceCell|LazyCell|Once|PyOnceLock"
    # intern! of pyo3 has such a value inside.
    return set(re.findall(rf"\bstatic \w+: (?:\w+::)*({kinds})\b", text)) | set(re.findall(r"\bintern!", text))


def rust_locks(text: str) -> set[str]:
    """The kinds of locks that a file names, by their paths."""
    text = re.split(r"#\[cfg\(test\)\]\s*mod \w+ \{", re.sub(r"//.*", "", text))[0]
    found = set()
    for path, names in re.findall(r"\b(std::sync|parking_lot|mxrt_engine|mxrt::internal)::(\{[^}]*\}|\w+)", text):
        for name in re.findall(r"(\w+)(?:\s+as\s+\w+)?", names):
            if name in NAMES:
                found.add(name if name.startswith("ForkSafe") else f"{path}::{name}")
    return found


def test_the_locks_of_the_source_are_those_of_the_list() -> None:
    found = {
        (path.relative_to(ROOT).as_posix(), lock)
        for crate in RUST
        for path in sorted((ROOT / "crates" / crate / "src").rglob("*.rs"))
        for lock in rust_locks(path.read_text())
        if path.name != "tests.rs"
    }
    assert found == set(LOCKS)


def test_a_fork_waits_for_whatever_is_made_at_its_first_use() -> None:
    """Static values are `ForkSafeOnce` and `ForkSafeLazy`: others a child finds half made, if
    another thread makes them while the process forks, and waits for a thread that it has not.
    """
    found = {
        (path.relative_to(ROOT).as_posix(), kind)
        for crate in [*RUST, "mxrt"]
        for path in sorted((ROOT / "crates" / crate / "src").rglob("*.rs"))
        for kind in first_uses(path.read_text())
        if path.name != "tests.rs"
    }
    assert found == set(FIRST_USES)


def test_no_thread_waits_for_a_lock_of_parking_lot_while_the_process_forks() -> None:
    """All threads that wait for such locks are in one table, where a child finds its parent's. A
    fork waits for operators and for the gate.
    """
    reasons = {reason for (_, lock), reason in LOCKS.items() if lock.startswith("parking_lot")}
    assert all(reason == OP or "gate" in reason or "only tried" in reason for reason in reasons), reasons
    assert not [file for file, lock in LOCKS if lock == "parking_lot::Condvar"]


def test_locks_of_python_are_renewed_in_a_child() -> None:
    package = ROOT / "python" / "mxrt"
    # Programs, which do not fork while they compute.
    programs = [package / "demo", package / "bench", package / "cli"]
    made = re.compile(r"\b(Lock|RLock|allocate_lock|Condition|Semaphore|BoundedSemaphore|Event|Barrier)\(\)")
    found = {
        path.relative_to(package).as_posix()
        for path in package.rglob("*.py")
        if made.search(path.read_text()) and not any(path.is_relative_to(program) for program in programs)
    }
    # The locks of _imports are made again in a child by itself. One of native.py belongs to a
    # call, whose thread a child has only if it has forked itself.
    assert found == {"_system/locks.py", "_imports/__init__.py", "_system/native.py"}
