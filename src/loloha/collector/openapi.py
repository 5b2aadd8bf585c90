"""What the OpenAPI document says about the bodies of a route."""

from __future__ import annotations

from typing import Any

from loloha.collector.problem import MEDIA_TYPE, TITLES
from loloha.collector.shape import ProblemDocument
from loloha.wire.text import Message


def ref(shape: type) -> dict[str, str]:
    """Where the schema of a shape stands."""
    return {"$ref": f"#/components/schemas/{shape.__name__}"}


def described(shape: type, *, status: int = 200) -> dict[int | str, dict[str, Any]]:
    """The answer of a route: a JSON document of this shape."""
    content = {"application/json": {"schema": ref(shape)}}
    return {status: {"description": shape.__name__, "content": content}}


def problems(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """The errors of a route: those given, and those that every route can answer with."""
    content = {MEDIA_TYPE: {"schema": ref(ProblemDocument)}}
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
        "responses": problems(408, 425),
    }


def takes(shape: type) -> dict[str, Any]:
    """The JSON body of a route."""
    content = {"application/json": {"schema": ref(shape)}}
    return {"requestBody": {"required": True, "content": content}}
