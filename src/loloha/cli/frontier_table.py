"""The table of ``loloha plan --frontier``: the price of a lower loss of one round."""

from __future__ import annotations

from pathlib import Path

from loloha.cli import console, table_file
from loloha.errors import ParameterError


def show(
    k: int | None,
    eps_inf: float | None,
    family: str | None,
    out: Path | None,
    force: bool,
    as_json: bool,
) -> None:
    """Print V* over eps_2, and draw it."""
    from loloha.planning.frontier import frontier, plot

    if k is None or eps_inf is None:
        raise ParameterError("--k and --eps-inf must be given with --frontier; give both")
    if out is not None:
        table_file.check(out, force, (".png", ".svg"))
    points = frontier(k, eps_inf, hash=family)
    title = f"What a lower loss of one round costs: k = {k}, eps_inf = {eps_inf:.4g}"
    if out is not None:
        from matplotlib.figure import Figure

        from loloha.figure.style import our_look, write

        # The same bytes every time.
        with our_look():
            figure = Figure(layout="constrained")
            plot(points, ax=figure.subplots()).set_title(title)
            write(figure, out)
    if as_json:
        console.show_json(
            {"k": k, "eps_inf": eps_inf, "points": [point._asdict() for point in points]}
        )
        return
    console.show_table(
        ("eps_2", "eps_1", "g", "n V*", "least n V* at this eps_1"),
        [(point.eps_2, point.eps_1, point.g, point.noise, point.optimum) for point in points],
        title=title,
    )
    if out is not None:
        console.show(f"Figure: {out}")
