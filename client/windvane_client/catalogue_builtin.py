# SPDX-License-Identifier: Apache-2.0
"""The catalogue that ships with this version: model families with their name patterns.

Rules kept here:
* it is data (`data/catalogue.json`), versioned, and changes only between windows: a manifest carries its own copy;
* family and generation make a family; a date, a provider or a region never does;
* no two families match one name: what resolves twice is refused at load.
"""

from __future__ import annotations

from functools import cache
from importlib import resources

import msgspec

from windvane_privacy.catalogue import Catalogue, Family
from windvane_privacy.errors import ManifestError

SCHEMA = "windvane/catalogue/v1"


class CatalogueFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The data file. `version` is year.quarter.patch."""

    schema: str
    version: str
    families: tuple[Family, ...]


def read_catalogue(raw: bytes) -> CatalogueFile:
    """The data file's content.

    Raises:
        ManifestError: not of this schema, a malformed id or pattern, or an id that two families match.
    """
    try:
        file = msgspec.json.decode(raw, type=CatalogueFile)
    except msgspec.DecodeError:
        raise ManifestError("The catalogue is not of its schema.") from None
    if file.schema != SCHEMA:
        raise ManifestError("The catalogue is of another schema.")
    catalogue = Catalogue(file.families)
    for family in file.families:
        if catalogue.resolve(family.id) != family.id:
            raise ManifestError("A family id of the catalogue does not resolve to itself.")
    return file


@cache
def builtin_file() -> CatalogueFile:
    """The shipped file."""
    return read_catalogue(resources.files("windvane_client").joinpath("data/catalogue.json").read_bytes())


@cache
def builtin_catalogue() -> Catalogue:
    """The shipped catalogue."""
    return Catalogue(builtin_file().families)
