"""Report logs: the Arrow form of reports, and Parquet files of them that say what they belong to.

A log is a folder ``campaign=<fingerprint>/round=<round>/<digest>.parquet``. Each file holds reports
of one round; its metadata repeat campaign, protocol and round, and its name is the digest of its
content, so that a damaged, moved or foreign file is noticed before a single report is counted.
"""

from typing import Any

from loloha.report import REPORTER_BYTES
from loloha.reportlog.arrow import FORMAT, VERSION, from_arrow, rules, schema, to_arrow
from loloha.reportlog.folder import Contents, LogFile, ReportLog
from loloha.reportlog.writer import Writer

__all__ = [
    "FORMAT",
    "REPORTER_BYTES",
    "VERSION",
    "Contents",
    "LogFile",
    "ReportLog",
    "Writer",
    "from_arrow",
    "generate",
    "rules",
    "schema",
    "to_arrow",
]


def __getattr__(name: str) -> Any:
    # Populations lie above logs; the name is documented here.
    if name == "generate":
        from loloha.population.generation import generate

        return generate
    raise AttributeError(f"module 'loloha.reportlog' has no attribute {name!r}")
