"""Bodies and answers in the OpenAPI document."""

from __future__ import annotations

from typing import Any

import msgspec

from loloha.collector import result_shape, shape
from loloha.collector.problem import MEDIA_TYPE, TITLES
from loloha.wire.text import Message

SHAPES = (
    shape.ProblemDocument, Message, shape.ReceiptDocument, shape.Answers, shape.NewCampaign,
    shape.NewState, shape.AdminKeysDocument, shape.WantedAdminKey, shape.NewAdminKey,
    shape.AssignedKey, shape.CreatedDocument, shape.Campaigns,
    result_shape.RoundsDocument, result_shape.EstimatesDocument, result_shape.SeriesDocument,
    result_shape.SmoothedDocument, result_shape.Alarms, result_shape.Privacy, shape.Health,
)  # fmt: skip
"""All documents of requests and answers."""
WRITES = (400, 403, 408, 413, 415)
"""The errors that any request that writes can be answered, before its route reads it or not."""


def schemas() -> dict[str, Any]:
    """The JSON schema of each of them, by its name."""
    _, components = msgspec.json.schema_components(
        SHAPES, ref_template="#/components/schemas/{name}"
    )
    return components


def ref(document: type) -> dict[str, str]:
    """Where the schema of a document stands."""
    return {"$ref": f"#/components/schemas/{document.__name__}"}


def described(document: type, *, status: int = 200) -> dict[int | str, dict[str, Any]]:
    """The answer of a route: a JSON document."""
    content = {"application/json": {"schema": ref(document)}}
    return {status: {"description": document.__name__, "content": content}}


def problems(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """The errors of a route: those given, and those that every route can answer with."""
    content = {MEDIA_TYPE: {"schema": ref(shape.ProblemDocument)}}
    return {
        status: {"description": TITLES[status], "content": content}
        for status in sorted({*statuses, 421, 422, 429, 503})
    }


def uploads() -> dict[str, Any]:
    """The bodies that the upload route takes."""
    report = ref(Message)
    binary = {"type": "string", "format": "binary"}
    array = {"type": "array", "items": report}
    return {
        "requestBody": {
            "required": True,
            "description": "May be compressed with gzip, as Content-Encoding says.",
            "content": {
                "application/json": {"schema": {"oneOf": [report, array]}},
                "application/x-ndjson": {"schema": binary},
                "application/vnd.apache.arrow.stream": {"schema": binary},
            },
        },
        "responses": problems(425),
    }


def takes(document: type) -> dict[str, Any]:
    """The JSON body of a route."""
    content = {"application/json": {"schema": ref(document)}}
    return {"requestBody": {"required": True, "content": content}}
