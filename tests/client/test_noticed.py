# SPDX-License-Identifier: Apache-2.0
"""What reading notices: counting alike calls together gives what looking at each of them gives."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from client_events import A, B, tag
from windvane_client import noticed as module
from windvane_client.events import MAIN, SIDE, AnyEvent, Call, Prompt, Vote
from windvane_client.noticed import Noticed
from windvane_privacy.catalogue import OTHER, UNKNOWN

HEADERS = st.fixed_dictionaries({
    "source": st.sampled_from(["claude_code", "litellm"]),
    "recorder": st.just("claude_code"),
    "reader": st.sampled_from(["claude_code/1.0.0", "claude_code/1.0.0+no-attempts"]),
    "key": st.binary(min_size=16, max_size=16),
    "person": st.sampled_from([None, tag("ana"), tag("ben")]),
    "conv": st.sampled_from([None, tag("c1"), tag("c2"), tag("c3")]),
    "thread": st.sampled_from([MAIN, SIDE]),
    "mode": st.sampled_from(["interactive", "unknown"]),
})  # fmt: skip
FAMILIES = st.sampled_from([A, B, OTHER, UNKNOWN])
EVENTS = st.lists(
    st.one_of(
        st.builds(lambda header, served: Call(**header, served=served), HEADERS, FAMILIES),
        st.builds(lambda header: Prompt(**header, origin="human"), HEADERS),
        st.builds(
            lambda header, kind: Vote(
                **header, kind_hint=kind, a=A, b=B, winner="a", blind="no", item=tag("i"), judge="person"
            ),
            HEADERS,
            st.sampled_from([None, OTHER, "coding"]),
        ),
    ),
    max_size=40,
)


@given(events=EVENTS, most=st.integers(1, 5))
def test_watching_a_file_notices_what_seeing_each_event_does(events: list[AnyEvent], most: int) -> None:
    one_by_one, watched = Noticed(), Noticed()
    for event in events:
        one_by_one.see(event)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "_MAX_ALIKE", most)
        assert list(watched.watch(events)) == events
    assert watched == one_by_one
    absorbed = Noticed()
    absorbed.absorb(watched.told())
    assert absorbed == one_by_one
