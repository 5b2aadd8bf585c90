"""A plan in sentences: what the recommended protocol reveals, and what its noise hides."""

from __future__ import annotations

import math

from loloha.planning.prospect import REPORTS_OF_A_CHANGE, Prospect
from loloha.privacy.plain_words import exchanged, over_keys, server
from loloha.privacy.rounded import about, at_least, in_order, loss, percent


def users_of_a_key(row: Prospect) -> str | None:
    """Users for each key, as text; None where keys are not permanent."""
    if row.shared is None:
        return None
    return "below 1" if row.shared < 1 else about(row.shared, 3)


def over_time(row: Prospect) -> str:
    """What the recommended protocol reveals of values that change, and of its user."""
    once = row.eps_2
    bound = f"loses at most {loss(once)}" if math.isfinite(once) else "has no bound"
    sentences = [f"Any one round of it {bound}."]
    joint = row.protocol is not None and row.protocol.joint
    price = loss(exchanged(row.protocol)) if joint and row.protocol else ""
    if joint and price != loss(row.eps_inf):
        sentences.append(
            "Jointly drawn permanent responses lower the cap; in return, exchanging one value for "
            f"another among several can lose up to {price} instead of {loss(row.eps_inf)}."
        )
    if row.change is not None and row.protocol is not None:
        keys = over_keys(row.protocol) if row.change < 0.99 else ""
        sentences.append(
            f"Best test for one change, {REPORTS_OF_A_CHANGE} reports before and "
            f"{REPORTS_OF_A_CHANGE} after, by {server(row.protocol)}: AUC at most "
            f"{_upwards(row.change)}{f' ({keys})' if keys else ''}; 0.5 is chance, 1 is certainty."
        )
    if row.shared is not None:
        users = f"about {users_of_a_key(row)} users share each key"
        sentences.append(
            "Reports carry the hash key and can be linked by it; "
            f"{users if row.shared >= 2 else 'few users share one'}."
        )
    return " ".join(sentences)


def _upwards(auc: float) -> str:
    """An AUC, rounded up: it is a bound."""
    return f"{min(1.0, math.ceil(100 * auc - 1e-6) / 100):.2f}"


def warning(row: Prospect, n: int, level: float) -> str | None:
    """What can still be detected if noise hides a value of average frequency; else None."""
    # Always answering "uniform" errs by the standard deviation of the true frequencies, which is at
    # most sqrt(bins - 1)/bins: where one value holds everything.
    bins = row.protocol.bins if row.protocol else 1
    single, every = row.error_one, row.error_all
    average, widest = 1 / bins, math.sqrt(bins - 1) / bins
    if max(single, every) <= average:
        return None
    what, error = ("one value", single) if single > average else ("all values at once", every)
    always = f"always answering 1/{bins} has the smaller mean squared error over all values"
    if row.uniform_below >= widest:
        beaten = f"Before any projection {always}, whatever the true frequencies are"
    else:
        beaten = (
            f"Before any projection {always} where the true frequencies spread by less than "
            f"{percent(row.uniform_below)} (standard deviation over the values)"
        )
    needed = at_least(n * (error / average) ** 2)
    larger, least = in_order(error, average)
    return (
        f"With n = {n} the {100 * level:g} % error of {what}, {larger}, is above the "
        f"average frequency 1/{bins} = {least}. {beaten}; where few values hold most "
        "users, estimates projected to shares (project_simplex) can be nearer all the same. "
        f"{_still_visible(row, level)} About {needed} reports a round would bring this error down "
        "to the average frequency."
    )


def _still_visible(row: Prospect, level: float) -> str:
    single, every = row.visible_one, row.visible_all
    often = f"with {100 * level:g} % probability"
    if math.isinf(single):
        return f"Nothing can be seen {often}, not even a value that everybody holds."
    alone = (
        f"Significantly above 0 {often}: a value chosen beforehand with a frequency of at least "
    )
    if math.isinf(every):
        return f"{alone}{percent(single)}; none when all values are tested at once."
    return f"{alone}{percent(single)}, or {percent(every)} when all values are tested at once."
