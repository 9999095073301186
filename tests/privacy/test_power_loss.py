# SPDX-License-Identifier: Apache-2.0
"""Power failures at every call of a ledger's life: no draw is doubled, no charge is lost, every ledger opens.

The real ledger and Python's own SQLite run on a disk that keeps, drops or tears what was not synced. Known randomness:
what survives; the seed is fixed, and every trial can be run again by its number.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from math import gcd
from pathlib import Path

import pytest

from conftest import not_run
from ledger_steps import finish, manifest_of, new_ledger, open_ledger
from power_disk import Disk
from power_life import Lives, World, live
from power_vfs import PowerVfs, loaded_library
from slices import our_turn
from windvane_privacy import ledger as ledger_module
from windvane_privacy import sqlite_file
from windvane_privacy.errors import IllegalTransition, LedgerDamaged, LedgerError, LedgerFormat, WindvaneError
from windvane_privacy.guardian_ledger import FILE as GUARDIAN_FILE
from windvane_privacy.guardian_ledger import GuardianLedger
from windvane_privacy.ledger import Ledger

SEED = 20260701
Trial = Callable[[int, int], set[str]]
SLICE, SLICES = 5_000, 10


@pytest.fixture(scope="module")
def vfs() -> Iterator[PowerVfs]:
    library = loaded_library()
    if library is None:
        not_run("SQLite is built into this Python", "use a Python that links libsqlite3, such as Debian's")
    made = PowerVfs(library)
    with made.default():
        yield made


def _first(folder: Path) -> bytes:
    """A ledger with a past: one finished round."""
    with new_ledger(folder) as ledger:
        finish(ledger, manifest_of("2026-Q2", start="2026-04-01", end="2026-07-01"))
    return (folder / "ledger.db").read_bytes()


@pytest.fixture
def lives(tmp_path: Path, vfs: PowerVfs) -> Lives:
    vfs.disk = Disk()
    made = Lives(vfs, tmp_path / "l")
    made.prepare(_first(made.folder))
    return made


def _violations(trial: Trial, numbers: range) -> Counter[str]:
    found: Counter[str] = Counter()
    for number in numbers:
        problems = trial(number, SEED)
        found.update(problems)
        if problems:
            found.setdefault(f"trial {number}", 1)  # the numbers tell which to run again
    return found


def test_the_ledger_really_runs_on_the_disk_that_forgets(lives: Lives) -> None:
    on_disk = (lives.folder / "ledger.db").read_bytes()
    opened = lives.vfs.opened
    lives.vfs.disk = Disk.holding({lives.name: on_disk})
    with open_ledger(lives.folder) as ledger:
        assert live(ledger, World()) == 8
        assert lives.vfs.disk.contents().keys() == {lives.name, f"{lives.name}-journal"}
    assert lives.vfs.opened > opened
    assert lives.vfs.disk.contents()[lives.name] != on_disk
    assert (lives.folder / "ledger.db").read_bytes() == on_disk


def test_every_step_of_a_round_has_points_of_failure(lives: Lives) -> None:
    assert lives.names == ["draw", "commit", "reveal", "accept", "draw", "commit", "reveal", "burn"]
    assert len(lives.points) > 200


def test_power_loss_never_doubles_a_draw(lives: Lives) -> None:
    # A stride without a factor in common with the number of points visits all of them evenly.
    stride = next(one for one in range(7, 99) if gcd(one, len(lives.points)) == 1)
    assert _violations(lives.trial, range(0, 250 * stride, stride)) == {}


def test_a_disk_that_fails_and_recovers_never_doubles_a_draw(lives: Lives) -> None:
    """The ledger stays open, the step is tried again, and only then the power fails."""
    stride = next(one for one in range(7, 99) if gcd(one, len(lives.points)) == 1)
    assert _violations(lives.flaky_trial, range(0, 150 * stride, stride)) == {}


def test_a_disk_that_gives_nothing_is_refused_by_name_and_believed_again_later(lives: Lives) -> None:
    raw, world = lives.starts[3]
    lives.vfs.disk = disk = Disk.holding({lives.name: raw})
    disk.unreadable = True
    with pytest.raises(LedgerError) as caught:
        open_ledger(lives.folder)
    assert not isinstance(caught.value, LedgerDamaged)  # nothing says that the file itself is broken
    disk.unreadable = False
    with open_ledger(lives.folder) as ledger:
        ledger._sql.execute("PRAGMA shrink_memory")  # pages are read again when they are asked for
        disk.unreadable = True
        for ask in (ledger.rounds, ledger.lifetime, ledger.approvals, lambda: ledger.round("2026-Q3")):
            with pytest.raises(LedgerError):
                ask()
        with pytest.raises(LedgerError):
            live(ledger, world, 1)
        disk.unreadable = False
        live(ledger, world)
        world.check(ledger)
    assert world.problems == set()


def test_the_trials_bite_without_syncs(lives: Lives, monkeypatch: pytest.MonkeyPatch) -> None:
    durable = sqlite_file._connect

    def careless(path: Path) -> object:
        connection = durable(path)
        connection.execute("PRAGMA synchronous = OFF")
        return connection

    monkeypatch.setattr(sqlite_file, "_connect", careless)
    found = _violations(lives.trial, range(0, 150 * 11, 11))
    assert {"unopenable", "double draw", "a charge was lost"} <= found.keys(), found


def test_the_trials_bite_when_a_hash_leaves_before_it_is_stored(lives: Lives, monkeypatch: pytest.MonkeyPatch) -> None:
    real, raw = Ledger.draw, lives.starts[0][0]

    def hasty(ledger: Ledger, manifest: object, **how: object) -> object:
        world.show(manifest.round, how["make"](None).noisy)
        return real(ledger, manifest, **how)

    monkeypatch.setattr(Ledger, "draw", hasty)
    doubled = 0
    for cut in range(1, 40):
        world = World()
        lives.vfs.disk = Disk.holding({lives.name: raw}, cut=cut)
        with suppress(WindvaneError), open_ledger(lives.folder) as ledger:
            live(ledger, world, 1)
        lives.vfs.disk = Disk.holding(lives.vfs.disk.after_power_loss(random.Random(cut)))
        with open_ledger(lives.folder) as ledger:
            live(ledger, world, 1)
        doubled += "double draw" in world.problems
    assert doubled > 5


def test_a_guardians_ledger_on_a_failing_disk_refuses_by_name_and_goes_on(tmp_path: Path, vfs: PowerVfs) -> None:
    """The guardian's ledger stands on the same file: no opening twice, no trace."""
    folder = tmp_path / "g"
    vfs.disk = Disk()
    GuardianLedger.create(folder)
    name = str(folder / GUARDIAN_FILE.name)
    raw, refused, calls = Path(name).read_bytes(), 0, 99
    for failing in range(1, 40):
        vfs.disk = Disk.holding({name: raw}, failing=[failing])
        try:
            with GuardianLedger(folder) as ledger:
                try:
                    ledger.begin("2026-Q3", "a" * 64, bytes(32), b"leaf")
                except LedgerError:
                    refused += 1
                    if ledger.round("2026-Q3") is None:
                        ledger.begin("2026-Q3", "a" * 64, bytes(32), b"leaf")
                with pytest.raises(IllegalTransition):
                    ledger.begin("2026-Q3", "a" * 64, bytes(32), b"another leaf")
        except LedgerError:
            refused += 1
        calls = min(calls, vfs.disk.calls)
    assert refused >= calls // 2


# --- the format's number --------------------------------------------------------------------------------------------

NEXT = replace(
    ledger_module.FILE,
    format=3,
    upgrades={
        1: (
            "CREATE TABLE added(round_id TEXT PRIMARY KEY, note TEXT NOT NULL) STRICT",
            "INSERT INTO added SELECT round_id, 'from the first format' FROM round",
        ),
        2: ("ALTER TABLE round ADD COLUMN note TEXT", "UPDATE added SET note = 'from the second format'"),
    },
)
"""What a later version might hold: two steps, each of several statements that write on several pages."""


def _upgraded(ledger: Ledger) -> tuple[int, int]:
    query = "SELECT count(*) FROM added WHERE note = 'from the second format'"
    return ledger._sql.execute("PRAGMA user_version").fetchone()[0], ledger._sql.execute(query).fetchone()[0]


def test_an_older_format_is_brought_up_and_loses_nothing(lives: Lives, monkeypatch: pytest.MonkeyPatch) -> None:
    raw, world = lives.starts[-1]
    lives.vfs.disk = Disk.holding({lives.name: raw})
    monkeypatch.setattr(ledger_module, "FILE", NEXT)
    with open_ledger(lives.folder) as ledger:
        world.check(ledger)
        assert world.problems == set()
        assert _upgraded(ledger) == (3, 3)
    monkeypatch.undo()
    with pytest.raises(LedgerFormat):  # the version before does not touch what a newer one wrote
        open_ledger(lives.folder)


def test_a_format_that_is_too_old_is_refused_and_not_changed(lives: Lives, monkeypatch: pytest.MonkeyPatch) -> None:
    raw, _world = lives.starts[0]
    lives.vfs.disk = Disk.holding({lives.name: raw})
    monkeypatch.setattr(ledger_module, "FILE", replace(NEXT, upgrades={2: NEXT.upgrades[2]}))
    with pytest.raises(LedgerFormat):
        open_ledger(lives.folder)
    assert lives.vfs.disk.contents()[lives.name] == raw


def _upgrade_trial(lives: Lives, number: int) -> None:
    """A power failure while the format changes, and another while that is gone over again."""
    chance = random.Random(f"{SEED} upgrade {number}")
    raw, before = lives.starts[number % len(lives.starts)]
    world = before.copy()
    files = {lives.name: raw}
    for cut in (1 + number // len(lives.starts) % 40, chance.randint(1, 40)):
        lives.vfs.disk = Disk.holding(files, cut=cut)
        with suppress(WindvaneError), open_ledger(lives.folder) as ledger:
            assert _upgraded(ledger)[0] == 3
        files = lives.vfs.disk.after_power_loss(chance)
    lives.vfs.disk = Disk.holding(files)
    with open_ledger(lives.folder) as ledger:
        world.check(ledger)
        assert world.problems == set(), f"trial {number}"
        assert _upgraded(ledger) == (3, len(ledger.rounds())), f"trial {number}"


def test_power_loss_never_leaves_half_a_format(lives: Lives, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ledger_module, "FILE", NEXT)
    for number in range(0, 9 * 40 * 7, 14):
        _upgrade_trial(lives, number)


@pytest.mark.slow
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("part", range(SLICES))
def test_fifty_thousand_power_losses_never_double_a_draw(lives: Lives, part: int) -> None:
    our_turn(part, SLICES)
    assert _violations(lives.trial, range(part * SLICE, (part + 1) * SLICE)) == {}


@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_five_thousand_failing_disks_never_double_a_draw(lives: Lives) -> None:
    assert _violations(lives.flaky_trial, range(5_000)) == {}


@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_five_thousand_power_losses_never_leave_half_a_format(lives: Lives, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ledger_module, "FILE", NEXT)
    for number in range(5_000):
        _upgrade_trial(lives, number)
