"""From a campaign to counted reports on the command line."""

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

pytest.importorskip("fastapi", reason="the collector's extra is not installed")


from collecting import ADMIN_KEY, HOUR, START, Clock
from loloha.cli import main
from loloha.sender import Sender


class Ended(NamedTuple):
    returncode: int
    stdout: str
    stderr: str


Run = Callable[..., Ended]


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    def run(*arguments: str, **environment: str) -> Ended:
        for name in ("LOLOHA_ADMIN_KEY", "LOLOHA_TOKEN"):
            monkeypatch.delenv(name, raising=False)
        for name, value in environment.items():
            monkeypatch.setenv(name, value)
        capsys.readouterr()
        code = main(arguments)
        said = capsys.readouterr()
        return Ended(code, said.out, said.err)

    return run


# -- command line


def test_from_campaign_to_counted_reports_on_the_command_line(
    run: Run, url: str, tmp_path: Path, clock: Clock
) -> None:
    create = [
        "campaign", "create", "Hours", "--protocol", "biloloha", "--eps-inf", "2", "--eps-1", "1",
        "--domain", "a,b,c", "--other", "else", "--seconds", "3600", "--minimum-cohort", "1",
        "--start", "2026-01-01T00:00:00Z", "--n", "1000", "--to", url,
    ]  # fmt: skip
    refused = run(*create)
    assert refused.returncode == 1
    assert "LOLOHA_ADMIN_KEY" in refused.stderr
    done = run(*create, "--json", LOLOHA_ADMIN_KEY=ADMIN_KEY)
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout)
    assert said["created"]
    assert said["terms"]["minimum_cohort"] == 1
    assert said["accuracy_check"]["n"] == 1000
    where = said["url"]
    shown = run("campaign", "show", where)
    assert said["fingerprint"] in shown.stdout
    assert "What leaks" in shown.stdout
    file = tmp_path / "campaign.json"
    assert run("campaign", "export", where, "--out", str(file)).returncode == 0
    assert run("campaign", "export", where, "--out", str(file)).returncode == 1
    assert json.loads(file.read_bytes()) == said["campaign"]

    table = tmp_path / "table.csv"
    table.write_text("user,r0,r1\n" + "".join(f"{i},{'abz'[i % 3]},b\n" for i in range(30)))
    clock.now = START + HOUR
    load = run("load-test", str(table), "--campaign", where, "--json")
    assert load.returncode == 0, load.stderr
    assert json.loads(load.stdout)["accepted"] == 60

    of_file = "load-test", str(table), "--campaign", str(file)
    assert run(*of_file).returncode == 2
    assert (
        run("load-test", str(table), "--campaign", where, "--collector", "http://x").returncode == 2
    )
    base = where.partition("/v1/")[0]
    fleet = run(*of_file, "--collector", base, "--json")
    assert json.loads(fleet.stdout)["accepted"] == 60

    # The campaign's clock says round 1: of three rounds two can be sent.
    table.write_text("user,r0,r1,r2\n0,a,b,c\n")
    more = run("load-test", str(table), "--campaign", where)
    assert more.returncode == 2
    assert "the table has 3 from round 0 on; --first 0 --rounds 2 fits" in more.stderr
    assert run("load-test", str(table), "--campaign", where, "--rounds", "2").returncode == 0

    # The collector's clock stands at the campaign's first hour, this machine's does not.
    state = str(tmp_path / "me")
    without = run("report", "a", "--campaign", where, "--state", state)
    assert without.returncode == 1
    assert "--consent" in without.stderr
    early = run("report", "a", "--campaign", where, "--state", state, "--consent", "--json")
    assert early.returncode == 1, early.stderr
    assert len(json.loads(early.stdout)["waiting"]) == 1
    clock.now = time.time()
    sent = run("report", "--state", state, "--json")
    assert sent.returncode == 0, sent.stderr
    assert len(json.loads(sent.stdout)["sent"]) == 1
    gone = run("report", "--withdraw", "--state", state)
    assert gone.returncode == 0
    assert "deleted" in gone.stdout
    assert run("report", "a", "--withdraw", "--state", state).returncode == 2


def test_weak_privacy_and_bad_domains_are_refused_on_the_command_line(run: Run) -> None:
    create = ["campaign", "create", "x", "--protocol", "biloloha", "--eps-1", "1"]
    weak = run(*create, "--eps-inf", "9", "--domain", "a,b")
    assert weak.returncode == 1
    assert "limit of 5" in weak.stderr
    accepted = run(*create, "--eps-inf", "9", "--domain", "a,b", "--accept-weak-privacy")
    assert accepted.returncode == 0
    ranged = run(*create, "--eps-inf", "2", "--range", "0", "10", "--bins", "5", "--json")
    assert json.loads(ranged.stdout)["campaign"]["labels"] == {"range": [0, 10], "bins": 5}
    for domain in ([], ["--range", "0", "1"], ["--domain", "a,b", "--bins", "3"]):
        assert run(*create, "--eps-inf", "2", *domain).returncode == 2


def address_of(run: Run, url: str, *protocol: str, seconds: int = 31_622_400) -> str:
    create = ["campaign", "create", "Days", *protocol, "--domain", "a,b,c", "--to", url, "--json"]
    create += ["--start", "2026-01-01T00:00:00Z", "--seconds", str(seconds), "--n", "1000"]
    done = run(*create, "--accept-weak-privacy", LOLOHA_ADMIN_KEY=ADMIN_KEY)
    assert done.returncode == 0, done.stderr
    found: str = json.loads(done.stdout)["url"]
    return found


def test_a_value_that_is_refused_leaves_no_consent(
    run: Run, url: str, tmp_path: Path, clock: Clock
) -> None:
    clock.now = time.time()
    address = address_of(run, url, "--protocol", "l-grr", "--eps-inf", "2", "--eps-1", "1")
    report = ["report", "--state", str(tmp_path / "state")]
    refused = run(*report, "hom", "--campaign", address, "--consent")
    assert refused.returncode == 1
    assert "hom" not in refused.stderr
    assert not (tmp_path / "state").exists()
    assert "consent" in run(*report, "a").stderr
    # Nor is a limit changed by a report that is refused.
    assert run(*report, "a", "--campaign", address, "--consent", "--limit", "6").returncode == 0
    assert run(*report, "hom", "--campaign", address, "--consent", "--limit", "9").returncode == 1
    with Sender(tmp_path / "state") as one:
        assert one.limit == 6


def test_a_limit_is_agreed_to_or_refused_with_what_would_fit(
    run: Run, url: str, tmp_path: Path, clock: Clock
) -> None:
    clock.now = time.time()
    protocol = ("--protocol", "l-grr", "--eps-inf", "2", "--eps-1", "1")
    report = ["report", "--state", str(tmp_path / "state")]
    agree = [*report, "--campaign", address_of(run, url, *protocol), "--consent", "a"]
    refused = run(*agree, "--limit", "4")
    assert refused.returncode == 2
    assert "limit must be a number in [6, inf], got 4.0" in refused.stderr
    assert "biloloha 4" in refused.stderr
    assert not (tmp_path / "state").exists()
    assert run(*agree, "--limit", "6").returncode == 0
    assert run(*report, "--no-wait", "a").returncode == 2


def test_a_round_is_not_counted_twice_unless_it_is_asked_for(
    run: Run, url: str, tmp_path: Path, clock: Clock
) -> None:
    clock.now = time.time()
    protocol = ("--protocol", "grr", "--eps", "1")
    report = ["report", "--state", str(tmp_path / "state")]
    agree = [*report, "--campaign", address_of(run, url, *protocol), "--consent", "a", "--json"]
    sent, losses = [], []
    for more in ([], [], ["--no-wait"]):
        done = json.loads(run(*agree, *more).stdout)
        sent.append(len(done["sent"]))
        losses.append(done["loss"])
        assert f"the {done['loss']:g} spent so far" in run(*report, "--withdraw").stdout
    assert (sent, losses) == ([1, 0, 1], [1.0, 1.0, 2.0])


def test_a_one_round_rule_ends_at_its_limit_and_sends_what_waits(
    run: Run, url: str, tmp_path: Path
) -> None:
    protocol = ("--protocol", "grr", "--eps", "1")
    path = tmp_path / "state"
    address = address_of(run, url, *protocol, seconds=3600)
    with Sender(path, clock=lambda: START + 60) as one:
        one.agree(address, limit=1.0)
        one.report("a")
    ended = run("report", "--state", str(path), "--json", "b")
    assert ended.returncode == 1
    assert "loss must stay within limit = 1.0" in ended.stderr
    told = json.loads(ended.stdout)
    assert (told["limit_reached"], told["sent"], told["loss"]) == (True, [0], 1.0)
