"""Saved tallies: what they say of themselves, and which of them fit together."""

import json
from pathlib import Path
from typing import Any

import pytest

from loloha import GRR
from loloha.campaign.schedule import RAREST
from loloha.engines import saved
from loloha.errors import WireError
from loloha.report import LARGEST_ROUND
from loloha.server.tally import Tally, opened

PROTOCOL = GRR(k=3, eps=1.0)


def tally(*counts: int) -> Tally:
    one = PROTOCOL.tally()
    one.counts[:], one.n = counts, sum(counts)
    return one


def test_a_tally_says_what_it_counts(tmp_path: Path) -> None:
    path = saved.save(tmp_path, 7, tally(1, 2, 3), campaign="c", sources=["b", "a"], every=4)
    assert path == tmp_path / "round-7.tally"
    header = opened(path.read_bytes())[0]
    assert header["origin"] == {"campaign": "c", "round": 7, "sources": ["a", "b"], "every": 4}
    assert saved.every_of(path) == 4
    plain = saved.save(tmp_path, 8, tally(1, 0, 0))
    assert "every" not in opened(plain.read_bytes())[0]["origin"]
    assert saved.every_of(plain) == 1
    assert saved.load([path, plain]).counts.tolist() == [2, 2, 3]


@pytest.mark.parametrize(
    ("every", "good"),
    [(1, True), (RAREST, True), (0, False), (RAREST + 1, False), (True, False), ("2", False)],
)
def test_every_is_at_most_the_rarest(tmp_path: Path, every: Any, good: bool) -> None:
    path = tmp_path / "round-0.tally"
    path.write_bytes(tally(1, 0, 0).to_bytes(origin={"every": every}))
    if good:
        assert saved.every_of(path) == every
    else:
        with pytest.raises(WireError, match="every must be an integer"):
            saved.every_of(path)


@pytest.mark.parametrize(
    ("name", "round"),
    [
        ("round-0.tally", 0), (f"round-{LARGEST_ROUND}.tally", LARGEST_ROUND),
        (f"round-{LARGEST_ROUND + 1}.tally", None), ("round-01.tally", None),
        ("round--1.tally", None), ("round-1.tally2", None), ("Round-1.tally", None),
    ],
)  # fmt: skip
def test_a_name_says_the_round(name: str, round: int | None) -> None:
    if round is None:
        with pytest.raises(WireError, match="give it its round's name"):
            saved.round_of(Path(name))
    else:
        assert saved.round_of(Path(name)) == round


def test_files_are_found_by_round_in_the_order_of_their_names(tmp_path: Path) -> None:
    for folder, rounds in (("a", (10, 9)), ("b", (9,))):
        (tmp_path / folder).mkdir()
        for round in rounds:
            one = tally(round, len(rounds), 0)
            saved.save(tmp_path / folder, round, one, campaign="c", sources=[f"{folder}{round}"])
    found = saved.find([tmp_path / "b", tmp_path / "a"])
    assert {round: [file.parent.name for file in files] for round, files in found.items()} == {
        9: ["b", "a"], 10: ["a"],
    }  # fmt: skip
    assert list(found) == [9, 10]
    assert list(saved.find([tmp_path / "a" / "round-9.tally"])) == [9]
    (tmp_path / "none").mkdir()
    for wrong, says in (("none", "without any"), ("missing", "that exists")):
        with pytest.raises(WireError, match=says):
            saved.find([tmp_path / wrong])


@pytest.mark.parametrize(
    ("other", "says"),
    [
        ({"sources": ["x", "z"]}, "of different reports"),
        ({"counts": (5, 1, 0)}, "of different reports"),
        ({"campaign": "d"}, "of one campaign"),
        ({"said": 6}, "of the round in its name"),
        ({"round": 6, "sources": ["x"]}, None),
        ({}, None),
    ],
    ids=str,
)
def test_what_counts_the_same_or_another_campaign_is_refused(
    tmp_path: Path, other: dict[str, Any], says: str | None
) -> None:
    for name, about in (("a", {"counts": (5, 1, 0), "sources": ["x", "y"]}), ("b", other)):
        (tmp_path / name).mkdir()
        about = {"counts": (1, 1, 1), "sources": ["w"], "campaign": "c", "round": 5} | about
        said = about.get("said", about["round"])
        content = saved.message(
            said, tally(*about["counts"]), campaign=about["campaign"], sources=about["sources"]
        )
        (tmp_path / name / f"round-{about['round']}.tally").write_bytes(content)
    folders = [tmp_path / "a", tmp_path / "b"]
    if says is None:
        assert sum(map(len, saved.find(folders).values())) == 2
    else:
        with pytest.raises(WireError, match=says):
            saved.find(folders)


def test_equal_tallies_that_do_not_say_their_round_must_be_in_a_summary(tmp_path: Path) -> None:
    for round in (3, 4):
        (tmp_path / f"round-{round}.tally").write_bytes(tally(4, 5, 0).to_bytes())
    rows = [{"round": 3, "n": 9}, {"round": 4, "n": 9}]
    for listed, good in ((rows, True), (rows[:1], False), ([rows[0], {"round": 4, "n": 8}], False)):
        (tmp_path / saved.SUMMARY).write_text(json.dumps({"campaign": "c", "rounds": listed}))
        if good:
            assert list(saved.find([tmp_path])) == [3, 4]
        else:
            with pytest.raises(WireError, match="of different reports"):
                saved.find([tmp_path])


@pytest.mark.parametrize(
    "change", [{"round": "5"}, {"round": None}, {"campaign": 3}, {"sources": "x"}, {"sources": [1]}]
)
def test_an_origin_that_is_none_is_refused(tmp_path: Path, change: dict[str, Any]) -> None:
    origin = {"campaign": "c", "round": 5, "sources": []} | change
    (tmp_path / "round-5.tally").write_bytes(tally(1, 0, 0).to_bytes(origin=origin))
    with pytest.raises(WireError, match="must say its round"):
        saved.find([tmp_path])
