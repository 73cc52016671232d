"""The command `mxrt serve`."""

from __future__ import annotations

import argparse
import contextlib
import json
import math
import os
import re
import signal
import sys
import threading
import traceback
from collections.abc import Sequence
from concurrent.futures import Future
from pathlib import Path
from typing import Any
from urllib.parse import quote

from .. import _mxrt
from .._output.codes import with_code
from .._system import temporary
from ..base import (
    MXNetDataError,
    MXNetError,
    MXNetFileNotFoundError,
    MXNetNotImplementedError,
    MXNetValueError,
)
from ..cli._errors import BAD, GOOD, USAGE
from ..cli._interrupt import end_now
from ..cli._out import print_json
from . import Server, configuration, log
from ._places import Places

try:
    import resource
except ImportError:  # there are such limits on Unix alone
    resource = None  # type: ignore[assignment]

__all__ = ["add_arguments", "main"]

#: Bytes of an element, by the protocol's names of types.
_SIZES = {
    **dict.fromkeys(("BOOL", "INT8", "UINT8"), 1),
    **dict.fromkeys(("INT16", "UINT16", "FP16", "BF16"), 2),
    **dict.fromkeys(("INT32", "UINT32", "FP32"), 4),
    **dict.fromkeys(("INT64", "UINT64", "FP64"), 8),
}
#: The separator between the name of a model and the value of an option, for options that do not
#: use "=".
_OF_MODELS = {"shapes": ":", "dtypes": ":"}
#: What options name that the server reads.
_READ = {
    "repository": "a folder",
    **dict.fromkeys(("tls_certificate", "tls_key", "tokens", "params", "hooks", "labels", "golden"), "a file"),
}
#: Options whose names are not those of their settings.
_OPTIONS = {"shapes": "shape", "dtypes": "dtype"}


#: Where SageMaker puts the model of a container, and the port that it asks by default.
_SAGEMAKER_MODEL = "/opt/ml/model"
_SAGEMAKER_PORT = 8080


class _HelpAll(argparse.Action):
    """Prints the help with the options that `--help` leaves out."""

    def __init__(self, option_strings: Sequence[str], dest: str, const: dict[argparse.Action, str], help: str) -> None:
        super().__init__(option_strings, dest, nargs=0, default=argparse.SUPPRESS, help=help)
        #: Options of settings that few servers need, with their descriptions.
        self.rare = const

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        self.describe()
        parser.print_help()
        parser.exit()

    def describe(self) -> None:
        """Gives the options that `--help` leaves out their descriptions."""
        for option, description in self.rare.items():
            option.help = description


def _rows() -> list[tuple[str, str, str, str | None, str, bool]]:
    rows = getattr(_mxrt, "serve_settings", None)
    return [] if rows is None else list(rows())


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declares the arguments of the command."""
    parser.add_argument(
        "models",
        metavar="[NAME=]MODEL",
        nargs="*",
        help="PREFIX, PREFIX-NNNN, PREFIX-symbol.json, a folder with one model, or a .zip, .mar or .tar.gz with one; "
        "NAME is that of the file if none is given",
    )
    parser.add_argument("--config", metavar="FILE", help="settings and models in TOML")
    # A shape that begins with -1 is no option.
    parser._negative_number_matcher = re.compile(r"^-\d[\d.,-]*$")
    rarely: dict[argparse.Action, str] = {}
    words = "show options that few servers need, too, and end"
    parser.add_argument("--help-all", action=_HelpAll, const=rarely, help=words)
    for key, metavar, text, default, scope, rare in _rows():
        if key in ("path", "sagemaker"):  # an argument; below
            continue
        before = "" if scope == "server" else f"[NAME{_OF_MODELS.get(key, '=')}]"
        description = text + ("" if default is None or scope == "model" else f" (default {default})")
        option = parser.add_argument(
            f"--{_OPTIONS.get(key, key).replace('_', '-')}",
            dest=f"set_{key}",
            metavar=before + metavar,
            action="append",
            default=[],
            help=argparse.SUPPRESS if rare else description,
        )
        if rare:
            rarely[option] = description
    parser.add_argument(
        "--sagemaker",
        action="store_true",
        help="serve as a container of Amazon SageMaker does: /ping and /invocations, at 0.0.0.0 and the port "
        f"SAGEMAKER_BIND_TO_PORT or {_SAGEMAKER_PORT}, bodies of up to SAGEMAKER_MAX_PAYLOAD_IN_MB, the model of "
        f"{_SAGEMAKER_MODEL} where none is named; with SAGEMAKER_MULTI_MODEL=true the platform loads models by "
        "/models. Later options win",
    )
    parser.add_argument(
        "--sagemaker-code",
        action="store_true",
        help="with --sagemaker: run code/inference.py of the model (SAGEMAKER_PROGRAM names another file): its "
        "model_fn, and transform_fn or input_fn, predict_fn and output_fn. `import mxnet` in it finds mxrt",
    )
    parser.add_argument("--print-config", action="store_true", help="print all settings and their sources, and end")
    parser.add_argument(
        "--check",
        action="store_true",
        help="load the models, let each answer once, say what they are, and end; status 0 if all have answered",
    )
    parser.add_argument(
        "--json",
        action="store_true",
        help="with --check or --print-config: print one JSON object; without --check also: --logs json",
    )


def main(args: argparse.Namespace) -> int:
    """Runs the command; returns the exit status."""
    if args.json and not args.check:
        args.set_logs.append("json")
    try:
        config = _from_arguments(args)
        settings = (config.print_json() if args.json else config.print()) if args.print_config else ""
    except (OSError, MXNetError) as error:
        # Of the content of a file named MODEL.
        is_content = isinstance(error, MXNetDataError) and not isinstance(error, MXNetFileNotFoundError)
        return _failed(args, error, BAD if is_content else USAGE)
    if args.print_config:
        return _print_settings(settings, config, args.json)
    if args.check:
        _listen_nowhere(config)
    _open_as_many_files_as_allowed()
    server = Server._of(config, lambda: _from_arguments(args))
    if not args.check:
        server._hear_reloads()
    try:
        _start(server)
    except (OSError, MXNetError) as error:
        signal.set_wakeup_fd(-1)
        return _failed(args, error, USAGE if _is_of_settings(error) else BAD)
    if args.check:
        return _say_what_was_checked(server, args.json)
    server._hear_ends()
    words = config.warning()
    if words is not None:
        server._log("warning", words)
    _say_where_it_listens(server, config.logs_json())
    return server.run()


def _start(server: Server) -> None:
    """Starts the server in another thread, so that Ctrl-C ends the command while models load."""
    ended: Future[None] = Future()

    def start() -> None:
        try:
            server.start()
        except BaseException as error:
            ended.set_exception(error)
        else:
            ended.set_result(None)

    threading.Thread(target=start, daemon=True, name="mxrt-serve-start").start()
    try:
        ended.result()
    except KeyboardInterrupt:
        end_now()


def _failed(args: argparse.Namespace, error: Exception, status: int) -> int:
    """Says what has ended the start, and returns the status. A check that was told to print JSON
    prints its verdict.
    """
    if args.debug:
        traceback.print_exc()
    text = temporary.shown(str(error))
    log(_logs_json(args), "error", text)
    if args.check and args.json and status == BAD:
        print_json({"good": False, "models": [], "lacking": [], "error": text})
    return status


def _is_of_settings(error: Exception) -> bool:
    """Returns whether an error of the start is that of a setting, of a file that is not there, or
    of a package that a setting needs, and not of a model or a port.
    """
    if isinstance(error, MXNetNotImplementedError):
        return not str(error).startswith("model '")
    if isinstance(error, MXNetFileNotFoundError):
        return True
    return isinstance(error, MXNetValueError) and not str(error).startswith(("model '", "cannot listen on"))


def _logs_json(args: argparse.Namespace) -> bool:
    """Returns whether log lines are JSON if the settings cannot be read. The last option wins."""
    said = [os.environ.get("MXRT_SERVE_LOGS"), *args.set_logs]
    return bool(said[-1] == "json")


def _say_where_it_listens(server: Server, as_json: bool) -> None:
    places = server._places()
    lines: list[tuple[str | None, str]] = [(model["name"], _about(model, places)) for model in server.models]
    if places.grpc is not None:
        lines.append((None, f"gRPC at {places.grpc}"))
    if places.admin is not None:
        lines.append((None, f"plans of models and profiles at {places.admin}"))
    for name, words in lines:
        if as_json:
            print(_mxrt.serve_line(True, "info", words, name), end="")
        else:
            print(words if name is None else f"{name}: {words}")
    sys.stdout.flush()


def _say_what_was_checked(server: Server, as_json: bool) -> int:
    """Prints what each model is and does. Returns 0 if all of them have answered, otherwise 1."""
    places, models = server._places(), server.models
    lacking = [entry for entry in server.index if entry["state"] != "READY"]
    untried = [(model["name"], words) for model in models if (words := model["parameters"]["tried"]) != "yes"]
    good = bool(models) and not lacking and not untried
    if as_json:
        print_json({"good": good, "models": models, "lacking": lacking})
    else:
        for model in models:
            print(f"{model['name']}: {_about(model, places)}")
        for name, words in _batching(server):
            print(f"# batch of {name}: {words}")
        for name, words in untried:
            print(f"# {name}: {words}")
    for entry in lacking:
        server._log("error", f"{entry['name']} {entry['version']}: {entry['reason']}")
    if not models and not lacking:
        words = "there is no model, so that nothing has answered; name one, or a repository with NAME/VERSION folders"
        server._log("error", with_code(words, "model"))
    sys.stdout.flush()
    server.stop()
    return GOOD if good else BAD


def _open_as_many_files_as_allowed() -> None:
    """Raises the limit of open files to the hard limit.

    Each connection is a file, and the default limit is often 1024.
    """
    if resource is not None:
        _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
        with contextlib.suppress(OSError, ValueError):  # as many as there are, then
            resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


def _listen_nowhere(config: Any) -> None:
    """Prepares a configuration for a server that only loads its models: it opens one free port and
    does not log lines about the models.
    """
    places = {"port": 0, "grpc_port": "off", "admin_port": "off", "unix": None, "grpc_unix": None, "inherited": False}
    for key, value in places.items():
        config.set(key, value, False)
    config.quiet()


def _batching(server: Server) -> list[tuple[str, str]]:
    """Returns for each model whether its requests are joined, or why they are not."""
    return [(model["name"], model["parameters"]["batch"]) for model in server.models]


def _print_settings(settings: str, config: Any, as_json: bool) -> int:
    """Prints the settings, loads the models and prints, as comments, whether requests of each are
    joined. Returns 0 even if the models do not load.
    """
    batching: list[tuple[str, str]] = []
    error = None
    if not as_json:
        print(settings)
    try:
        _listen_nowhere(config)
        with Server._of(config) as server:
            batching = _batching(server)
    except MXNetError as reason:
        error = temporary.shown(str(reason))
    if as_json:
        print_json({**json.loads(settings), "batch": dict(batching), "error": error})
        return GOOD
    for name, words in batching:
        print(f"# batch of {name}: {words}")
    if error is not None:
        print(f"# batch: not known, as the models do not load: {error}")
    return GOOD


def _from_arguments(args: argparse.Namespace) -> Any:
    """Reads the settings of the file, the environment and the options. Later ones win."""
    config = configuration()
    # systemd names the process that its sockets are for.
    if os.environ.get("LISTEN_PID") == str(os.getpid()):
        config.set("inherited", True, False)
    file = args.config or os.environ.get("MXRT_SERVE_CONFIG")
    if file:
        _there(file, "--config" if args.config else "MXRT_SERVE_CONFIG", "a file")
        config.file(file)
    if args.sagemaker:
        _as_container(config)
        # SageMaker runs a container with this word, which the entry point has already.
        is_model = os.path.exists("serve") or os.path.exists("serve-symbol.json")
        args.models = [said for said in args.models if said != "serve" or is_model]
    config.environment(sorted(os.environ.items()))
    for text in args.models:
        name, equals, path = text.partition("=")
        if not equals or "/" in name:
            name, path = "", text
        _add_option(config, name or _mxrt.own_name_of_model(path), path)
    if args.sagemaker and not _serves_many() and not config.models():
        if not os.path.isdir(_SAGEMAKER_MODEL):
            raise MXNetValueError(
                f"--sagemaker: there is no folder '{_SAGEMAKER_MODEL}', where SageMaker puts a model: name a model"
            )
        _add_option(config, "model", _SAGEMAKER_MODEL)
    if args.sagemaker_code:
        config = _with_script(args, config)
    for key, *_, scope, _ in _rows():
        for text in getattr(args, f"set_{key}", ()):
            _set_option(config, key, scope, text)
    return config


def _there(path: str, option: str, what: str) -> None:
    """Checks that there is what an option names."""
    if not (os.path.isdir(path) if what == "a folder" else os.path.exists(path)):
        raise MXNetValueError(f"{option} '{path}': there is no such {what.removeprefix('a ')}; expected {what}")


def _with_script(args: argparse.Namespace, config: Any) -> Any:
    """Puts the script of the only model in the place of the model."""
    from ..cli._model import unpack
    from . import _script

    named = args.models or [_SAGEMAKER_MODEL]
    if not args.sagemaker or _serves_many() or len(named) != 1 or args.config:
        raise MXNetValueError(
            "--sagemaker-code runs the script of one model, which is an argument: use it with --sagemaker, and without "
            "--config and SAGEMAKER_MULTI_MODEL"
        )
    name, equals, path = named[0].partition("=")
    folder = Path(path if equals and "/" not in name else named[0])
    folder = unpack(folder) or folder
    script = _script.find(folder)
    _script.use(script, folder)
    made = configuration()
    _as_container(made)
    made.environment(sorted(os.environ.items()))
    made.add_model("model")
    settings = {"path": str(_script.make_carrier(temporary.new_folder())), "hooks": str(script)}
    for key, value in {**settings, "shapes": {"data": [-1]}, "dtypes": {"data": "uint8"}}.items():
        made.set_model("model", key, value, False)
    return made


def _serves_many() -> bool:
    text = os.environ.get("SAGEMAKER_MULTI_MODEL", "")
    if text.lower() not in ("", "true", "false"):
        raise MXNetValueError(f"SAGEMAKER_MULTI_MODEL is '{text}'; expected true or false")
    return text.lower() == "true"


def _as_container(config: Any) -> None:
    """Sets what SageMaker asks of a container; the environment and options may say otherwise."""
    text = os.environ.get("SAGEMAKER_BIND_TO_PORT", str(_SAGEMAKER_PORT))
    if not text.isdecimal() or not 0 <= int(text) <= 65535:
        raise MXNetValueError(f"SAGEMAKER_BIND_TO_PORT is '{text}'; expected a port from 0 to 65535")
    settings = {
        "sagemaker": "models" if _serves_many() else "model",
        "host": "0.0.0.0",
        "port": int(text),
        "grpc_port": "off",
    }
    largest = os.environ.get("SAGEMAKER_MAX_PAYLOAD_IN_MB", "")
    if largest:
        if not largest.isdecimal() or not 0 < int(largest) <= 1 << 20:
            raise MXNetValueError(
                f"SAGEMAKER_MAX_PAYLOAD_IN_MB is '{largest}'; expected a number of MiB from 1 to 1048576"
            )
        settings["max_body"] = int(largest) << 20
    for key, value in settings.items():
        config.set(key, value, False)


def _add_option(config: Any, name: str, path: str) -> None:
    if name in config.models():
        raise MXNetValueError(f"two models have the name '{name}': write NAME=MODEL")
    config.add_model(name)
    config.set_model(name, "path", path, True)


def _set_option(config: Any, key: str, scope: str, text: str) -> None:
    if scope == "server":
        _check_read(key, text)
        config.set(key, text, True)
    elif scope == "models":
        name, equals, value = text.rpartition("=")
        if equals:
            config.set_model(name, key, value, True)
        else:
            config.set(key, text, True)
    else:
        name, value = _of_model(config, key, text)
        _check_read(key, value)
        config.set_model(name, key, value, True)


def _check_read(key: str, value: str) -> None:
    """Checks that there is what the server is to read."""
    if key in _READ and value not in ("", "off"):
        _there(value, f"--{key.replace('_', '-')}", _READ[key])


def _of_model(config: Any, key: str, text: str) -> tuple[str, str]:
    """Returns the name of the model that an option belongs to, and the value for it."""
    names = config.models()
    mark = _OF_MODELS.get(key, "=")
    name, marked, value = text.partition(mark)
    if marked and (name in names or mark == ":"):
        return name, value
    if len(names) != 1:
        option = f"--{_OPTIONS.get(key, key)} {text}"
        if not names:
            raise MXNetValueError(f"{option}: no model is named, and those that come later have settings of their own")
        raise MXNetValueError(f"{option}: say which of {', '.join(names)} is meant")
    return names[0], text


def _about(model: dict[str, Any], places: Places) -> str:
    """Returns the text that describes a model at the start: inputs, address, and a curl command."""
    inputs = ", ".join(f"{tensor['name']} {tensor['datatype']}{tensor['shape']}" for tensor in model["inputs"])
    asking = "" if places.curl is None else f"; try: {_curl(model, *places.curl)}"
    return f"{inputs} at {places.said}{asking}"


def _curl(model: dict[str, Any], options: str, url: str) -> str:
    """Returns a shell command that sends the model zeros, or, if its shapes are not known or its
    hooks take strings, one that asks for its metadata.
    """
    path = f"{url}/v2/models/{quote(model['name'], safe='')}"
    inputs, size = [], 0
    for tensor in model["inputs"]:
        first, rest = tensor["shape"][:1], tensor["shape"][1:]
        if (first == [-1] and not rest) or -1 in rest or tensor["datatype"] not in _SIZES:
            return f"curl -s{options} '{path}'"
        shape = [1 if extent == -1 else extent for extent in first] + rest
        bytes_ = math.prod(shape) * _SIZES[tensor["datatype"]]
        size += bytes_
        parameters = {"binary_data_size": bytes_}
        inputs.append(
            {"name": tensor["name"], "shape": shape, "datatype": tensor["datatype"], "parameters": parameters}
        )
    request: dict[str, Any] = {"inputs": inputs}
    # JSON has no numbers of these types.
    binary = any(tensor["datatype"] in ("FP16", "BF16") for tensor in model["outputs"])
    if binary:
        request["parameters"] = {"binary_data_output": True}
    text = json.dumps(request, separators=(",", ":"))
    header = f"Inference-Header-Content-Length: {len(text.encode())}"
    to = " -o answer.bin" if binary else ""
    asking = f"curl -s{to}{options} -H '{header}' --data-binary @- '{path}/infer'"
    return f"(printf %s '{text}'; head -c {size} /dev/zero) | {asking}"
