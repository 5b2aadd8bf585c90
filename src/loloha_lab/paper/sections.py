"""Sections of the page: for each figure and table the paper's claim and the result."""

from __future__ import annotations

from collections.abc import Iterable

from loloha_lab.paper import change_tables, costs, exact_figures, figures, fit, tables
from loloha_lab.paper.grid_results import Results
from loloha_lab.paper.method import BEYOND, PUBLISHED
from loloha_lab.paper.page import Section
from loloha_lab.paper.printed import quoted_table


def tell(parts: Iterable[str], results: Results | None) -> list[Section]:
    """All sections of the page, in its order: the paper's parts, and then what is beyond it."""
    sections = []
    for part in parts:
        if part in ("fig1", "fig2", "table1"):
            sections.append(THEORETICAL[part]())
        elif results is not None:
            sections.append(EMPIRICAL[part](results))
    if results is not None:
        if BEYOND[0] in results.grid.methods:
            sections.append(_beyond(results))
        sections.append(_agreement(results))
    return [*sections, _patterns(), _printed(results)]


def _fig1() -> Section:
    return Section(
        "fig1",
        "Figure 1. The g of least variance",
        "The optimal number of symbols is 2 in high privacy regimes and grows with ε∞ and α, up to "
        "17 at ε∞ = 5, α = 0.6.",
        f"The published rule gives {exact_figures.optimal_g(5.0, 0.6, PUBLISHED)} there, as "
        "printed. Under the tight calibration the best g is the integer next to exp(ε₁) + 1, "
        "whatever ε∞.",
        {"fig1": exact_figures.draw_optimal_g()},
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
        {
            "fig2": exact_figures.draw_variances(),
            "fig2-relative": exact_figures.draw_variances(relative=True),
        },
    )


def _table1() -> Section:
    return Section(
        "table1",
        "Table 1. Costs",
        "A LOLOHA report takes log₂ g bits, the server n k operations a round, and a user spends "
        "at most g ε∞.",
        "The same bits and cap. The server needs one pass over the reports and one transform a "
        "round where the hash is linear (prime g), so its cost no longer contains n k.",
        tables=[costs.cost_table()],
    )


def _fig3(results: Results) -> Section:
    gains = tables.gain_table(results)
    return Section(
        "fig3",
        "Figure 3. Error on four data sets",
        "OLOLOHA, L-OSUE and RAPPOR are about equally accurate, BiLOLOHA close to them, bBitFlipPM "
        "(one round only) the most and 1BitFlipPM the least accurate. The published figures show "
        "estimates after clipping and renormalising.",
        "The unbiased errors lie on the theoretical curves (see Agreement). After clipping most "
        "of the error disappears, but so does the comparison: see from which ε∞ on a protocol "
        "beats the answer “uniform”, which needs no data at all. Rounds estimated together "
        "(Figure 3c) do so earlier.",
        {
            "fig3a-unbiased": figures.draw_errors(results, "mse"),
            "fig3b-clipped": figures.draw_errors(results, "mse_clipped"),
            "fig3c-series": figures.draw_series(results),
        },
        [
            tables.uniform_table(results),
            tables.series_table(results),
            tables.symbols_table(results),
            *([gains] if gains else []),
        ],
    )


def _fig4(results: Results) -> Section:
    beyond = (
        "Two curves are not in the paper: OLOLOHA with least-prime hashing, which spends as "
        "OLOLOHA does at its own g, and OLOLOHA with jointly drawn permanent responses, which "
        "spends B_m for m cells instead of m ε∞. Both are compared with OLOLOHA under the tight "
        "calibration (dotted)."
        if BEYOND[0] in results.grid.methods
        else ""
    )
    return Section(
        "fig4",
        "Figure 4. Budget spent",
        "The budget of RAPPOR, L-OSUE, L-GRR and bBitFlipPM grows with the number of values a user "
        "visits; LOLOHA stays below g ε∞, BiLOLOHA and 1BitFlipPM at 2 ε∞ at most.",
        "As printed. It counts memoised answers; what it bounds, and what not, is said under "
        "“Where the paper and we differ”. " + beyond,
        {"fig4": figures.draw_budgets(results)},
    )


def _table2(results: Results) -> Section:
    return Section(
        "table2",
        "Table 2. Changes that show",
        "With d = b every change of every user of dBitFlipPM is detected; with d = 1 almost none.",
        "The same, by the printed test, which counts different answers; where there is a second "
        "round it says next to nothing. The best test weighs likelihoods. It reads a change of "
        "RAPPOR or L-OSUE from one report before and one after, nearly for certain at large k, and "
        "one of L-GRR under the tight calibration after some tens. Of LOLOHA, whose symbols are "
        "few, it sees far less, however many reports there are.",
        {"table2-areas": exact_figures.draw_aucs()},
        [
            change_tables.exposure_table(results),
            change_tables.best_test_table(results),
            change_tables.attack_table(results),
            change_tables.visibility_table(results),
        ],
    )


def _beyond(results: Results) -> Section:
    return Section(
        "beyond",
        "Beyond the paper. Least-prime hashing, joint responses",
        "",
        "What is compared: OLOLOHA as 0.1.0 makes it (tight calibration, linear hashing, a memo of "
        "its own for each cell) with the same rules but for one thing, at the same ε∞ and ε₁. "
        'Hashing modulo the least prime (hash="prime") lowers the error; its price is that fewer '
        "users, often none, share a key, so that OLOLOHA takes it by itself only where five do. "
        'Jointly drawn permanent responses (memo="joint") leave the error as it is and lower the '
        "budget from m ε∞ to B_m; in return, exchanging one value for another, among several, can "
        "lose up to B_m instead of ε∞.",
        {"beyond": figures.draw_gains(results)},
        [tables.beyond_table(results)],
    )


def _agreement(results: Results) -> Section:
    judged = fit.fit_of(results)
    expected = 0.0027 * judged.points
    return Section(
        "agreement",
        "Agreement of theory and measurement",
        "",
        f"{judged.beyond} of {judged.points} points have |z| > 3, where chance alone gives "
        f"{expected:.1f} on average (as many or more with probability {judged.chance:.2f}). "
        "Expected is the exact variance at the true frequencies of each round; its distance to the "
        "mean of the runs is counted in standard errors of that mean.",
        {"agreement": figures.draw_agreement(results)},
        [fit.agreement_table(results), fit.point_table(results)],
    )


def _patterns() -> Section:
    return Section(
        "patterns",
        "Change patterns. What they reveal, and one round alone",
        "",
        "Not in the paper: the exact loss between sequences whose values change in different "
        "rounds exceeds g ε∞ after a few reports. What bounds it for ever is ε₂ for each round "
        "that differs: for bits it grows with k, for L-GRR under the tight calibration with its "
        "logarithm, for LOLOHA not at all; where memoised answers are sent as they are it is "
        "infinite.",
        {
            "patterns": exact_figures.draw_patterns(),
            "eps2": exact_figures.draw_round_losses(),
        },
    )


def _printed(results: Results | None) -> Section:
    return Section(
        "printed",
        "Printed numbers. Every one beside ours",
        "",
        "Each number that the paper prints in its text and tables, the same computed here, and the "
        "reason where the two differ.",
        tables=[quoted_table(results)],
    )


THEORETICAL = {"fig1": _fig1, "fig2": _fig2, "table1": _table1}
EMPIRICAL = {"fig3": _fig3, "fig4": _fig4, "table2": _table2}
