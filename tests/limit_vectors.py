"""Golden vectors of limits: who may enrol, how often one-round protocols report, old states."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from loloha.client.seal import checksum
from loloha.protocols import GRR, LGRR, OLOLOHA, OUE, RAPPOR, BiLOLOHA, DBitFlipPM, Protocol

BI = BiLOLOHA(k=5, eps_inf=2.0, eps_1=1.0)
JOINT = OLOLOHA(k=20, eps_inf=2.0, eps_1=1.0, g=3, memo="joint")
TENTH = LGRR(k=3, eps_inf=0.1, eps_1=0.05)
ONE = GRR(k=5, eps=1.0)

# Protocols of one agreement, what was committed before, the limit, whether enrolment is taken.
ENROLMENTS: list[tuple[list[Protocol], float, Any, bool]] = [
    ([BI], 0.0, None, True), ([BI], 0.0, 4.0, True), ([BI], 0.0, 3.999, False),
    ([BI], 0.0, 4.0 * (1 - 5e-13), True), ([BI], 0.0, 4.0 * (1 - 2e-12), False),
    ([BI], 0.0, 2.0, False), ([BI], 0.0, 0, False), ([BI], 0.0, -4.0, False),
    ([BI], 0.0, "4", False), ([BI], 0.0, True, False), ([BI], 0.0, 4, True),
    ([BI], 4.0, 8.0, True), ([BI], 4.0, 7.0, False), ([BI], 4.0, None, True),
    ([BI, BI], 0.0, 8.0, True), ([BI, BI], 0.0, 7.9, False), ([BI, BI, BI], 4.0, 16.0, True),
    ([TENTH], 0.0, 0.3, True), ([TENTH], 0.0, 0.2999, False), ([TENTH] * 3, 0.0, 0.9, True),
    ([TENTH], 0.6, 0.9, True), ([TENTH] * 3, 0.1, 1.0, True),
    ([JOINT], 0.0, 6.0, True), ([JOINT], 0.0, JOINT.cap, True), ([JOINT], 0.0, 2.0, False),
    ([OLOLOHA(k=20, eps_inf=2.0, eps_1=1.0, g=3)], 0.0, 6.0, True),
    ([OLOLOHA(k=20, eps_inf=2.0, eps_1=1.0, g=3)], 0.0, 5.0, False),
    ([LGRR(k=1000, eps_inf=2.0, eps_1=1.0)], 0.0, 1999.0, False),
    ([LGRR(k=1000, eps_inf=2.0, eps_1=1.0)], 0.0, 2000.0, True),
    ([RAPPOR(k=6, eps_inf=2.0, eps_1=1.0)], 0.0, 11.0, False),
    ([RAPPOR(k=6, eps_inf=2.0, eps_1=1.0)], 0.0, 12.0, True),
    ([DBitFlipPM(k=9, eps_inf=2.0, b=5, d=2)], 0.0, 5.0, False),
    ([DBitFlipPM(k=9, eps_inf=2.0, b=5, d=2)], 0.0, 6.0, True),
    ([DBitFlipPM(k=9, eps_inf=2.0, b=5, d=5)], 0.0, 10.0, True),
    ([ONE], 0.0, 1.0, True), ([ONE], 0.0, 0.999, False), ([ONE], 2.0, 2.5, False),
    ([ONE, BI], 0.0, 5.0, True), ([ONE, BI], 0.0, 4.5, False), ([ONE, ONE], 0.0, 2.0, True),
]  # fmt: skip

# A one-round protocol, its limit, and how many reports there are, 100 at most.
REPORTS: list[tuple[Protocol, Any, int]] = [
    (ONE, 1.0, 1), (ONE, 1.999, 1), (ONE, 2.0, 2), (ONE, 3.7, 3), (ONE, None, 100),
    (GRR(k=5, eps=0.1), 0.3, 3), (GRR(k=5, eps=0.1), 0.7, 7), (GRR(k=5, eps=0.1), 0.69, 6),
    (GRR(k=5, eps=1 / 3), 1.0, 3), (OUE(k=4, eps=0.7), 2.1, 3), (GRR(k=5, eps=0.01), 0.29, 29),
]  # fmt: skip


def limit_vectors() -> Iterator[dict[str, Any]]:
    """Enrolments; one-round protocols; states, and whether they report and may be reset."""
    for protocols, before, limit, fits in ENROLMENTS:
        plain = [one.to_dict() for one in protocols]
        yield {"protocols": plain, "committed_before": before, "limit": limit, "fits": fits}
    for protocol, limit, reports in REPORTS:
        yield {"protocol": protocol.to_dict(), "limit": limit, "reports": reports}
    for members, reports, resets in STATES:
        yield {"state": _state(members), "reports": reports, "resets": resets}


# Members of a state, whether it reports, and whether it may be reset. One without committed_before
# was written by release 0.2.0.
STATES: list[tuple[dict[str, Any], bool, bool]] = [
    ({"limit": 2.0}, False, False),
    ({"limit": 3.9}, False, False),
    ({"limit": 4.0}, True, False),
    ({"limit": 8.0}, True, True),
    ({"limit": None}, True, True),
    ({"limit": 8.0, "spent_before": 2.0}, False, False),
    ({"limit": None, "spent_before": 2.0}, True, True),
    ({"limit": 8.0, "spent_before": 2.0, "committed_before": 4.0}, True, False),
    ({"limit": 12.0, "spent_before": 2.0, "committed_before": 4.0}, True, True),
    ({"limit": 7.0, "spent_before": 2.0, "committed_before": 4.0}, False, False),
    ({"limit": 99.0, "spent_before": 0.5}, False, False),
    ({"protocol": ONE, "limit": 3.0, "reports": 2}, True, True),
    ({"protocol": ONE, "limit": 3.0, "reports": 3}, False, False),
    ({"protocol": ONE, "limit": 3.0, "spent_before": 2.0}, True, True),
    ({"protocol": ONE, "limit": 3.0, "spent_before": 3.0}, False, False),
    ({"protocol": ONE, "limit": 3.0, "spent_before": 1.0, "committed_before": 3.0}, False, False),
    ({"protocol": ONE, "limit": None, "reports": 3}, True, True),
]


def _state(members: dict[str, Any]) -> dict[str, Any]:
    protocol = members.get("protocol", BI)
    plain = {
        "type": "loloha-client", "key": 5 if protocol is BI else None, "memo": [],
        "sent": [], "answered": [], "reports": 0, "spent_before": 0.0, "secret": "07" * 32,
        **members, "protocol": protocol.to_dict(),
    }  # fmt: skip
    plain["version"] = 3 if "committed_before" in members else 2
    return {**plain, "checksum": checksum(plain)}
