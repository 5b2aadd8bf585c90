"""Numbers as people read them: two or three digits, percent, kB."""

from __future__ import annotations

import math


def product(times: float, budget: float) -> float:
    """A share of a budget, or several of them: 0.3 for 3 times 0.1."""
    return digits(times * budget, 15)


def frequency(share: float) -> str:
    """A frequency or its error, in percent; none where not even 100 % would do."""
    if math.isinf(share):
        return "none"
    return "above 100 %" if share > 1 else percent(share)


def percent(share: float) -> str:
    """Three digits of a share; of one in 10^12 only that it is smaller."""
    if 0 < share < 1e-12:
        return "below 1e-10 %"
    return f"{100 * share:.3g} %" if share < 9.995 else f"{about(100 * share, 3)} %"


def digits(number: float, most: int = 4) -> float:
    """The number, to so many digits."""
    return float(f"{number:.{most}g}")


def about(number: float, digits: int = 2) -> str:
    """A count, rounded: 130 000."""
    if not number or not math.isfinite(number):
        return f"{number:g}"
    places = digits - 1 - math.floor(math.log10(abs(number)))
    rounded = round(number, places)
    if rounded >= 1e12:
        return f"{rounded:.{digits}g}"
    return (
        f"{rounded:.{max(places, 0)}f}" if rounded < 10_000 else f"{rounded:,.0f}".replace(",", " ")
    )


def at_least(number: float) -> str:
    """A count that is needed, to two digits and never fewer."""
    if not math.isfinite(number):
        return about(number)
    step = 10.0 ** max(math.floor(math.log10(number)) - 1, 0)
    least = step * math.ceil(number / step)
    return f"{least:.0f}" if least < 10 else about(least)


def in_order(larger: float, smaller: float) -> tuple[str, str]:
    """Two shares in percent, with as many digits as show which is larger."""
    if larger > 1:
        return frequency(larger), percent(smaller)
    for most in range(3, 17):
        above, below = (f"{100 * share:.{most}g}" for share in (larger, smaller))
        if float(above) > float(below):
            break
    return f"{above} %", f"{below} %"


def loss(eps: float) -> str:
    """A privacy loss; that nothing bounds it."""
    if math.isinf(eps):
        return "no bound"
    return f"{eps:.4g}" if eps < 10_000 else about(eps)


def in_bytes(number: float) -> str:
    """A size: 3 bytes, 64 kB, 2.1 MB."""
    for unit, size in (("MB", 1_000_000), ("kB", 1000)):
        if number >= size:
            return f"{number / size:.3g} {unit}"
    return f"{number:.0f} byte{'' if number == 1 else 's'}"
