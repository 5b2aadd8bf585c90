"""What the OpenAPI document says about bodies that no framework model describes."""

from __future__ import annotations

from typing import Any

from loloha.collector.problem import MEDIA_TYPE, TITLES
from loloha.rules.report import LARGEST_ROUND

_TEXT, _COUNT, _NUMBER = {"type": "string"}, {"type": "integer", "minimum": 0}, {"type": "number"}
_FINGERPRINT = {"type": "string", "pattern": "^[0-9a-f]{64}$"}
_MAYBE = {"type": ["number", "null"]}
_NUMBERS = {"type": "array", "items": _MAYBE}


def _object(required: dict[str, Any], optional: dict[str, Any] | None = None) -> dict[str, Any]:
    return {
        "type": "object",
        "required": sorted(required),
        "properties": {**required, **(optional or {})},
    }


def _list(items: Any) -> dict[str, Any]:
    return {"type": "array", "items": items}


def _ref(name: str) -> dict[str, str]:
    return {"$ref": f"#/components/schemas/{name}"}


_SUMMARY = {
    "fingerprint": _FINGERPRINT,
    "name": _TEXT,
    "protocol": {"type": "object"},
    "bins": _COUNT,
    "schedule": _object({"start": _TEXT, "seconds": _COUNT}),
    "keys": {"enum": ["assigned", "drawn"]},
    "terms": _ref("Terms"),
    "needs_token": {"type": "boolean"},
    "created": _TEXT,
    "now": _object(
        {
            "round": {"type": "integer"},
            "first_open": {"type": "integer"},
            "last_open": {"type": "integer"},
        }
    ),
}

SCHEMAS: dict[str, Any] = {
    "Problem": _object(
        {"type": _TEXT, "title": _TEXT, "status": _COUNT, "detail": _TEXT}, {"reason": _TEXT}
    ),
    "Report": {
        **_object(
            {
                "version": {"const": 1},
                "campaign": _FINGERPRINT,
                "round": {"type": "integer", "minimum": 0, "maximum": LARGEST_ROUND},
                "reporter": {"type": "string", "pattern": "^[0-9a-fA-F]{32}$"},
                "y": {"type": "string", "pattern": "^([0-9a-fA-F]{2})+$"},
            },
            {
                "key": {"type": "string", "pattern": "^([0-9a-fA-F]{2})*$"},
                "ticket": {"type": "string", "pattern": "^([0-9a-fA-F]{32})?$"},
            },
        ),
        "additionalProperties": False,
    },
    "Receipt": _object(
        {
            "accepted": _COUNT,
            "duplicates": _COUNT,
            # The first thousand; all of them are counted in `reasons`.
            "refused": _list(_object({"index": _COUNT, "reason": _TEXT})),
        },
        {
            "reasons": {"type": "object", "additionalProperties": _COUNT},
            "reporter": _TEXT,
        },
    ),
    "AssignedKey": _object({"key": _TEXT, "ticket": _TEXT}),
    "Terms": _object({"late_seconds": _COUNT, "early_seconds": _COUNT, "minimum_cohort": _COUNT}),
    "NewCampaign": {
        **_object(
            {"campaign": {"type": "object"}},
            {
                "terms": {"type": "object"},
                "token": {"type": "boolean"},
                "expected_users": {"type": "integer", "minimum": 1},
                "accept_weak_privacy": {"type": "boolean"},
            },
        ),
        "additionalProperties": False,
    },
    "Created": _object(
        {
            "campaign": _ref("Campaign"),
            "created": {"type": "boolean"},
            "verdict": {"type": ["object", "null"]},
            "token": {"type": ["string", "null"]},
        }
    ),
    "Campaign": _object({**_SUMMARY, "document": {"type": "object"}}),
    "Campaigns": _object({"campaigns": _list(_object(_SUMMARY))}),
    "Rounds": _object(
        {
            "campaign": _FINGERPRINT,
            "rounds": _list(
                _object(
                    {
                        "round": {"type": "integer"},
                        "begins": {"type": ["string", "null"]},
                        "ends": {"type": ["string", "null"]},
                        "state": {"enum": ["before", "future", "open", "closed"]},
                        "n": _COUNT,
                        "duplicates": _COUNT,
                        "conflicts": _COUNT,
                        "refused": {"type": "object", "additionalProperties": _COUNT},
                        "shown": {"type": "boolean"},
                    }
                )
            ),
        }
    ),
    "Estimates": _object(
        {
            "campaign": _FINGERPRINT,
            "round": _COUNT,
            "begins": _TEXT,
            "ends": _TEXT,
            "state": {"enum": ["future", "open", "closed"]},
            "n": _COUNT,
            "minimum_cohort": _COUNT,
            "level": _NUMBER,
            "withheld": {"type": ["string", "null"]},
            "parameters": {"type": "object"},
        },
        {
            "values": _list(_COUNT),
            "labels": _list(_TEXT),
            "frequencies": _NUMBERS,
            "standard_errors": _NUMBERS,
            "lower": _NUMBERS,
            "upper": _NUMBERS,
            "projected": _NUMBERS,
            "bins": _COUNT,
            "simultaneous_error": _MAYBE,
            "clear": _COUNT,
        },
    ),
    "Series": _object(
        {
            "campaign": _FINGERPRINT,
            "level": _NUMBER,
            "minimum_cohort": _COUNT,
            "values": _list(_COUNT),
            "labels": _list(_TEXT),
            "rounds": _list(_COUNT),
            "begins": _list(_TEXT),
            "n": _list(_COUNT),
            "frequencies": _list({"type": ["array", "null"], "items": _MAYBE}),
            "standard_errors": _list({"type": ["array", "null"], "items": _MAYBE}),
            "parameters": {"type": "object"},
        }
    ),
    "Privacy": _object(
        {
            "campaign": _FINGERPRINT,
            "protocol": {"type": "object"},
            "eps_1": _NUMBER,
            "eps_inf": _MAYBE,
            "cap": _MAYBE,
            "growth": _list(_object({"reports": _COUNT, "eps": _NUMBER})),
            "windows": _list(_object({"rounds": _COUNT, "eps": _MAYBE})),
            "change": _list(_object({"reports": _COUNT, "auc": _MAYBE, "error": _MAYBE})),
            "link": _object({"auc": _MAYBE, "error": _MAYBE}),
            "parameters": {"type": "object"},
            "protected": _list(_TEXT),
            "leaks": _list(_TEXT),
            "text": _TEXT,
            "terms": _ref("Terms"),
            "keys": {"enum": ["assigned", "drawn"]},
        }
    ),
    "Health": _object({"status": {"const": "ok"}, "version": _TEXT}),
}


def described(name: str, *, status: int = 200) -> dict[int | str, dict[str, Any]]:
    """The answer of a route: a JSON document of the schema ``name``."""
    content = {"application/json": {"schema": _ref(name)}}
    return {status: {"description": name, "content": content}}


def problems(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """The errors of a route: those given, and those that every route can answer with."""
    content = {MEDIA_TYPE: {"schema": _ref("Problem")}}
    return {
        status: {"description": TITLES[status], "content": content}
        for status in sorted({*statuses, 422, 429, 503})
    }


def uploads() -> dict[str, Any]:
    """The bodies that the upload route takes."""
    report = _ref("Report")
    binary = {"type": "string", "format": "binary"}
    return {
        "requestBody": {
            "required": True,
            "description": "May be compressed with gzip, as Content-Encoding says.",
            "content": {
                "application/json": {"schema": {"oneOf": [report, _list(report)]}},
                "application/x-ndjson": {"schema": binary},
                "application/vnd.apache.arrow.stream": {"schema": binary},
            },
        },
        "responses": problems(425),
    }


def takes(name: str) -> dict[str, Any]:
    """The JSON body of a route."""
    content = {"application/json": {"schema": _ref(name)}}
    return {"requestBody": {"required": True, "content": content}}
