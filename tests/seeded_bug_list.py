# SPDX-License-Identifier: Apache-2.0
"""The seeded privacy bugs: where each goes, and the test that must notice it.

Rules kept here:
* each bug is one that somebody has really made, here or elsewhere, or could make with the best intentions;
* `old` occurs once in the file, `new` leaves a program that still runs: looked for is a wrong number, not a crash.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

VOTES = "privacy/windvane_privacy/votes.py"
NOISE = "privacy/windvane_privacy/noise.py"
MANIFEST = "privacy/windvane_privacy/manifest.py"
BUDGET = "privacy/windvane_privacy/budget.py"
POLICY = "privacy/windvane_privacy/policy.py"
LEDGER = "privacy/windvane_privacy/ledger.py"
VIEW = "privacy/windvane_privacy/ledger_view.py"
ADMISSION = "privacy/windvane_privacy/admission.py"
SUBMISSION = "privacy/windvane_privacy/submission.py"
SEALING = "privacy/windvane_privacy/sealing.py"
SHARES = "privacy/windvane_privacy/shares.py"
AGENT = "client/windvane_client/agent.py"
OUTCOMES = "client/windvane_client/outcomes_table.py"
SIGNALS = "client/windvane_client/signals.py"

DRAW = "        noisy: list[int] = gaussian(len(exact), share_scale)(exact)\n"


@dataclass(frozen=True, slots=True)
class Bug:
    """One bug: `old` becomes `new` in `file`, and `test` must fail."""

    name: str
    file: str
    old: str
    new: str
    test: str


def changed(bug: Bug, root: Path) -> str:
    """The text of the bug's file with the bug in it.

    Raises:
        ValueError: the text to be replaced is not there exactly once.
    """
    source = (root / bug.file).read_text(encoding="utf-8")
    if source.count(bug.old) != 1:
        raise ValueError(f"{bug.name}: its place in {bug.file} is there {source.count(bug.old)} times, not once.")
    return source.replace(bug.old, bug.new)


def _test(file: str, name: str) -> str:
    return f"tests/{file}.py::{name}"


BUGS = (
    # --- noise ---
    Bug(
        "noise never added",
        NOISE,
        "drawn = noise.draw(exact, manifest.share_scale)",
        "drawn = [int(entry) for entry in exact]",
        _test("privacy/test_audit_privacy", "test_the_real_path_holds_its_claim"),
    ),
    Bug(
        "scale halved",
        NOISE,
        "drawn = noise.draw(exact, manifest.share_scale)",
        "drawn = noise.draw(exact, manifest.share_scale / 2)",
        _test("privacy/test_audit_privacy", "test_the_real_path_holds_its_claim"),
    ),
    Bug(
        "h counted twice",
        MANIFEST,
        "return share_scale(self.noise.s, self.noise.h)",
        "return share_scale(self.noise.s, self.noise.h**2)",
        _test("privacy/test_noise", "test_a_members_own_share_costs_no_more_than_h_rho"),
    ),
    Bug(
        "noise on the net preferences only, voters exact",
        NOISE,
        "        return noisy\n",
        "        noisy[1::2] = [int(entry) for entry in exact[1::2]]\n        return noisy\n",
        _test("privacy/test_noise", "test_what_is_drawn_is_centred_on_the_exact_vector_with_the_share_s_scale"),
    ),
    Bug(
        "noise used again for the next round",
        NOISE,
        DRAW,
        "        kept = self.__dict__.setdefault('kept', gaussian(len(exact), share_scale)(exact * 0))\n"
        "        noisy: list[int] = [int(a) + b for a, b in zip(exact, kept)]\n",
        _test("privacy/test_noise", "test_two_releases_of_one_vector_differ"),
    ),
    Bug(
        "noise from a keyed function of the round",
        NOISE,
        DRAW,
        "        import hashlib\n\n"
        "        words = [hashlib.sha256(b'key%d' % i).digest()[:8] for i in range(12 * len(exact))]\n"
        "        even = [int.from_bytes(word, 'big') / 2**64 for word in words]\n"
        "        bell = [share_scale * (sum(even[12 * i : 12 * i + 12]) - 6) for i in range(len(exact))]\n"
        "        noisy = [round(int(value) + extra) for value, extra in zip(exact, bell)]\n",
        _test("privacy/test_noise", "test_two_releases_of_one_vector_differ"),
    ),
    Bug(
        "floating-point noise, rounded",
        NOISE,
        DRAW,
        "        import secrets\n\n"
        "        coins = secrets.SystemRandom()\n"
        "        noisy = [round(int(value) + coins.gauss(0, share_scale)) for value in exact]\n",
        _test("privacy/test_randomness", "test_every_entry_goes_through_opendp_once_as_a_whole_number"),
    ),
    Bug(
        "continuous noise from OpenDP, rounded",
        NOISE,
        'dp.atom_domain(T="i64")',
        'dp.atom_domain(T="f64", nan=False)',
        _test("privacy/test_opendp_pitfalls", "test_int_means_32_bits_so_we_say_i64"),
    ),
    Bug(
        "noise from numpy's generator",
        NOISE,
        DRAW,
        "        spread = np.random.default_rng().normal(0, share_scale, len(exact))\n"
        "        noisy = [int(value) for value in exact + np.rint(spread).astype(np.int64)]\n",
        _test("privacy/test_randomness", "test_every_entry_goes_through_opendp_once_as_a_whole_number"),
    ),
    Bug(
        "any OpenDP is taken, also the one with the faulty sampler",
        NOISE,
        'require_opendp(importlib.metadata.version("opendp"))',
        'importlib.metadata.version("opendp")',
        _test("privacy/test_noise", "test_the_source_asks_for_the_installed_opendp"),
    ),
    Bug(
        "the exact vector is kept in memory",
        NOISE,
        "        _overwrite(exact)\n",
        "        pass\n",
        _test("privacy/test_submission", "test_the_exact_vector_is_overwritten"),
    ),
    Bug(
        "noise shares so small that their sum is no discrete Gaussian",
        MANIFEST,
        "MIN_SHARE_SCALE = 26",
        "MIN_SHARE_SCALE = 2",
        _test("privacy/test_noise", "test_a_share_below_26_is_refused"),
    ),
    Bug(
        "the noise is clamped where it still has weight",
        MANIFEST,
        "math.ceil(10 * self.share_scale)",
        "math.ceil(6.5 * self.share_scale)",
        _test("privacy/test_randomness", "test_a_released_entry_may_lie_ten_scales_outside_and_no_less"),
    ),
    # --- votes and bounds ---
    Bug(
        "clamp of the net removed",
        VOTES,
        "np.clip(toward_a - toward_b, -C, C)",
        "(toward_a - toward_b)",
        _test("privacy/test_bounds", "test_without_the_clamp_an_organisation_has_no_bound"),
    ),
    Bug(
        "clamp of the voters removed",
        VOTES,
        "np.minimum(toward_a + toward_b, C)",
        "(toward_a + toward_b)",
        _test("privacy/test_bounds", "test_vector_is_what_the_formula_says"),
    ),
    Bug(
        "people sampled instead of clamped",
        VOTES,
        "    for person in votes:\n",
        "    for person in list(votes)[-manifest.bounds.C :]:\n",
        _test("privacy/test_bounds", "test_taking_people_instead_of_clamping_breaks_the_bound"),
    ),
    Bug(
        "a person's second vote in a cell let through",
        VOTES,
        "            len(cells) == len(person)\n            and all(",
        "            all(",
        _test("privacy/test_votes", "test_votes_that_break_a_bound_are_not_counted"),
    ),
    Bug(
        "two votes of a person in one cell",
        VOTES,
        "candidates.setdefault(cell.signal, []).append(Vote(cell, toward_a))",
        "candidates.setdefault(cell.signal, []).extend([Vote(cell, toward_a)] * 2)",
        _test("privacy/test_votes", "test_votes_without_coins_never_change_with_others_or_with_row_order"),
    ),
    Bug(
        "a person counted twice",
        VOTES,
        "            (toward_a if vote.toward_a else toward_b)[layout.index[vote.cell]] += 1",
        "            (toward_a if vote.toward_a else toward_b)[layout.index[vote.cell]] += 2",
        _test("privacy/test_audit_privacy", "test_one_person_moves_the_vector_before_noise_by_39_at_most"),
    ),
    Bug(
        "more votes of a signal than q",
        VOTES,
        "        if len(found) > q[signal]:",
        "        if len(found) > q[signal] + 1:",
        _test("privacy/test_votes", "test_one_candidate_more_than_q_is_one_too_many"),
    ),
    Bug(
        "unbalanced votes: shares of success compared",
        VOTES,
        "    return _drawn(row_a, t, sampler) - _drawn(row_b, t, sampler)",
        "    return row_a.successes * row_b.trials - row_b.successes * row_a.trials + 0 * t",
        _test("privacy/test_votes", "test_votes_are_balanced"),
    ),
    Bug(
        "the first tasks instead of drawn ones",
        VOTES,
        "sampler.sample(range(row.trials), t)",
        "range(t)",
        _test("privacy/test_votes", "test_trials_are_drawn_hypergeometrically"),
    ),
    Bug(
        "a threshold over people: votes only where five take part",
        VOTES,
        "if rows_are_valid(own, manifest)]\n    votes =",
        "if rows_are_valid(own, manifest) and len(people) >= 5]\n    votes =",
        _test("privacy/test_votes", "test_votes_without_coins_never_change_with_others_or_with_row_order"),
    ),
    Bug(
        "one person's bad rows silence everybody",
        VOTES,
        "    votes = [_votes(own, manifest, cells, sampler) for own in valid]",
        "    votes = [_votes(own, manifest, cells, sampler) for own in valid if len(valid) == len(people)]",
        _test("privacy/test_votes", "test_a_person_with_bad_rows_gives_no_vote_and_changes_nobody_elses"),
    ),
    Bug(
        "automation let in",
        OUTCOMES,
        "if kind != OTHER and episode.mode == INTERACTIVE]",
        'if kind != OTHER and episode.mode in (INTERACTIVE, "automation")]',
        _test("client/test_modes", "test_a_conversation_in_which_a_program_had_a_turn_gives_no_completion"),
    ),
    Bug(
        "automation's tool calls let in",
        SIGNALS,
        "if mode == INTERACTIVE and tool.outcome",
        "if tool.outcome",
        _test("client/test_modes", "test_no_other_mode_reaches_the_table"),
    ),
    Bug(
        "coins that somebody can seed",
        AGENT,
        "else secrets.SystemRandom()",
        'else __import__("random").Random(2026)',
        _test("client/test_agent_randomness", "test_an_agent_that_is_told_nothing_uses_the_systems_generator"),
    ),
    # --- what it costs ---
    Bug(
        "wrong Q: cost and sensitivity of fewer votes",
        MANIFEST,
        "return Fraction(VOTE_NORM**2 * Q, 2 * s * s)",
        "return Fraction(VOTE_NORM**2 * (Q - 1), 2 * s * s)",
        _test("privacy/test_noise", "test_opendp_and_the_ledger_agree_on_rho_exactly"),
    ),
    Bug(
        "a vote of norm 12: the number of voters forgotten",
        MANIFEST,
        "VOTE_NORM = 13",
        "VOTE_NORM = 12",
        _test("privacy/test_audit_privacy", "test_one_person_moves_the_vector_before_noise_by_39_at_most"),
    ),
    Bug(
        "local guarantee without h",
        POLICY,
        "h * m.rho + overlap.local",
        "m.rho + overlap.local",
        _test("privacy/test_policy", "test_each_limit_lets_the_edge_pass_and_refuses_the_next_by_its_own_name"),
    ),
    Bug(
        "overlapping rounds not counted together",
        POLICY,
        "m.rho + overlap.rho",
        "m.rho",
        _test("privacy/test_policy", "test_rounds_with_overlapping_events_count_together"),
    ),
    Bug(
        "printed epsilon rounded to the nearest",
        BUDGET,
        "math.ceil(Fraction(value) * 1000)",
        "round(Fraction(value) * 1000)",
        _test("privacy/test_budget", "test_guarantees_of_a_large_federation"),
    ),
    Bug(
        "charge skipped on failure",
        VIEW,
        "            for x in self.rounds()\n        ]",
        "            for x in self.rounds()\n            if x.state is not State.BURNED\n        ]",
        _test("privacy/test_ledger_refusals", "test_a_burned_round_counts_against_a_persons_cap_for_ever"),
    ),
    Bug(
        "failed rounds do not overlap",
        VIEW,
        "FROM round WHERE round_id <> ? AND",
        "FROM round WHERE state <> 'burned' AND round_id <> ? AND",
        _test("privacy/test_ledger", "test_a_failed_round_stays_charged_and_counts_with_overlapping_events"),
    ),
    Bug(
        "only people with a vote are charged",
        SUBMISSION,
        "persons=collected.people,",
        "persons=tuple(p for p, own in zip(collected.people, collected.votes) if own),",
        _test("privacy/test_submission", "test_everyone_with_a_row_is_charged_whether_or_not_a_vote_resulted"),
    ),
    Bug(
        "lifetime cap ignored",
        SUBMISSION,
        "if admits(person) for row in own]",
        "for row in own]",
        _test("privacy/test_submission", "test_a_person_at_the_cap_gives_no_vote_and_is_not_charged"),
    ),
    Bug(
        "lifetime cap without this round's own cost",
        ADMISSION,
        "+ unknown + rho <= cap",
        "+ unknown <= cap",
        _test("privacy/test_ledger", "test_a_person_charged_for_sixteen_quarters_is_dropped_in_the_seventeenth"),
    ),
    # --- drawn once, for one agreement ---
    Bug(
        "second draw after a restart",
        LEDGER,
        '            if self.round(manifest.round) is not None:\n                raise IllegalTransition("This',
        '            if False:\n                raise IllegalTransition("This',
        _test("privacy/test_ledger", "test_noise_is_never_drawn_twice_for_a_round"),
    ),
    Bug(
        "a draw that an old backup lost is not noticed",
        AGENT,
        "        self._resynchronise(found)\n",
        "",
        _test("client/test_agent_copies", "test_restored_backup_burns_the_round"),
    ),
    Bug(
        "a copy's commitment burns nothing",
        AGENT,
        "            return self._burn(entry, agreed.manifest, BurnReason.FOREIGN_COMMITMENT)",
        "            return entry",
        _test("client/test_agent_copies", "test_cloned_machine_first_commitment_wins"),
    ),
    Bug(
        "an approval of any manifest will do",
        LEDGER,
        "            if approved[0] != manifest.sha256:",
        "            if False:",
        _test("privacy/test_ledger", "test_nothing_is_drawn_without_an_approval_of_this_manifest"),
    ),
    Bug(
        "manifest not bound into the commitment",
        SUBMISSION,
        '"manifest": manifest.sha256,',
        '"manifest": "0" * 64,',
        _test("privacy/test_submission", "test_the_commitment_names_the_envelope_and_the_agreement"),
    ),
    Bug(
        "the envelope leaves before its receipt",
        LEDGER,
        "entry.state not in (State.COMMITTED, State.REVEALED)",
        "entry.state not in (State.DRAWN, State.COMMITTED, State.REVEALED)",
        _test("privacy/test_ledger", "test_an_envelope_leaves_only_after_a_receipt_for_its_hash"),
    ),
    Bug(
        "one random number for all coefficients of the shares",
        SHARES,
        "coefficients = [secret, *(field.random_elements(len(secret)) for _ in range(t - 1))]",
        "coefficients = [secret, *[field.random_elements(len(secret))] * (t - 1)]",
        _test("privacy/test_shares", "test_any_combination_of_two_shares_of_three_is_uniform"),
    ),
)
