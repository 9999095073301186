# SPDX-License-Identifier: Apache-2.0
"""LiteLLM: the fields of a row that are read, of the spend-log table and of the standard logging payload alike.

Rules kept here:
* no struct names messages, response, the proxy's request, an error text, an address or a price;
* numbers and truth values may come as strings, and `metadata` and `request_tags` as JSON inside a string;
* a code word is a string that is looked up after decoding.
"""

from __future__ import annotations

from typing import Final

import msgspec

NONE: Final = msgspec.Raw(b"")
Text = str | None
Number = int | float | str | None
Flag = bool | str | None

ANSWERS: Final = frozenset({
    "completion", "acompletion", "text_completion", "atext_completion", "responses", "aresponses",
    "anthropic_messages", "aanthropic_messages", "generate_content", "agenerate_content", "generate_content_stream",
    "agenerate_content_stream",
})  # fmt: skip
"""Call types that give one answer of a chat model."""
OTHERS: Final = frozenset({
    "embedding", "aembedding", "image_generation", "aimage_generation", "image_edit", "aimage_edit", "moderation",
    "amoderation", "transcription", "atranscription", "speech", "aspeech", "rerank", "arerank", "search", "asearch",
    "ocr", "aocr", "create_batch", "acreate_batch", "retrieve_batch", "aretrieve_batch", "create_file", "acreate_file",
    "file_content", "afile_content", "call_mcp_tool", "list_mcp_tools", "pass_through_endpoint",
    "allm_passthrough_route", "llm_passthrough_route", "arealtime", "_arealtime", "create_video", "acreate_video",
    "vector_store_search", "avector_store_search", "aget_responses", "adelete_responses", "acount_tokens", "assistants",
})  # fmt: skip
"""Call types that are read and tell nothing about a chat model."""
FAILED, SUCCEEDED = "failure", "success"
ROUTED_CLASSES: Final = {
    "timeout": "timeout",
    "apitimeouterror": "timeout",
    "apiconnectionerror": "network",
    "contextwindowexceedederror": "context",
    "ratelimiterror": "rate_vendor",
    "budgetexceedederror": "rate_own",
    "internalservererror": "5xx",
    "serviceunavailableerror": "5xx",
    "badgatewayerror": "5xx",
    "apierror": "5xx",
    "cancellederror": "aborted",
    "clientdisconnectederror": "aborted",
}
"""`error_class`, a name of the library's own exceptions, to a class of attempt errors."""
OWN_LIMIT: Final = "litellm_"
"""Start of `error_rate_limit_category` where the gateway's own limiter or budget refused."""
_YES: Final = frozenset({"true", "1", "t", "yes"})
CSV_COLUMNS: Final = frozenset({
    "request_id", "id", "litellm_call_id", "trace_id", "session_id", "call_type", "status", "startTime", "endTime",
    "model", "model_group", "cache_hit", "end_user", "user", "api_key", "team_id", "request_tags", "user_agent",
    "metadata",
})  # fmt: skip


class ErrorInformation(msgspec.Struct):
    """What kind of failure it was, in codes."""

    error_code: str | int | None = None
    error_class: Text = None
    error_rate_limit_category: Text = None


class Metadata(msgspec.Struct):
    """`metadata` of both shapes."""

    status: Text = None
    user_api_key_hash: Text = None
    user_api_key: Text = None
    user_api_key_alias: Text = None
    user_api_key_user_id: Text = None
    user_api_key_end_user_id: Text = None
    user_api_key_team_id: Text = None
    user_agent: Text = None
    attempted_retries: Number = None
    attempted_fallbacks: Number = None
    original_model_group: Text = None
    internal_call_origin: Text = None
    is_silent_experiment: Flag = None
    error_information: ErrorInformation | None = None


class Headers(msgspec.Struct, rename=lambda name: "x-litellm-" + name.replace("_", "-")):
    """Response headers of the gateway."""

    attempted_retries: Number = None
    attempted_fallbacks: Number = None


class HiddenParams(msgspec.Struct):
    """`hidden_params`."""

    additional_headers: Headers | None = None


class ModelParameters(msgspec.Struct):
    """`model_parameters`."""

    user: Text = None


class Row(msgspec.Struct, kw_only=True):
    """One row. `request_id`: table; `id`, `litellm_call_id`, `hidden_params`: payload."""

    call_type: Text = None
    request_id: Text = None
    id: Text = None
    litellm_call_id: Text = None
    trace_id: Text | msgspec.UnsetType = msgspec.UNSET
    session_id: Text | msgspec.UnsetType = msgspec.UNSET
    status: Text = None
    startTime: Number = None
    endTime: Number = None
    model: Text = None
    model_group: Text = None
    cache_hit: Flag = None
    end_user: Text | msgspec.UnsetType = msgspec.UNSET
    user: Text | msgspec.UnsetType = msgspec.UNSET
    api_key: Text = None
    team_id: Text = None
    user_agent: Text = None
    is_silent_experiment: Flag = None
    error_information: ErrorInformation | None = None
    metadata: msgspec.Raw = NONE
    request_tags: msgspec.Raw = NONE
    hidden_params: HiddenParams | None = None
    model_parameters: ModelParameters | None = None


class TypeOnly(msgspec.Struct):
    """What decides before any field is checked."""

    call_type: Text = None


STRUCTS: Final = (ErrorInformation, Metadata, Headers, HiddenParams, ModelParameters, Row, TypeOnly)


def number(raw: Number) -> int | None:
    """A count; None where it is missing or is none."""
    if isinstance(raw, str):
        return int(raw) if raw.isascii() and raw.isdigit() and len(raw) < 10 else None
    return int(raw) if raw is not None and 0 <= raw < 1e9 else None


def flag(raw: Flag) -> bool:
    """A truth value; "None", "False" and the empty text are none."""
    return raw.strip().casefold() in _YES if isinstance(raw, str) else bool(raw)
