"""Fixtures of the tests of the server."""

from __future__ import annotations

import pytest

import serving


@pytest.fixture(scope="module")
def server(mx):
    """A server of the models of the tests."""
    models = {name: serving.model(mx, name) for name in serving.SERVED}
    with mx.serve.Server(models, port=0, max_body=1 << 20) as running:
        yield running


@pytest.fixture(scope="module")
def good(mx, server):
    """Checks that a server, this one if none is named, answers a good request bit for bit."""
    wanted = serving.called(mx, "digits_cnn", 3)

    def check(running=server) -> None:
        assert serving.same(serving.asked(running, "digits_cnn", serving.golden("digits_cnn", 3)), wanted)

    return check
