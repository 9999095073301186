# SPDX-License-Identifier: Apache-2.0
"""`windvane member hand-over`: the envelope that the coordinator ignores, as a file for two guardians.

Rules kept here:
* thin: when an envelope may be handed over is decided in `windvane_client.hand_over`;
* the file is the one that `submit --to-file` writes: a guardian can hold it, and the coordinator can still take it.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from windvane.carried import FromFile, write_carried
from windvane.terminal import Json, RoundName, out, print_json

HERE = Path("windvane-member")
State = Annotated[Path, typer.Option("--state", help="Folder of this member.")]


def hand_over(
    round_id: RoundName,
    to_file: Annotated[Path, typer.Option("--to-file", help="Write the envelope here, for two guardians.")],
    state: State = HERE,
    from_file: FromFile = None,
    as_json: Json = False,
) -> None:
    """Two days after a reveal that the log ignores: write the same envelope for two guardians, who hold the lot."""
    from windvane.member import agent_of
    from windvane_client.hand_over import hand_over as take
    from windvane_client.state import MemberState
    from windvane_privacy.couriers import Parcel
    from windvane_privacy.parcel_file import encode_parcels

    with agent_of(MemberState.open(state), from_file) as agent:
        envelope = take(agent, round_id)
    write_carried(to_file, encode_parcels([Parcel("reveal", round_id, envelope)]))
    if as_json:
        print_json({"round": round_id, "file": str(to_file)})
        return
    out.print(f"Written: {to_file}. Give it to two guardians; each runs `windvane guardian hold FILE`.", markup=False)
    out.print("Give it to the coordinator as well: `windvane coordinator receive FILE` still takes it.", markup=False)
