# SPDX-License-Identifier: Apache-2.0
"""Changes one small thing of a privacy module at a time and asks whether a test notices.

Rules kept here:
* nothing on the disk is changed: each mutant exists in a child process only, where its functions take the place of the
  module's own;
* every child runs the real tests of the module up to the first failure; a time-out counts as noticed;
* texts for people, annotations and decorators are not mutated: they decide nothing;
* without a mutant the same child passes: else every mutant would seem to be noticed;
* a survivor is printed with its line, so that somebody can say why it survives.

    python tests/privacy/mutation.py votes noise budget policy [--every N] [--first N] [--out FILE]
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import copy
import io
import json
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import FunctionType, ModuleType

import pytest
from _pytest.runner import runtestprotocol

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = "windvane_privacy"
TESTS = {
    "votes": ("test_votes", "test_votes_counts", "test_declared_ties", "test_bounds", "test_submission"),
    "noise": ("test_noise", "test_randomness", "test_opendp_pitfalls", "test_submission"),
    "budget": ("test_budget", "test_noise"),
    "policy": ("test_policy",),
}
LENGTHY = (
    "distinct_cells", "ignore_other_people", "hypergeometrically", "balanced", "equally_likely", "beyond_39",
    "beyond_72", "more_than_39", "sampler", "shares_of_h", "centred", "accountant", "beyond_its_clamp",
)  # fmt: skip
"""Parts of names of tests that take long: left out unless `--all` is given."""
LONGEST = 100
"""Seconds that the tests of one mutant may take."""

COMPARE: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In,
}  # fmt: skip
ARITHMETIC: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Add, ast.Div: ast.Mult, ast.FloorDiv: ast.Mult,
    ast.Pow: ast.Mult, ast.Mod: ast.Mult, ast.BitAnd: ast.BitOr, ast.BitOr: ast.BitAnd,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Mutant:
    """One change: where, and what it is."""

    module: str
    line: int
    what: str
    tree: ast.Module


# --- making mutants ---------------------------------------------------------------------------------------------------


def mutants(module: str, source: str) -> Iterator[Mutant]:
    """Every mutant of a module, in order of its lines."""
    tree = ast.parse(source)
    for number, _node in enumerate(ast.walk(tree)):
        place = _node_at(tree, number)
        for what, change in _changes(place):
            mutated = copy.deepcopy(tree)
            if _in_prose(tree, place):
                break
            change(_node_at(mutated, number), mutated)
            ast.fix_missing_locations(mutated)
            yield Mutant(module, getattr(place, "lineno", 0), what, mutated)


def _node_at(tree: ast.Module, number: int) -> ast.AST:
    for index, node in enumerate(ast.walk(tree)):
        if index == number:
            return node
    raise IndexError(number)


def _changes(node: ast.AST) -> list:
    """(description, function that changes this node in place) for one node."""
    found: list = []
    if isinstance(node, ast.Compare):
        for i, operator in enumerate(node.ops):
            if type(operator) in COMPARE:
                new = COMPARE[type(operator)]
                found.append((f"{type(operator).__name__} -> {new.__name__}", _set_item("ops", i, new)))
    elif isinstance(node, ast.BinOp) and type(node.op) in ARITHMETIC:
        new_op = ARITHMETIC[type(node.op)]
        found.append((f"{type(node.op).__name__} -> {new_op.__name__}", _set("op", new_op)))
    elif isinstance(node, ast.BoolOp):
        other = ast.Or if isinstance(node.op, ast.And) else ast.And
        found.append((f"{type(node.op).__name__} -> {other.__name__}", _set("op", other)))
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not | ast.USub):
        found.append(
            (f"without {type(node.op).__name__}", _set("op", ast.UAdd if isinstance(node.op, ast.USub) else _Id))
        )
    elif isinstance(node, ast.Constant) and type(node.value) is bool:
        found.append((f"{node.value} -> {not node.value}", _value(not node.value)))
    elif isinstance(node, ast.Constant) and type(node.value) in (int, float):
        found.append((f"{node.value} -> {node.value + 1}", _value(node.value + 1)))
    elif isinstance(node, ast.If | ast.IfExp | ast.While):
        found.append(("condition turned round", _negate))
    elif isinstance(node, ast.Return) and node.value is not None and not _is_none(node.value):
        found.append(("returns None", _value(ast.Constant(None))))
    elif isinstance(node, ast.Raise) or (isinstance(node, ast.Expr) and not isinstance(node.value, ast.Constant)):
        found.append(("statement left out", _left_out))
    elif isinstance(node, ast.AugAssign):
        found.append(("assignment left out", _left_out))
    return found


class _Id(ast.Not):
    """Marks `not x` that becomes `x`: as `not not x`."""


def _set(name: str, kind: type[ast.AST]):
    def change(node: ast.AST, _tree: ast.Module) -> None:
        if kind is _Id:
            node.operand = ast.UnaryOp(ast.Not(), node.operand)  # type: ignore[attr-defined]
        else:
            setattr(node, name, kind())

    return change


def _set_item(name: str, index: int, kind: type[ast.AST]):
    def change(node: ast.AST, _tree: ast.Module) -> None:
        getattr(node, name)[index] = kind()

    return change


def _value(value: object):
    def change(node: ast.AST, _tree: ast.Module) -> None:
        node.value = value  # type: ignore[attr-defined]

    return change


def _negate(node: ast.AST, _tree: ast.Module) -> None:
    node.test = ast.UnaryOp(ast.Not(), node.test)  # type: ignore[attr-defined]


def _left_out(node: ast.AST, tree: ast.Module) -> None:
    for parent in ast.walk(tree):
        for _field, value in ast.iter_fields(parent):
            if isinstance(value, list) and node in value:
                value[value.index(node)] = ast.copy_location(ast.Pass(), node)
                return


def _is_none(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is None


def _in_prose(tree: ast.Module, node: ast.AST) -> bool:
    """Whether the node lies in an annotation, a decorator or an import."""
    for parent in ast.walk(tree):
        fixed: list[ast.AST | None] = []
        if isinstance(parent, ast.FunctionDef):
            arguments = [*parent.args.args, *parent.args.kwonlyargs, parent.args.vararg, parent.args.kwarg]
            fixed = [*parent.decorator_list, parent.returns, *(a.annotation for a in arguments if a)]
        elif isinstance(parent, ast.ClassDef):
            fixed = [*parent.decorator_list, *(word.value for word in parent.keywords)]
        elif isinstance(parent, ast.AnnAssign):
            fixed = [parent.annotation]
        if any(inner is node for part in fixed if part is not None for inner in ast.walk(part)):
            return True
    return False


# --- running the tests of one -----------------------------------------------------------------------------------------


class Trial:
    """A plugin that runs one list of collected tests once for each mutant, each time in a child process."""

    def __init__(self, module: str, chosen: Sequence[Mutant], tell: Callable[[Mutant, bool], None]) -> None:
        self.module, self.chosen, self.tell = module, chosen, tell
        self.sound = False
        self.survivors: list[Mutant] = []

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Everything is loaded and collected by now; nothing has run."""
        items = sorted(session.items, key=lambda item: any(part in item.name for part in LENGTHY))
        loaded = sys.modules[f"{PACKAGE}.{self.module}"]
        self.sound = _passes(items, lambda: None)
        for mutant in self.chosen if self.sound else ():
            survived = _passes(items, lambda: put_in_place(loaded, mutant))  # noqa: B023 - called at once
            if survived:
                self.survivors.append(mutant)
            self.tell(mutant, survived)
        return True


def _passes(items: Sequence[pytest.Item], prepare: Callable[[], None]) -> bool:
    child = os.fork()
    if child == 0:
        signal.alarm(LONGEST)
        nothing = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nothing, 1)
        os.dup2(nothing, 2)
        code = 1
        try:
            prepare()
            code = int(any(report.failed for item in items for report in runtestprotocol(item, log=False)))
        finally:
            os._exit(code)
    _child, status = os.waitpid(child, 0)
    return os.WIFEXITED(status) and os.WEXITSTATUS(status) == 0


def put_in_place(loaded: ModuleType, mutant: Mutant) -> None:
    """Give a loaded module the functions and the numbers of a mutant; whoever imported a function has the mutant's."""
    made = ModuleType(loaded.__name__)
    made.__file__ = loaded.__file__
    sys.modules[loaded.__name__] = made  # dataclasses look their module up; the loaded one comes back below
    try:
        exec(compile(mutant.tree, str(loaded.__file__), "exec"), made.__dict__)
    finally:
        sys.modules[loaded.__name__] = loaded
    for name, new in vars(made).items():
        old = getattr(loaded, name, None)
        if isinstance(new, type) and isinstance(old, type) and new.__module__ == loaded.__name__:
            for part, inner in vars(new).items():
                _swap(vars(old).get(part), inner)
        elif callable(new) or isinstance(new, ModuleType) or name.startswith("__"):
            _swap(old, new)
        else:
            setattr(loaded, name, new)


def _swap(old: object, new: object) -> None:
    for wrapper in ("__wrapped__", "fget", "__func__"):
        if hasattr(old, "cache_clear"):
            old.cache_clear()
        old, new = getattr(old, wrapper, old), getattr(new, wrapper, new)
    if isinstance(old, FunctionType) and isinstance(new, FunctionType):
        if len(old.__code__.co_freevars) == len(new.__code__.co_freevars):
            old.__code__ = new.__code__
        old.__defaults__, old.__kwdefaults__ = new.__defaults__, new.__kwdefaults__


def module_path(module: str) -> Path:
    """The file of a privacy module."""
    return ROOT / "privacy" / PACKAGE / f"{module}.py"


def main(arguments: Sequence[str]) -> int:
    """Mutates the named modules; the exit code is 1 where fewer than nine in ten mutants are noticed."""
    parser = argparse.ArgumentParser()
    parser.add_argument("modules", nargs="+", choices=sorted(TESTS))
    parser.add_argument("--every", type=int, default=1, help="only each N-th mutant")
    parser.add_argument("--first", type=int, default=0, help="number of the first one")
    parser.add_argument("--all", action="store_true", help="with the tests that take long, too")
    parser.add_argument("--out", type=Path, help="one JSON line a mutant")
    asked = parser.parse_args(arguments)
    os.chdir(ROOT)
    worst = 1.0
    for module in asked.modules:
        begun = time.monotonic()
        chosen = list(mutants(module, module_path(module).read_text(encoding="utf-8")))[asked.first :: asked.every]

        def tell(mutant: Mutant, survived: bool) -> None:
            if asked.out:
                word = "survived" if survived else "noticed"
                with asked.out.open("a", encoding="utf-8") as file:
                    file.write(json.dumps([mutant.module, mutant.line, mutant.what, word]) + "\n")

        trial = Trial(module, chosen, tell)
        files = [f"tests/privacy/{name}.py" for name in TESTS[module]]
        skip = () if asked.all else ("-k", f"not ({' or '.join(LENGTHY)})")
        with contextlib.redirect_stdout(io.StringIO()):
            pytest.main([*files, *skip, "-q", "-p", "no:randomly", "-p", "no:cacheprovider"], [trial])
        if not trial.sound:
            print(f"{module}: its tests do not pass without a mutant, so nothing can be said.")
            return 2
        score = 1 - len(trial.survivors) / len(chosen)
        worst = min(worst, score)
        seconds = time.monotonic() - begun
        print(f"{module}: {len(chosen)} mutants, {len(trial.survivors)} survived, {100 * score:.1f} %, {seconds:.0f} s")
        for mutant in trial.survivors:
            print(f"  line {mutant.line}: {mutant.what}", flush=True)
    return 0 if worst >= 0.9 else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
