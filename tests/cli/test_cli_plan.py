"""`mxrt plan`, `mxrt profile`, `mxrt explain` and `mxrt doctor`."""

from __future__ import annotations

import html.parser
import json
import os
import re
import textwrap
import time
from pathlib import Path

import pytest

from commands import command, digits_in, refused, tiny
from support import ROOT, mxrt

SHAPE = ("--shape", "2,2,4,4")
DIGIT = ("--shape", "1,1,8,8")


class Page(html.parser.HTMLParser):
    """The elements of a page, which must be balanced, its text, and the files it would load."""

    VOID = ("meta", "br", "img", "link", "input", "hr", "wbr")

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.text = ""
        self.loaded: list[str] = []
        self.scripts = 0
        self.ids: list[str] = []
        self.feed(text)
        self.close()
        assert self.open == [], self.open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in self.VOID:
            self.open.append(tag)
        self.scripts += tag == "script" or any(name.startswith("on") for name, _ in attrs)
        values = dict(attrs)
        self.ids += [values["id"] or ""] if "id" in values else []
        self.loaded += [
            value or "" for name, value in attrs if name in ("src", "href") and not (value or "").startswith("#")
        ]

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        if tag not in self.VOID:
            self.open.pop()

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag, tag

    def handle_data(self, data: str) -> None:
        self.text += data


def test_the_page_of_a_plan_needs_no_other_file_and_shows_every_step(mx, capfd, tmp_path: Path) -> None:
    done = command(capfd, "plan", digits_in(tmp_path), *DIGIT, "--html", tmp_path / "p.html", "--json")
    assert done.status == 0, done
    text = (tmp_path / "p.html").read_text()
    page = Page(text)
    assert (page.loaded, page.scripts) == ([], 0)
    assert "url(" not in text and "@import" not in text
    steps = done.json["steps"]
    assert page.ids == [f"s{one['step']}" for one in steps]
    for one in steps:
        assert one["node"] in page.text and one["kernel"] in page.text and one["output"] in page.text
    assert "prefers-color-scheme:dark" in text and "width=device-width" in text


def test_layers_that_a_step_computes_besides_its_own_are_shown(mx, capfd, tmp_path: Path) -> None:
    steps = command(capfd, "plan", digits_in(tmp_path), *DIGIT, "--json").json["steps"]
    covers = {one["node"]: [layer["operator"] for layer in one["covers"]] for one in steps}
    assert covers["digitsnet_conv0_fwd"] == ["BatchNorm", "Activation"]
    assert covers["digitsnet_unit0_conv1_fwd"] == ["BatchNorm", "elemwise_add", "Activation"]
    graph = json.loads((tmp_path / "digits_cnn-symbol.json").read_text())["nodes"]
    own = {one["node"] for one in steps}
    shown = [layer["node"] for one in steps for layer in one["covers"]] + list(own)
    layers = [node["name"] for node in graph if node["op"] != "null"]
    assert sorted(name for name in shown if name in layers) == sorted(layers), "each layer once"


def test_the_page_counts_the_layers_of_the_model(mx, capfd, tmp_path: Path) -> None:
    prefix = digits_in(tmp_path)
    graph = json.loads((tmp_path / "digits_cnn-symbol.json").read_text())["nodes"]
    layers = sum(node["op"] != "null" for node in graph)
    done = command(capfd, "plan", prefix, *DIGIT, "--html", tmp_path / "p.html", "--json")
    assert done.json["layers"] == layers, "conversions of layouts are steps, and no layers"
    assert f"steps for {layers} layers" in Page((tmp_path / "p.html").read_text()).text


def test_operators_of_plans_are_in_their_families(mx) -> None:
    from mxrt.cli._page import family

    assert {name: family(name) for name in ("_fused_fully_connected", "_lines_fully_connected", "FullyConnected")} == {
        "_fused_fully_connected": "dense",
        "_lines_fully_connected": "dense",
        "FullyConnected": "dense",
    }
    assert family("_fused_attention") == family("_contrib_interleaved_matmul_selfatt_qk") == "dense"
    assert family("_blocked_convolution") == family("_blocked_sg_mkldnn_conv") == "convolution"
    assert family("_blocked_pooling") == "pooling"
    assert family("_blocked_scale_shift") == family("_layer_norm_of_sum") == "normalisation"
    assert family("_to_blocked") == family("_from_blocked") == family("_to_lines") == family("transpose") == "moving"
    assert family("_blocked_activation") == family("_blocked_add") == "other", "they move nothing"


def test_the_page_of_a_quantized_model_names_its_own_layers(mx, capfd, tmp_path: Path) -> None:
    import numpy as np

    np.save(tmp_path / "x.npy", np.random.default_rng(0).random((8, 1, 8, 8), "float32"))
    words = (
        "quantize",
        digits_in(tmp_path),
        "--data",
        tmp_path / "x.npy",
        "--out",
        tmp_path / "made",
        "--budget",
        "none",
    )
    done = command(capfd, *words, "--html", tmp_path / "q.html")
    assert done.status == 0, done
    assert re.search(r"^  digitsnet_conv0_fwd \+2 +int8 ", done.out, re.M), done.out
    assert "sg_mkldnn" not in done.out, "a name that quantization made says nothing to its reader"
    text = (tmp_path / "q.html").read_text()
    page = Page(text)
    assert (page.loaded, page.scripts) == ([], 0)
    assert "digitsnet_conv0_fwd" in page.text and "sg_mkldnn" not in page.text
    assert "prefers-color-scheme:dark" in text and "@media (max-width" in text, "narrow pages show all columns"
    assert 'data-of="error alone"' in text


def test_names_of_a_strangers_model_are_text_in_the_page(mx, capfd, tmp_path: Path) -> None:
    prefix = tiny(tmp_path)
    symbol = tmp_path / "tiny-symbol.json"
    evil = '<script>alert(1)</script>\\"><img src=x onerror=alert(2)>'
    symbol.write_text(symbol.read_text().replace('"name":"conv"', f'"name":"{evil}"'))
    assert command(capfd, "plan", prefix, *SHAPE, "--html", tmp_path / "p.html").status == 0
    page = Page((tmp_path / "p.html").read_text())
    assert (page.loaded, page.scripts) == ([], 0)
    assert "<script>alert(1)</script>" in page.text


def test_a_plan_as_text_has_a_line_for_each_step_and_fits_a_screen(mx, capfd, tmp_path: Path) -> None:
    done = command(capfd, "plan", tiny(tmp_path), *SHAPE, "--no-measure")
    assert done.status == 0 and "estimated for one core" in done.out
    for name in ("conv", "dense"):
        assert re.search(rf"^ +\d+  {name} ", done.out, re.M), done.out
    refused(command(capfd, "plan", tiny(tmp_path), *SHAPE, "--html", tmp_path), 2, "is a folder")
    refused(command(capfd, "plan", tiny(tmp_path), *SHAPE, "--html", tmp_path / "no" / "x"), 2, "there is no folder")


def test_a_profile_gives_each_layer_its_share(mx, capfd, tmp_path: Path) -> None:
    done = command(capfd, "profile", digits_in(tmp_path), *DIGIT, "--seconds", "0.2", "--callers", "2", "--json")
    assert done.status == 0, done
    report = done.json
    assert sum(one["share"] for one in report["layers"]) == pytest.approx(1)
    assert [one["mean_us"] for one in report["layers"]] == sorted(
        (o["mean_us"] for o in report["layers"]), reverse=True
    )
    names = {one["layer"] for one in report["layers"]}
    assert {"digitsnet_conv0_fwd", "digitsnet_dense0_fwd"} <= names
    assert report["calls"] > 2 and report["call_us"]["min"] <= report["call_us"]["p50"]
    text = command(capfd, "profile", digits_in(tmp_path), *DIGIT, "--seconds", "0.1", "--top", "2").out
    assert "; 1 caller, " in text, text
    assert re.search(r"^  layer  .*\n  \S.*\n  \S.*\n  and \d+ more layers", text, re.M), text


def test_a_trace_names_calls_after_the_model_and_shows_waits_and_memory(mx, capfd, tmp_path: Path) -> None:
    trace = tmp_path / "t.json"
    command(capfd, "profile", digits_in(tmp_path), *DIGIT, "--seconds", "0.1", "--trace", trace)
    events = json.loads(trace.read_text())["traceEvents"]
    calls = [one for one in events if one.get("cat") == "call"]
    assert calls and all(re.fullmatch(r"digits_cnn #\d+", one["name"]) for one in calls)
    requests = {one["args"]["request"] for one in calls}
    layers = [one for one in events if one.get("cat") == "layer"]
    assert layers and {one["args"]["request"] for one in layers} <= requests
    assert {one["ph"] for one in events if one.get("cat") == "wait"} == {"b", "e"}
    assert any(one["ph"] == "C" and one["args"]["MB"] > 0 for one in events)
    ends = [one["ts"] + one["dur"] for one in calls]
    for one in layers:
        assert min(c["ts"] for c in calls) <= one["ts"] <= max(ends)


def test_a_profile_says_what_is_wrong_with_its_options(mx, capfd, tmp_path: Path) -> None:
    prefix = tiny(tmp_path)
    for options, words in (
        (("--seconds", "0"), "--seconds is 0"),
        (("--seconds", "nan"), "--seconds is nan"),
        (("--callers", "0"), "--callers is 0"),
        (("--top", "0"), "--top is 0"),
        (("--trace", "/no/such/t.json"), "there is no folder"),
    ):
        refused(command(capfd, "profile", prefix, *SHAPE, *options), 2, words)


# ---- errors --------------------------------------------------------------------------------------


def test_every_kind_and_class_of_error_has_a_page(mx, capfd) -> None:
    from mxrt import _mxrt, base
    from mxrt._output import codes
    from mxrt.cli import _errors
    from mxrt.cli._pages import PAGES, find_page

    classes = [one for name in base.__all__ if isinstance(one := getattr(base, name), type)]
    kinds = {kind for kind, *_ in _mxrt.failure_kinds()} | {one.kind for one in classes if hasattr(one, "kind")}
    assert [kind for kind in kinds if find_page(kind) is None] == []
    of_server = {"request", "busy", "hook"}
    assert kinds | {"model", "usage"} | of_server == codes.CODES.keys()
    assert {page.code for page in PAGES} == set(codes.CODES.values())
    for page in PAGES:
        assert page.kind in of_server or hasattr(base, page.name) or hasattr(_errors, page.name), page.name
        for word in (page.code, page.code.lower(), page.kind, page.name, f"mxrt.base.{page.name}", f"[{page.code}]"):
            found = find_page(word)
            assert found is not None and found.name == page.name, word
        done = command(capfd, "explain", page.code)
        assert done.status == 0 and page.code in done.out and "What to do" in done.out
    assert len({page.code for page in PAGES}) == len(PAGES)
    refused(command(capfd, "explain", "shap"), 2, "did you mean shape")


def test_the_page_of_errors_is_up_to_date(mx) -> None:
    """docs/errors.md is the catalogue that `mxrt explain` prints."""
    from mxrt.cli._pages import PAGES

    def wrapped(text: str, indent: str = "") -> str:
        options = {"width": 100, "subsequent_indent": indent, "break_on_hyphens": False, "break_long_words": False}
        return textwrap.fill(text, **options)

    wanted = (
        "# Errors\n\nWritten by tests/cli/test_cli_plan.py from the pages of `mxrt explain`; do not edit.\n\n"
        "The text of each error of mxrt's classes ends with a code, in Python, in Rust and in C. An error has\n"
        "it as `code`, and its text without the code as `message`. Wrong arguments for which MXNet's Python\n"
        "package raises a built-in error often raise that error here too, without a code. Answers of\n"
        "`mxrt serve` have `error` and `code`, calls over gRPC the trailer `mxrt-code`. `mxrt explain CODE`\n"
        "prints the page of a code.\n"
    )
    for page in PAGES:
        wanted += f"\n## {page.code}\n\n{wrapped(f'`{page.name}`: {page.summary}')}\n\n"
        wanted += textwrap.indent(page.example, "    ") + f"\n\n{wrapped(page.cause)}\n\n"
        wanted += "".join(wrapped(f"- {remedy}", "  ") + "\n" for remedy in page.remedies)
    file = ROOT / "docs" / "errors.md"
    if os.environ.get("MXRT_WRITE"):
        file.write_text(wanted)
    assert file.read_text() == wanted, "docs/errors.md is old; MXRT_WRITE=1 lets this test write it"


# ---- the machine ---------------------------------------------------------------------------------


def test_doctor_looks_at_the_whole_machine_and_gives_a_remedy_for_each_finding(mx, capfd) -> None:
    started = time.monotonic()
    done = command(capfd, "doctor", "--json")
    assert done.status == 0, done
    assert time.monotonic() - started >= 5, "the tutorial says that it computes for five seconds"
    findings = done.json["findings"]
    subjects = {one["subject"] for one in findings}
    assert {"versions", "processor", "cores", "memory", "huge pages", "OpenMP", "settings", "self-test"} <= subjects
    assert all(one["remedy"] for one in findings if one["level"] != "ok")
    (test,) = (one for one in findings if one["subject"] == "self-test")
    assert test["level"] == "ok" and "all answers the same" in test["words"]


def test_doctor_says_why_the_folder_of_compiled_kernels_is_not_used(mx, tmp_path: Path) -> None:
    def found(folder: Path) -> dict[str, str]:
        done = mxrt("doctor", "--no-test", "--json", env={"MXRT_CACHE_DIR": str(folder)})
        return next(one for one in json.loads(done.stdout)["findings"] if one["subject"] == "cache")

    shared = tmp_path / "shared"
    shared.mkdir()
    shared.chmod(0o777)
    finding = found(shared)
    assert finding["level"] == "note" and "other users can write it" in finding["words"]
    assert "chmod go-w" in finding["remedy"] and "MXRT_CACHE_DIR" in finding["remedy"]
    shared.chmod(0o700)
    assert found(shared)["level"] == "ok"
    assert found(tmp_path / "absent") == {
        "level": "ok",
        "subject": "cache",
        "words": f"{tmp_path / 'absent'}, made when it is needed",
        "remedy": None,
    }
    (tmp_path / "file").write_text("")
    finding = found(tmp_path / "file" / "below")
    assert finding["level"] == "note" and finding["remedy"]
    assert not (tmp_path / "absent").exists(), "looking makes no folder"


def test_doctor_names_cores_and_variables_that_are_wrong(mx) -> None:
    result = mxrt("doctor", "--no-test", env={"MXRT_CORES": "4000", "MXRT_CORE": "1"})
    assert result.returncode == 1, result.stdout
    assert re.search(r"^BAD +cores +4000 used", result.stdout, re.M)
    assert "MXRT_CORE is set, and mxrt reads no such variable" in result.stdout
    result = mxrt("doctor", "--no-test", env={"MXRT_CORES": "0"})
    assert result.returncode == 1 and "MXRT_CORES is '0'" in result.stdout and "Traceback" not in result.stderr


def test_doctor_names_the_instructions_of_other_processors(mx, monkeypatch) -> None:
    import platform

    from mxrt.cli import doctor

    monkeypatch.setattr(platform, "machine", lambda: "aarch64")
    monkeypatch.setattr(doctor._mxrt, "info", lambda: {"cpu_features": ["neon", "dotprod"]})
    (finding,) = doctor._processor()
    assert finding.level == "ok" and finding.words.endswith("; used: neon, dotprod"), finding
