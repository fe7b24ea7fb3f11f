"""Fits of a few dozen rows lose more to threads than they gain."""

from __future__ import annotations

import pytest

from precisionnet.runner.worker import one_thread


@pytest.fixture(autouse=True)
def _one_thread():
    with one_thread():
        yield
