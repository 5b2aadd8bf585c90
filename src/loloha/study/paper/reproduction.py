"""The whole evaluation: which parts were asked for, what they need, and the page at the end."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path

from loloha.errors import ParameterError
from loloha.study.paper import costs, figures, fit, tables
from loloha.study.paper.contender import PUBLISHED
from loloha.study.paper.difference import differences
from loloha.study.paper.execution import Measurements, Progress, measure_grid
from loloha.study.paper.fit import Fit
from loloha.study.paper.grid import Grid
from loloha.study.paper.page import Section, versions, write_page
from loloha.study.paper.results import Results
from loloha.study.paper.workload import Facts, prepare

PARTS = ("fig1", "fig2", "fig3", "fig4", "table1", "table2")
MEASURED = {"fig3", "fig4", "table2"}
COST_REPORTS = 10_000


@dataclass(frozen=True)
class Reproduction:
    """What `reproduce` found.

    Attributes
    ----------
    report : Path
        The page.
    facts : dict
        Data sets that were used.
    results : Results or None
        None where no part needed the grid; so for the next two.
    measurements : Measurements or None
    fit : Fit or None
    seconds : float
        Wall time.
    """

    report: Path
    facts: dict[str, Facts]
    results: Results | None
    measurements: Measurements | None
    fit: Fit | None
    seconds: float


def check_parts(parts: Iterable[str]) -> tuple[str, ...]:
    """Parts in the paper's order; ``all`` stands for every one.

    Raises
    ------
    ParameterError
        If a part is unknown.
    """
    asked = set(parts) or {"all"}
    if not asked <= {*PARTS, "all"}:
        raise ParameterError(
            f"parts must be among {', '.join((*PARTS, 'all'))}, got "
            f"{', '.join(sorted(asked))}; choose from these"
        )
    return PARTS if "all" in asked else tuple(part for part in PARTS if part in asked)


def reproduce(
    parts: Iterable[str],
    grid: Grid,
    out: Path,
    *,
    data_dir: Path | None = None,
    jobs: int = 1,
    progress: Progress = lambda done, total: None,
    command: str = "",
) -> Reproduction:
    """Make parts of the paper anew.

    Parameters
    ----------
    parts : iterable of str
        Of `PARTS`, or "all".
    grid : Grid
    out : Path
        Folder for everything; what is measured there already is not measured again.
    data_dir : Path, optional
        Folder with the real data sets.
    jobs : int
        Processes.
    progress : callable
        Called with cells done and all cells.
    command : str
        The command line, for the page.

    Returns
    -------
    Reproduction

    Raises
    ------
    ParameterError
        If a part is unknown.
    """
    started = time.perf_counter()
    chosen = check_parts(parts)
    facts: dict[str, Facts] = {}
    results = measurements = judged = None
    if MEASURED & set(chosen):
        facts = prepare(
            grid.workloads,
            grid.seed,
            out,
            data_dir=data_dir,
            users=grid.users,
            rounds=grid.rounds,
        )
        measurements = measure_grid(grid, facts, out, jobs=jobs, progress=progress)
        results = Results(grid, facts, measurements.rows, out)
        results.save(out / "cells.parquet")
        judged = fit.fit_of(results)
    sections = _sections(chosen, results, measurements)
    out.mkdir(parents=True, exist_ok=True)
    page = write_page(
        out,
        sections,
        grid=grid,
        facts=facts,
        measurements=measurements,
        fit=judged,
        differences=differences(results),
        seconds=time.perf_counter() - started,
        command=command,
    )
    seconds = time.perf_counter() - started
    found = Reproduction(page, facts, results, measurements, judged, seconds)
    _note_down(found, grid, out)
    return found


def _note_down(found: Reproduction, grid: Grid, out: Path) -> None:
    """Leave settings, versions and times beside the results."""
    note = {
        "settings": asdict(grid),
        "data": [asdict(facts) for facts in found.facts.values()],
        "versions": versions(),
        "seconds": found.seconds,
    }
    if found.measurements is not None:
        measurements = asdict(found.measurements)
        del measurements["rows"], measurements["attacks"]
        note["grid"] = measurements
    if found.fit is not None:
        note["verdict"] = asdict(found.fit)
    (out / "run.json").write_text(json.dumps(note, indent=2) + "\n", encoding="utf-8")


def _sections(
    parts: Iterable[str], results: Results | None, measurements: Measurements | None
) -> list[Section]:
    sections = []
    for part in parts:
        if part in ("fig1", "fig2", "table1"):
            sections.append(THEORETICAL[part]())
        elif results is not None and measurements is not None:
            sections.append(EMPIRICAL[part](results, measurements))
    if results is not None:
        sections.append(_agreement(results))
    sections.append(_patterns())
    return sections


def _fig1() -> Section:
    return Section(
        "fig1",
        "Figure 1. The g of least variance",
        "The optimal number of symbols is 2 in high privacy regimes and grows with ε∞ and α, up to "
        "17 at ε∞ = 5, α = 0.6.",
        f"The published rule gives {figures.optimal_g(5.0, 0.6, PUBLISHED)} there, as printed. "
        "Under the tight calibration the best g is the integer next to exp(ε₁) + 1, whatever ε∞.",
        {"fig1": figures.draw_optimal_g()},
    )


def _fig2() -> Section:
    return Section(
        "fig2",
        "Figure 2. Variance in theory",
        "OLOLOHA, L-OSUE and RAPPOR have nearly the same variance; BiLOLOHA has it in high privacy "
        "regimes and loses accuracy beyond. L-GRR is left out.",
        "As printed, and L-GRR is shown: the published calibration makes it worse by orders of "
        "magnitude. Under the tight one OLOLOHA reaches L-OSUE. The second panel shows the "
        "ratios that the first hides.",
        {"fig2": figures.draw_variances(), "fig2-relative": figures.draw_variances(relative=True)},
    )


def _table1() -> Section:
    return Section(
        "table1",
        "Table 1. Costs",
        "A LOLOHA report takes log₂ g bits, the server n k operations a round, and a user spends "
        "at most g ε∞.",
        "The same bits and cap. The server needs one pass over the reports and one transform a "
        "round where the hash is linear (prime g), so its cost no longer contains n k.",
        tables=[tables.cost_table(costs.measure_costs(n=COST_REPORTS), COST_REPORTS)],
    )


def _fig3(results: Results, measurements: Measurements) -> Section:
    gains = tables.gain_table(results)
    return Section(
        "fig3",
        "Figure 3. Error on four data sets",
        "OLOLOHA, L-OSUE and RAPPOR are about equally accurate, BiLOLOHA close to them, bBitFlipPM "
        "(one round only) the most and 1BitFlipPM the least accurate. The published figures show "
        "estimates after clipping and renormalising.",
        "The unbiased errors lie on the theoretical curves (see Agreement). After clipping most "
        "of the error disappears, but so does the comparison: see from which ε∞ on a protocol "
        "beats the answer “uniform”, which needs no data at all.",
        {
            "fig3a-unbiased": figures.draw_errors(results, "mse_unbiased"),
            "fig3b-clipped": figures.draw_errors(results, "mse_clipped"),
        },
        [
            tables.uniform_table(results),
            tables.symbols_table(results),
            *([gains] if gains else []),
        ],
    )


def _fig4(results: Results, measurements: Measurements) -> Section:
    return Section(
        "fig4",
        "Figure 4. Budget spent",
        "The budget of RAPPOR, L-OSUE, L-GRR and bBitFlipPM grows with the number of values a user "
        "visits; LOLOHA stays below g ε∞, BiLOLOHA and 1BitFlipPM at 2 ε∞ at most.",
        "As printed. It counts memoised answers; what it bounds, and what not, is said under "
        "“Where the paper and we differ”.",
        {"fig4": figures.draw_budgets(results)},
    )


def _table2(results: Results, measurements: Measurements) -> Section:
    return Section(
        "table2",
        "Table 2. Changes that show",
        "With d = b every change of every user of dBitFlipPM is detected; with d = 1 almost none.",
        "The same. The second table runs the attack on every protocol: a fresh second round hides "
        "which reports come from one memoised answer.",
        tables=[tables.exposure_table(results), tables.attack_table(results, measurements.attacks)],
    )


def _agreement(results: Results) -> Section:
    judged = fit.fit_of(results)
    expected = 0.0027 * judged.points
    return Section(
        "agreement",
        "Agreement of theory and measurement",
        "",
        f"{judged.beyond} of {judged.points} points have |z| > 3, where chance alone gives "
        f"{expected:.1f} on average (so many or more with probability {judged.chance:.2f}). "
        "Expected is the exact variance at the true frequencies of each round; its distance to the "
        "mean of the runs is counted in standard errors of that mean.",
        {"agreement": figures.draw_agreement(results)},
        [fit.agreement_table(results), fit.point_table(results)],
    )


def _patterns() -> Section:
    return Section(
        "patterns",
        "Change patterns",
        "",
        "Not in the paper: the exact loss between sequences whose values change in different "
        "rounds exceeds g ε∞ after a few reports.",
        {"patterns": figures.draw_patterns()},
    )


THEORETICAL = {"fig1": _fig1, "fig2": _fig2, "table1": _table1}
EMPIRICAL = {"fig3": _fig3, "fig4": _fig4, "table2": _table2}
