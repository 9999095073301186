# SPDX-License-Identifier: Apache-2.0
"""Status and error codes fall into the closed list of classes; nothing is guessed."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from windvane_client.events import ERROR_CLASSES, INFRA_CLASSES
from windvane_client.readers.failures import UNCLASSED, class_of_code, class_of_status, error_class


@pytest.mark.parametrize(
    ("status", "codes", "marker", "expected"),
    [
        (429, (), None, "rate_vendor"),
        ("429", (), None, "rate_vendor"),
        (429, (), "rate_own", "rate_own"),
        (429, ("usage_limit_reached",), None, "rate_own"),
        (529, (), None, "overload"),
        (None, ("overloaded_error",), None, "overload"),
        (500, ("overloaded_error",), None, "overload"),
        (500, (), None, "5xx"), (502, (), None, "5xx"), (503, (), None, "5xx"), ("503", (), None, "5xx"),
        (408, (), None, "timeout"), (504, (), None, "timeout"),
        (None, ("ECONNRESET",), None, "network"), (None, ("ENOTFOUND",), None, "network"),
        (None, ("ETIMEDOUT",), None, "timeout"), (None, ("FailedToOpenSocket",), None, "network"),
        (None, ("UND_ERR_SOCKET",), None, "network"), (None, ("ConnectionRefused",), None, "network"),
        (400, ("context_length_exceeded",), None, "context"), (400, (), "context", "context"),
        (400, (), None, "client_4xx"), (401, (), None, "client_4xx"), (404, (), None, "client_4xx"),
        ("undefined", (), "aborted", "aborted"), (None, ("ABORT_ERR",), None, "aborted"),
        ("undefined", (), None, UNCLASSED), (None, (), None, UNCLASSED), (None, ("brand new",), None, UNCLASSED),
        (200, (), None, UNCLASSED), ("", (None,), None, UNCLASSED), (None, (529,), None, "overload"),
        (None, (), "network", "network"),
    ],
)  # fmt: skip
def test_table(status, codes, marker, expected):
    assert error_class(status, codes, marker) == expected


def test_what_says_nothing_opens_no_infrastructure_episode():
    assert UNCLASSED not in INFRA_CLASSES


@given(
    st.one_of(st.integers(), st.text(max_size=12), st.none()), st.one_of(st.integers(), st.text(max_size=12), st.none())
)
def test_the_domain_is_closed(status, code):
    assert error_class(status, (code,)) in ERROR_CLASSES
    for found in (class_of_status(status), class_of_code(code)):
        assert found is None or found in ERROR_CLASSES
