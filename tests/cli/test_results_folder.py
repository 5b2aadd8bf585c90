"""A folder of results is there as a whole or not at all."""

import errno
from pathlib import Path

import pytest

from loloha import LolohaError
from loloha.cli.results_folder import new_folder
from loloha.cli.table_file import new_file

NAMES = ("a.txt", "b.txt")


def fill(folder: Path, text: str) -> None:
    for name in NAMES:
        (folder / name).write_text(text)


def cut_short(out: Path, failure: type[BaseException] | BaseException, force: bool = False) -> None:
    with new_folder(out, NAMES, force=force) as draft:
        fill(draft, "half")
        raise failure


def contents(folder: Path) -> dict[str, str]:
    return {path.name: path.read_text() for path in sorted(folder.iterdir())}


def test_results_appear_at_the_end_with_the_folders_above(tmp_path: Path) -> None:
    out = tmp_path / "above" / "out"
    with new_folder(out, NAMES) as draft:
        fill(draft, "new")
        assert not out.exists()
        assert draft.parent == out.parent
    assert contents(out) == dict.fromkeys(NAMES, "new")
    assert list(out.parent.iterdir()) == [out]
    assert out.stat().st_mode & 0o777 == out.parent.stat().st_mode & 0o777


@pytest.mark.parametrize("failure", [KeyboardInterrupt, LolohaError, SystemExit, OSError])
def test_what_is_cut_short_leaves_nothing(tmp_path: Path, failure: type[BaseException]) -> None:
    with pytest.raises(failure):
        cut_short(tmp_path / "out", failure)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("failure", [KeyboardInterrupt, LolohaError])
def test_what_is_cut_short_leaves_earlier_results(
    tmp_path: Path, failure: type[BaseException]
) -> None:
    out = tmp_path / "out"
    out.mkdir()
    fill(out, "old")
    with pytest.raises(failure):
        cut_short(out, failure, force=True)
    assert contents(out) == dict.fromkeys(NAMES, "old")
    assert list(tmp_path.iterdir()) == [out]


def test_a_failing_exchange_brings_earlier_results_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "out"
    out.mkdir()
    fill(out, "old")
    rename = Path.rename

    def failing(self: Path, target: Path) -> Path:
        if self.name.endswith(".part"):
            raise KeyboardInterrupt
        return rename(self, target)

    monkeypatch.setattr(Path, "rename", failing)
    with pytest.raises(KeyboardInterrupt), new_folder(out, NAMES, force=True) as draft:
        fill(draft, "new")
    assert contents(out) == dict.fromkeys(NAMES, "old")
    assert list(tmp_path.iterdir()) == [out]


def test_results_are_replaced_on_demand_alone(tmp_path: Path) -> None:
    out = tmp_path / "out"
    out.mkdir()
    (out / "a.txt").write_text("old")
    with pytest.raises(LolohaError, match=r"--out must be a new or empty.*--force"):
        new_folder(out, NAMES).__enter__()
    assert contents(out) == {"a.txt": "old"}
    with new_folder(out, NAMES, force=True) as draft:
        fill(draft, "new")
    assert contents(out) == dict.fromkeys(NAMES, "new")
    assert list(tmp_path.iterdir()) == [out]


def test_an_empty_folder_is_as_good_as_none(tmp_path: Path) -> None:
    with new_folder(tmp_path, NAMES) as draft:
        fill(draft, "new")
    assert contents(tmp_path) == dict.fromkeys(NAMES, "new")


@pytest.mark.parametrize("force", [False, True])
def test_the_files_of_others_are_never_lost(tmp_path: Path, force: bool) -> None:
    (tmp_path / "thesis.tex").write_text("work of years")
    with pytest.raises(LolohaError, match="--out must"):
        new_folder(tmp_path, NAMES, force=force).__enter__()
    assert contents(tmp_path) == {"thesis.tex": "work of years"}


@pytest.mark.parametrize("force", [False, True])
def test_a_file_is_no_folder(tmp_path: Path, force: bool) -> None:
    out = tmp_path / "out"
    out.write_text("mine")
    for wrong in (out, out / "inside"):
        with pytest.raises(LolohaError, match="--out must be"):
            new_folder(wrong, NAMES, force=force).__enter__()
    assert out.read_text() == "mine"


def test_a_link_to_a_folder_stays_a_link(tmp_path: Path) -> None:
    real, link = tmp_path / "real", tmp_path / "link"
    real.mkdir()
    link.symlink_to(real)
    with new_folder(link, NAMES) as draft:
        fill(draft, "new")
    assert link.is_symlink()
    assert contents(real) == dict.fromkeys(NAMES, "new")


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT])
def test_a_full_disk_is_named_with_what_to_do(tmp_path: Path, number: int) -> None:
    """It was "output: No space left on device"."""
    out = tmp_path / "out"
    with pytest.raises(LolohaError, match=r"--out must be writable.*out'.*free some"):
        cut_short(out, OSError(number, "full"))
    assert list(tmp_path.iterdir()) == []
    # What is read may fail, too: that is not said of --out.
    with pytest.raises(FileNotFoundError):
        cut_short(out, OSError(errno.ENOENT, "missing"))


def test_a_comparison_that_cannot_be_written_leaves_the_earlier_one(tmp_path: Path) -> None:
    from loloha.cli import compare

    class Table:
        def to_frame(self, backend: str) -> None:
            raise OSError(errno.ENOSPC, "full")

    (tmp_path / "comparison.csv").write_text("old")
    with pytest.raises(LolohaError, match="free some"):
        compare._save(Table(), tmp_path)  # type: ignore[arg-type]
    assert contents(tmp_path) == {"comparison.csv": "old"}


@pytest.mark.parametrize(
    "error", [ConnectionResetError(104, "reset"), TimeoutError(), OSError(errno.EIO, "disk")]
)
def test_a_file_is_not_blamed_for_what_is_read_meanwhile(tmp_path: Path, error: OSError) -> None:
    out = tmp_path / "above" / "out.csv"
    with pytest.raises(type(error)) as raised, new_file(out):
        raise error
    assert raised.value is error
    with pytest.raises(FileNotFoundError), new_file(out):
        (tmp_path / "other").read_text()
    with pytest.raises(LolohaError, match=r"--out must be writable.*free some"), new_file(out):
        raise OSError(errno.ENOSPC, "full")
    out.mkdir()
    with pytest.raises(LolohaError, match="--out must be writable"), new_file(out) as draft:
        draft.write_text("whole")
    assert [*out.parent.iterdir()] == [out]
