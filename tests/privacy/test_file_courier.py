# SPDX-License-Identifier: Apache-2.0
"""The courier without a network: what it answers, what it collects, and what no file can make it say."""

from __future__ import annotations

import pytest

from windvane_privacy.couriers import Parcel
from windvane_privacy.errors import (
    KeyFileTooOpen,
    LedgerDamaged,
    LotBeforeClose,
    NotReady,
    RemoteProblem,
    RoundBurned,
    RoundClosed,
    WindowNotOpen,
    WindvaneError,
)
from windvane_privacy.file_courier import FileCourier
from windvane_privacy.parcel_file import Answer, parcel_id, refused

LEAF = Parcel("leaf", "2026-Q3", b"{}")
ASKED = Parcel("manifest", "2026-Q3")
ENDORSED = Parcel("endorse", "2026-Q3", b"{}")


def test_an_answered_parcel_does_not_travel_again() -> None:
    courier = FileCourier({parcel_id(LEAF): Answer(b"receipt"), parcel_id(ASKED): Answer(b"manifest")})
    assert courier.exchange(LEAF) == b"receipt"
    assert courier.exchange(ASKED) == b"manifest"
    assert courier.outbox == ()


def test_an_answer_belongs_to_its_parcel_and_no_other() -> None:
    courier = FileCourier({parcel_id(LEAF): Answer(b"receipt")})
    for other in (
        Parcel("leaf", "2026-Q3", b"[]"),
        Parcel("leaf", "2026-Q4", b"{}"),
        Parcel("enrol", "2026-Q3", b"{}"),
    ):
        with pytest.raises(NotReady):
            courier.exchange(other)


def test_what_is_sent_waits_once_in_the_outbox_and_in_order() -> None:
    courier = FileCourier({})
    assert courier.exchange(ENDORSED) == b""
    for _ in range(2):
        with pytest.raises(NotReady, match="Carry"):
            courier.exchange(LEAF)
    assert courier.outbox == (ENDORSED, LEAF)


def test_a_question_without_an_answer_is_not_carried() -> None:
    courier = FileCourier({})
    with pytest.raises(NotReady, match="bundle"):
        courier.exchange(ASKED)
    assert courier.outbox == ()


@pytest.mark.parametrize("error", [RoundClosed("Too late."), WindowNotOpen("It opens later."), LotBeforeClose()])
def test_a_refusal_is_the_error_that_the_coordinator_named(error: WindvaneError) -> None:
    courier = FileCourier({parcel_id(LEAF): refused(error)})
    with pytest.raises(type(error)) as found:
        courier.exchange(LEAF)
    assert found.value.detail == error.detail
    # "Not yet" is no answer for good: only that travels again.
    assert courier.outbox == (() if isinstance(error, RoundClosed) else (LEAF,))


@pytest.mark.parametrize("error", [RoundBurned("x"), LedgerDamaged("x"), KeyFileTooOpen("x")])
def test_no_file_can_name_an_error_of_this_machine(error: WindvaneError) -> None:
    courier = FileCourier({parcel_id(LEAF): refused(error)})
    with pytest.raises(RemoteProblem):
        courier.exchange(LEAF)


def test_a_refusal_that_is_unknown_here_keeps_its_plain_words_only() -> None:
    answer = Answer(b"", "urn:windvane:problem:of-tomorrow", "a\x1b[31mred\\" + "x" * 1000)
    with pytest.raises(RemoteProblem) as found:
        FileCourier({parcel_id(LEAF): answer}).exchange(LEAF)
    assert found.value.detail.startswith("a31mred")
    assert len(found.value.detail) <= 300
