"""Fixtures of the tests of surveys: the bundled poet, and a survey of it over all poems."""

from typing import Any

import pytest
from surveyed_poems import POEMS

import regard
from regard.surveys import Survey


@pytest.fixture(scope="module")
def poet() -> Any:
    return regard.load("poet")


@pytest.fixture(scope="module")
def whole(poet: Any) -> Survey:
    return regard.survey(poet, POEMS)
