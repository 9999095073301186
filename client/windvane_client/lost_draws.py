# SPDX-License-Identifier: Apache-2.0
"""Commitments of ours in the log that the ledger does not hold: an old backup, a copy, or a ledger that is gone.

Rules kept here:
* only entries with our valid signature count, and of one round the first;
* each comes with its round's manifest, signed by the pinned coordinator and logged as `agreement` demands: what is
  charged is what was agreed;
* nothing is written here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from windvane_privacy.agreement import check_logged
from windvane_privacy.couriers import Courier, Parcel
from windvane_privacy.errors import UnknownManifest
from windvane_privacy.identity import SigningKey
from windvane_privacy.log import Scan, signed_by
from windvane_privacy.manifest import Manifest
from windvane_privacy.signed import verify_signed_manifest


@dataclass(frozen=True, slots=True)
class LostDraw:
    """A draw that the log proves: its round's manifest and the hash that was committed."""

    manifest: Manifest
    commit_hash: str


def lost_draws(
    scan: Scan, courier: Courier, key: SigningKey, coordinator: bytes, known: Callable[[str], bool]
) -> Iterator[LostDraw]:
    """Every draw of ours in the log whose round is not `known`, in the log's order.

    Raises:
        ManifestError: the coordinator's manifest of such a round is another one than the log names.
    """
    found = set()
    for leaf in scan.leaves:
        if leaf.type != "commitment" or leaf.key_id != key.key_id or leaf.round in found or known(leaf.round):
            continue
        if not signed_by(leaf, key.public):
            continue
        manifest = verify_signed_manifest(courier.exchange(Parcel("manifest", leaf.round)), coordinator)
        if manifest.round != leaf.round:
            raise UnknownManifest
        check_logged(manifest, scan.leaves)
        found.add(leaf.round)
        yield LostDraw(manifest, leaf.fields["hash"])
