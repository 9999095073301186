# SPDX-License-Identifier: Apache-2.0
"""Every parser of the privacy core that is given bytes from outside, with the errors it may raise.

Rules kept here:
* the errors are those of the parser's own documentation, and no wider;
* the list only grows at its end: a parser's place is part of every case's number.
"""

from __future__ import annotations

from log_witnesses import LOG_KEY, POLICY, receipt
from manifests import (
    LOG_ORIGIN,
    derived,
    guardian_round_key,
)
from parser_fuzz import Parser
from parser_inputs import (
    ANSWERS,
    CHECKPOINT,
    COORDINATOR,
    ENROLMENT,
    FEDERATION,
    GUARDIAN,
    KEY,
    LEAVES,
    NOW,
    OTHER,
    PARCELS,
    PLAIN_SHARE,
    RAW_ENVELOPE,
    REPORT,
    RESULT,
    ROSTER,
    SHORT,
    SIG,
    SMALL,
    TREE,
    bare,
    bytes_of,
    envelope_again,
    itself,
    leaf_again,
    only,
    open_share,
    parse_envelope,
    parse_leaf,
    parse_manifest,
    parse_policy,
    parse_report,
    parse_request_and_answer,
    parse_roster,
    parse_scan,
    parse_signed_manifest,
    parse_spends,
    proof_again,
    result_again,
    seal_share,
    share_again,
    sign_manifest,
    signed_again,
    signed_answer,
    spends,
    text_of,
    unsigned,
    with_hash,
)
from policies import text as policy_text
from windvane_privacy import canonical, envelope, manifest, roster, sealing, signed, tiles
from windvane_privacy import errors as e
from windvane_privacy.budget import parse_delta
from windvane_privacy.handed_over import read_hand_over
from windvane_privacy.identity import check_public
from windvane_privacy.leaf import LEAF_LABEL
from windvane_privacy.ledger_export import encode_spends
from windvane_privacy.log import encode_leaves, verify_receipt
from windvane_privacy.manifest import format_time, parse_time
from windvane_privacy.noise import measurement_json
from windvane_privacy.notes import parse_checkpoint, parse_verifier_key, verifier_key
from windvane_privacy.parcel_file import decode_answers, decode_parcels, encode_answers, encode_parcels
from windvane_privacy.proofs import LogProof, encode_log_proof, parse_log_proof
from windvane_privacy.remap import remap
from windvane_privacy.report_file import verify_file
from windvane_privacy.sums import CohortSums
from windvane_privacy.tally import RESULT_LABEL, read_result
from windvane_privacy.witness import Request, encode_request

MALFORMED = (e.MalformedInput,)
CARD = (e.MalformedInput, e.KeyRefused, e.SignatureInvalid)
PARSERS = (
    Parser(
        "canonical JSON",
        (LEAVES[0], bare(FEDERATION, b"")),
        canonical.decode,
        MALFORMED,
        lambda v, _: canonical.encode(v),
    ),
    Parser(
        "leaf", tuple(map(unsigned, LEAVES)), parse_leaf, (e.MalformedLeaf,), leaf_again, signed_again(LEAF_LABEL, KEY)
    ),
    Parser(
        "manifest",
        (manifest.encode(SMALL), manifest.encode(OTHER)),
        parse_manifest,
        (e.MalformedInput, e.ManifestError),
        lambda v, _: manifest.encode(v),
    ),
    Parser(
        "signed manifest",
        (manifest.encode(SMALL),),
        parse_signed_manifest,
        (e.MalformedInput, e.ManifestError),
        lambda v, _: signed.sign_manifest(v, COORDINATOR),
        sign_manifest,
    ),
    Parser("signed roster", (ROSTER.encode(),), parse_roster, MALFORMED, lambda v, _: v.encode()),
    Parser(
        "endorsement",
        (roster.endorse(ROSTER.roster, GUARDIAN).encode(),),
        roster.Endorsement.decode,
        MALFORMED,
        lambda v, _: v.encode(),
    ),
    Parser(
        "enrolment",
        (unsigned(ENROLMENT),),
        roster.read_enrolment,
        CARD,
        bare,
        signed_again(roster.ENROLMENT_LABEL, KEY),
    ),
    Parser(
        "guardian's card",
        (unsigned(signed.make_card(GUARDIAN, "Guardian 1", "group 1")),),
        signed.read_card,
        CARD,
        bare,
        signed_again(signed.CARD_LABEL, GUARDIAN),
    ),
    Parser(
        "federation",
        (FEDERATION.encode(),),
        signed.decode_federation,
        (e.MalformedInput, e.KeyRefused, e.ConfigurationError),
        lambda v, _: v.encode(),
    ),
    Parser(
        "checkpoint",
        (SHORT.encode(), CHECKPOINT.encode()),
        parse_checkpoint,
        MALFORMED,
        lambda v, _: v.encode(),
        tree=False,
    ),
    Parser(
        "proof of the log",
        (
            encode_log_proof(LogProof(2, tuple(TREE.inclusion(2, 6)), SHORT)),
            encode_log_proof(LogProof(0, (), SHORT)).replace(b"\nindex", b"\nextra YWJj\nindex", 1),
        ),
        parse_log_proof,
        MALFORMED,
        proof_again,
        tree=False,
    ),
    Parser(
        "request to a witness",
        (encode_request(Request(0, (), SHORT)), encode_request(Request(4, tuple(TREE.consistency(4, 6)), SHORT))),
        parse_request_and_answer,
        MALFORMED,
        lambda v, _: encode_request(v),
        tree=False,
    ),
    Parser(
        "verifier key",
        (verifier_key(LOG_ORIGIN, LOG_KEY.public).encode(),),
        lambda raw: parse_verifier_key(text_of(raw)),
        MALFORMED,
        lambda v, _: bytes_of(verifier_key(*v)),
        tree=False,
    ),
    Parser(
        "address of a tile",
        (b"tile/0/x001/234", b"tile/entries/007.p/5", b"tile/63/000"),
        lambda raw: tiles.parse_tile_path(text_of(raw)),
        MALFORMED,
        lambda v, _: bytes_of(v.path),
        tree=False,
    ),
    Parser(
        "tile",
        (derived("tile", 96),),
        lambda raw: tiles.parse_tile(raw, 3),
        MALFORMED,
        lambda v, _: b"".join(v),
        tree=False,
    ),
    Parser(
        "bundle of entries",
        (tiles.encode_bundle([b"", b"ab", LEAVES[1]]),),
        lambda raw: tiles.parse_bundle(raw, 3),
        MALFORMED,
        lambda v, _: tiles.encode_bundle(v),
        tree=False,
    ),
    Parser(
        "file of parcels",
        (encode_parcels(PARCELS[1:])[:-32], encode_parcels(PARCELS[:1])[:-32]),
        decode_parcels,
        MALFORMED,
        lambda v, _: encode_parcels(v),
        with_hash,
        tree=False,
    ),
    Parser(
        "file of answers",
        (encode_answers(ANSWERS)[:-32],),
        decode_answers,
        MALFORMED,
        lambda v, _: encode_answers(v),
        with_hash,
        tree=False,
    ),
    Parser(
        "handed-over envelope",
        (encode_parcels(PARCELS[1:2])[:-32],),
        read_hand_over,
        MALFORMED,
        lambda v, _: encode_parcels([v]),
        with_hash,
        tree=False,
    ),
    Parser(
        "envelope",
        (RAW_ENVELOPE[:-64],),
        parse_envelope,
        (e.MalformedEnvelope, e.BadMemberSignature),
        envelope_again,
        lambda content: content + KEY.sign(envelope.ENVELOPE_LABEL, content),
        tree=False,
    ),
    Parser("share", (PLAIN_SHARE,), open_share, (e.ShareError,), share_again, seal_share, tree=False),
    Parser(
        "answer with envelopes",
        (envelope.join_envelopes([RAW_ENVELOPE] * 2),),
        lambda raw: envelope.split_envelopes(raw, SMALL, 2),
        (e.MalformedEnvelope, e.SetMismatch),
        lambda v, _: envelope.join_envelopes(v),
        tree=False,
    ),
    Parser(
        "result",
        (unsigned(RESULT),),
        lambda raw: read_result(raw, GUARDIAN.public),
        (e.MalformedInput, e.ResultSignatureInvalid),
        result_again,
        signed_again(RESULT_LABEL, GUARDIAN),
    ),
    Parser(
        "sums",
        (CohortSums((5, 6), ((1, -2), (30, 4))).to_json(),),
        CohortSums.from_json,
        MALFORMED,
        lambda v, _: v.to_json(),
    ),
    Parser("report", (REPORT,), parse_report, MALFORMED, bare),
    Parser(
        "signature of a report",
        (SIG,),
        only(lambda raw: verify_file(REPORT, raw, COORDINATOR.public)),
        (e.MalformedInput, e.ReportSignatureInvalid),
        itself,
    ),
    Parser(
        "ledger's extract",
        (encode_spends(spends()),),
        parse_spends,
        MALFORMED,
        lambda v, _: encode_spends(v),
        tree=False,
    ),
    Parser(
        "line of the ledger's extract",
        tuple(encode_spends((one,))[:-1] for one in spends()),
        parse_spends,
        MALFORMED,
        lambda v, _: encode_spends(v),
        lambda content: content + b"\n",
    ),
    Parser(
        "stored measurement",
        (measurement_json(SMALL).encode(),),
        only(lambda raw: remap(text_of(raw), 9)),
        MALFORMED,
        itself,
    ),
    Parser(
        "policy", (policy_text().encode(),), parse_policy, (e.PolicyMissing, e.ConfigurationError), itself, tree=False
    ),
    Parser(
        "answer with the log",
        (b"\n".join(LEAVES[:3]), LEAVES[0]),
        parse_scan,
        (e.MalformedInput, e.LogError),
        lambda v, raw: encode_leaves(v.head.raw, [x.raw for x in v.leaves]),
        signed_answer,
        tree=False,
    ),
    Parser(
        "receipt",
        (receipt(LEAVES, 2, NOW, 6), receipt(LEAVES, 0, NOW, 1)),
        lambda raw: verify_receipt(raw, LEAVES[2 if b"index 2" in raw else 0], POLICY),
        (e.ReceiptRefused,),
        lambda v, raw: proof_again(parse_log_proof(v.raw), raw),
        tree=False,
    ),
    Parser(
        "time",
        (b"2026-07-01T00:00:00Z",),
        lambda raw: parse_time(text_of(raw)),
        MALFORMED,
        lambda v, _: format_time(v).encode(),
        tree=False,
    ),
    Parser(
        "delta",
        (b"1e-8", b"1e-12"),
        lambda raw: parse_delta(text_of(raw)),
        (e.ManifestError,),
        lambda v, _: f"1e-{len(str(v.denominator)) - 1}".encode(),
        tree=False,
    ),
    Parser("identity key", (KEY.public, GUARDIAN.public), only(check_public), (e.KeyRefused,), itself, tree=False),
    Parser(
        "round key",
        (guardian_round_key(1).public,),
        only(lambda raw: sealing.seal(raw, b"", b"")),
        (e.KeyRefused,),
        itself,
        tree=False,
    ),
)
