"""Writes ``tests/recorded/programs.json``: what MXNet 1.9.1 answers."""

from __future__ import annotations

import json

import mxnet

from . import PROGRAMS, RECORDED, run

RECORDED.write_text(json.dumps({name: run(mxnet, name) for name in PROGRAMS}, indent=0) + "\n")
