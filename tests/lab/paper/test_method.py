"""Nine curves, and which calibrations of them are worth measuring."""

import pytest

from loloha_lab.paper.method import METHODS, PUBLISHED, TIGHT


def test_every_curve_looks_different() -> None:
    looks = [tuple(sorted(method.style.items())) for method in METHODS.values()]
    assert len(set(looks)) == len(looks)


def test_both_flavours_of_one_protocol_share_its_colour() -> None:
    one, all_ = METHODS["1bitflippm"], METHODS["bbitflippm"]
    assert one.style["color"] == all_.style["color"]
    assert one.style["linestyle"] != all_.style["linestyle"]


@pytest.mark.parametrize(
    ("key", "alpha", "eps_inf", "measured"),
    [
        ("rappor", 0.5, 2.0, PUBLISHED),
        ("l-osue", 0.5, 2.0, PUBLISHED),
        ("l-grr", 0.5, 2.0, TIGHT),
        # Two symbols: the published formula is right.
        ("biloloha", 0.5, 2.0, PUBLISHED),
        ("ololoha", 0.5, 5.0, TIGHT),
        # Both choose g = 2 here.
        ("ololoha", 0.4, 0.5, PUBLISHED),
        ("1bitflippm", None, 2.0, TIGHT),
        ("bbitflippm", None, 2.0, PUBLISHED),
    ],
)
def test_the_tight_calibration_is_measured_where_it_differs(
    key: str, alpha: float | None, eps_inf: float, measured: str
) -> None:
    method = METHODS[key]
    assert method.settle(96, eps_inf, alpha, TIGHT) == measured
    assert method.settle(96, eps_inf, alpha, PUBLISHED) == PUBLISHED


def test_buckets_are_sampled_as_the_paper_has_it() -> None:
    one = METHODS["1bitflippm"].build(1412, 2.0, None, buckets=353).get_params()
    everything = METHODS["bbitflippm"].build(1412, 2.0, None, buckets=353).get_params()
    assert (one["b"], one["d"]) == (353, 1)
    assert (everything["b"], everything["d"]) == (353, 353)


def test_ours_differ_from_ololoha_in_one_thing() -> None:
    usual = METHODS["ololoha"].build(96, 4.0, 0.5, TIGHT).get_params()
    prime = METHODS["ololoha-prime"].build(96, 4.0, 0.5).get_params()
    joint = METHODS["ololoha-joint"].build(96, 4.0, 0.5).get_params()
    assert (usual["hash"], usual["memo"]) == ("linear", "independent")
    assert joint == usual | {"memo": "joint"}
    # Each family has its own g of least variance.
    assert prime == usual | {"hash": "prime", "g": prime["g"]}
