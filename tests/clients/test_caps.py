"""What answers spend, and so whether a limit covers them, in Python and in JavaScript."""

import json
import subprocess

from javascript import CLIENT, node
from loloha.client.limit import covers
from loloha.protocols import LGRR, OLOLOHA, RAPPOR, BiLOLOHA, Protocol

# The budgets of large tables are those at which they spend less than independent answers.
PROTOCOLS: list[Protocol] = [
    *(
        OLOLOHA(k=max(g, 20), eps_inf=eps, eps_1=eps / 2, g=g, memo="joint")
        for g, eps in [(3, 0.01), (3, 2.0), (5, 5.0), (97, 30.0), (1_009, 10.0), (10_007, 10.5)]
    ),
    OLOLOHA(k=20, eps_inf=2.0, eps_1=1.0, g=3, memo="joint", m0=0.2),
    LGRR(k=7, eps_inf=1 / 3, eps_1=0.1),
    BiLOLOHA(k=9, eps_inf=0.7, eps_1=0.1),
    RAPPOR(k=6, eps_inf=2.0, eps_1=1.0),
]
_SCRIPT = """
import { Protocol } from "CLIENT/src/protocol.js";
import { covers } from "CLIENT/src/limit.js";
const answer = ([spec, rows]) => {
  const protocol = new Protocol(spec);
  return rows.map(([answers, limits]) => {
    const spent = protocol.spentBy(answers);
    return [spent, limits.map((limit) => covers(limit, spent))];
  });
};
let text = "";
for await (const piece of process.stdin) text += piece;
console.log(JSON.stringify(JSON.parse(text).map(answer)));
"""


def test_a_limit_that_covers_in_one_language_covers_in_the_other() -> None:
    """With a table of 10 007 answers the caps were 2e-12 apart, the tolerance of a limit 1e-12."""
    asked = []
    for one in PROTOCOLS:
        most = one.encoding.memo_cells
        rows = []
        for answers in sorted({1, 2, most // 2, most} - {0}):
            spent = one.spent(answers)
            # The amount itself, and on both sides of what rounding is allowed to hide.
            limits = [spent * (1 + off) for off in (0, 1e-15, -1e-15, -9e-13, -1.1e-12, -1e-6)]
            rows.append((answers, limits))
        asked.append((one, rows))
    ran = subprocess.run(
        [node(), "--input-type=module", "-e", _SCRIPT.replace("CLIENT", CLIENT.as_uri())],
        input=json.dumps([[one.to_dict(), rows] for one, rows in asked]),
        capture_output=True,
        text=True,
        check=True,
    )
    for (one, rows), answered in zip(asked, json.loads(ran.stdout), strict=True):
        for (answers, limits), (spent, fits) in zip(rows, answered, strict=True):
            mine = one.spent(answers)
            # The last bits are those of each language's own logarithm.
            assert abs(spent - mine) <= 1e-15 * mine, (one, answers)
            assert fits == [covers(limit, mine) for limit in limits], (one, answers)
            assert fits == [True] * 4 + [False] * 2
