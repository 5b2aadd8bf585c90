"""One command makes every part, and a page that can be read anywhere."""

import json
from html.parser import HTMLParser
from pathlib import Path

import pytest

from loloha.errors import ParameterError
from loloha_lab.paper.difference import differences
from loloha_lab.paper.fit import Fit, fit_of
from loloha_lab.paper.grid import Grid
from loloha_lab.paper.method import METHODS
from loloha_lab.paper.printed import exposed_by_bucket
from loloha_lab.paper.reproduction import Reproduction, check_parts, reproduce
from loloha_lab.paper.result_table import Table, shorten
from loloha_lab.paper.workload import material, prepare


class Page(HTMLParser):
    """What a page refers to, and what it says."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.targets: list[str] = []
        self.alternatives: list[str] = []
        self.anchors: set[str] = set()
        self.words: list[str] = []
        self.open: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = dict(attrs)
        self.targets += [found[name] or "" for name in ("src", "href") if name in found]
        if tag == "img":
            self.alternatives.append(found.get("alt") or "")
        if found.get("id"):
            self.anchors.add(str(found["id"]))
        if tag not in ("img", "meta", "br", "link"):
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.words.append(data)


@pytest.fixture(scope="module")
def page(small: tuple[Reproduction, Path]) -> Page:
    return Page(small[0].report.read_text(encoding="utf-8"))


def test_the_page_stands_alone(page: Page, small: tuple[Reproduction, Path]) -> None:
    out = small[1]
    for target in page.targets:
        if target.startswith("#"):
            assert target[1:] in page.anchors
        elif not target.startswith("data:image/png;base64,"):
            assert (out / target).is_file(), target
    assert page.open == []


def test_every_figure_is_shown_described_and_written(
    page: Page, small: tuple[Reproduction, Path]
) -> None:
    stems = {path.stem for path in (small[1] / "figures").iterdir()}
    assert stems == {
        "fig1", "fig2", "fig2-relative", "fig3a-unbiased", "fig3b-clipped", "fig3c-series", "fig4",
        "agreement", "patterns", "beyond", "eps2", "table2-areas",
    }  # fmt: skip
    assert len(page.alternatives) == len(stems)
    assert all(len(text) > 20 for text in page.alternatives)
    for stem in stems:
        assert (small[1] / "figures" / f"{stem}.svg").stat().st_size > 1000


def test_every_table_is_written_as_csv(small: tuple[Reproduction, Path]) -> None:
    assert {path.stem for path in (small[1] / "tables").iterdir()} == {
        "table1", "table2", "table2-attack", "agreement", "points", "gains", "symbols", "uniform",
        "beyond", "printed", "series", "table2-best", "table2-grid",
    }  # fmt: skip


def test_the_page_tells_data_size_and_what_differs(page: Page) -> None:
    said = " ".join(" ".join(page.words).split())
    assert "STAND-IN, not real data" in said
    assert "Reduced size" in said
    assert "Where the paper and we differ" in said
    for number in range(1, 11):
        assert f"{number}. " in said
    assert "loloha reproduce --users 40" in said
    assert "Seed 5" in said


def test_each_difference_is_backed_by_numbers(small: tuple[Reproduction, Path]) -> None:
    found = differences(small[0].results)
    assert len(found) == 10
    assert all(one.evidence for one in found)
    text = {one.title: " ".join(line.numbers for line in one.evidence) for one in found}
    assert (
        "83 times less variance"
        in text["Calibration of the second round for more than two symbols"]
    )
    assert "2.034 after 4" in text["What the longitudinal bound covers"]
    assert "5.28 after 10" in text["What the longitudinal bound covers"]
    assert "5.09 times less variance" in text["dBitFlipPM with one sampled bucket"]


def test_the_run_is_noted_beside_the_results(small: tuple[Reproduction, Path]) -> None:
    note = json.loads((small[1] / "run.json").read_text(encoding="utf-8"))
    assert note["grid"]["seed"] == 5
    assert note["measurements"]["measured"] > 0
    assert note["versions"]["numpy"]
    assert [one["source"] for one in note["data"]] == ["synthetic", "histogram", "stand-in"]
    assert note["fit"]["points"] == small[0].fit.points  # type: ignore[union-attr]


def test_theory_and_measurement_agree(small: tuple[Reproduction, Path]) -> None:
    # Seeded; 3 runs a point. Sees a wrong calibration, truth or estimator at any point.
    assert small[0].results is not None
    judged = fit_of(small[0].results)
    assert judged.points > 30
    assert judged.agrees, judged


def test_so_many_far_points_are_no_agreement() -> None:
    assert not Fit(points=100, beyond=5, chance=2e-5).agrees
    assert Fit(points=800, beyond=4, chance=0.17).agrees


def test_the_printed_table_2_is_that_of_another_memo(real_data: Path, tmp_path: Path) -> None:
    facts = prepare(["DB_MT"], 0, tmp_path, data_dir=real_data)["DB_MT"]
    visits = material(tmp_path, facts).visits
    for eps_inf, printed in ((0.5, 0.005), (5.0, 0.001)):
        one = METHODS["1bitflippm"].build(facts.k, eps_inf, None, buckets=facts.buckets)
        assert round(100 * exposed_by_bucket(one, visits), 3) == printed


@pytest.mark.usefixtures("undrawn")
def test_theory_alone_needs_no_data(tmp_path: Path) -> None:
    found = reproduce(["fig1"], Grid(), tmp_path)
    assert (found.results, found.measurements, found.facts) == (None, None, {})
    assert not (tmp_path / "data").exists()
    Page(found.report.read_text(encoding="utf-8"))


def test_parts_come_in_the_papers_order() -> None:
    assert check_parts(["table2", "fig1"]) == ("fig1", "table2")
    assert len(check_parts(["all", "fig1"])) == 6
    assert len(check_parts([])) == 6
    with pytest.raises(ParameterError, match="parts must be among"):
        check_parts(["fig5"])


def test_tables_keep_precision_in_files_and_readers_from_it() -> None:
    table = Table("name", "Title", [{"a": 0.123456789, "b": None}, {"a": "text, quoted", "b": 3}])
    assert table.to_csv() == 'a,b\n0.123456789,\n"text, quoted",3\n'
    assert table.cells() == [["0.1235", "–"], ["text, quoted", "3"]]
    assert table.classes() == ["text", ""]
    assert Table("name", "Title", [{"a": "word " * 9}, {"a": "-"}]).classes() == ["text long"]
    assert shorten(float("nan")) == "–"
