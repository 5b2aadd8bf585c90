"""Users who want no part are counted, and nothing else of them is known."""

from pathlib import Path
from typing import Any

import pytest

from collecting import ADMIN_KEY, HOUR, START, Clock, become, campaign, created
from loloha.cli import main
from loloha.collector.settings import Settings
from loloha.collector.store import Store
from loloha.collector.store.standing import standings
from loloha.collector.terms import Terms
from loloha.sender import Collector
from loloha.sender.connection import Patience
from serving import Served, create
from uploading import JSON, fill


def opt_outs(client: Any, path: str) -> dict[int, int]:
    rounds = client.get(f"{path}/rounds").json()["rounds"]
    return {one["round"]: one["opt_outs"] for one in rounds}


def say(client: Any, path: str, **more: Any) -> Any:
    return client.post(f"{path}/opt-outs", headers={"content-type": JSON}, **more)


def test_they_are_counted_by_round_beside_reports(serve: Any, clock: Clock) -> None:
    client, one = serve(), campaign()
    path = created(client, one)
    for _ in range(3):
        answer = say(client, path)
        assert (answer.status_code, answer.content) == (204, b"")
    fill(client, path, one, 5)
    clock.now += HOUR
    say(client, path)
    assert opt_outs(client, path) == {0: 3, 1: 1}
    (first, second) = client.get(f"{path}/rounds").json()["rounds"]
    assert (first["n"], first["refused"], second["n"], second["shown"]) == (5, {}, 0, False)
    metrics = client.get("/metrics").text
    assert f'loloha_campaign_opt_outs_total{{campaign="{one.fingerprint}"}} 4.0' in metrics
    assert 'reason="opt' not in metrics


def test_before_the_first_round_and_after_the_end(serve: Any, clock: Clock) -> None:
    client, one = serve(), campaign()
    path = created(client, one)
    clock.now = START - HOUR
    assert say(client, path).status_code == 204
    assert opt_outs(client, path) == {-1: 1}
    become(client, one, "closed")
    assert say(client, path).status_code == 410
    become(client, one, "deleted")
    assert opt_outs(client, path) == {}


def test_nothing_of_a_body_or_an_address_is_stored(serve: Any, tmp_path: Path) -> None:
    client = serve()
    path = created(client, campaign())
    assert say(client, path, content=b'{"reporter":"somebody"}').status_code == 204
    kept = b"".join(one.read_bytes() for one in tmp_path.rglob("*") if one.is_file())
    assert b"opt_out" in kept
    assert b"somebody" not in kept


def test_a_token_and_the_rate_bound_who_says_it(serve: Any) -> None:
    client = serve(rate_limit="30/minute")
    path = created(client, campaign(), token=True)
    assert say(client, path).status_code == 401
    assert say(client, f"{path[:-1]}x").status_code == 404
    open_path = created(client, campaign("open"))
    answers = [say(client, open_path).status_code for _ in range(30)]
    assert set(answers) == {204, 429}
    assert answers.count(204) <= 3


def test_they_are_added_up_on_both_stores(store: Store) -> None:
    stored, _ = store.create(campaign(), Terms(), token=None, now=START)
    for moment in (START, START + 1, START + HOUR):
        store.count_opt_out(stored, moment)
    assert [(one.number, one.opt_outs, one.refused) for one in store.rounds(stored)] == [
        (0, 2, {}),
        (1, 1, {}),
    ]
    (stand,) = standings(store, [stored.campaign.fingerprint]).values()
    assert (stand.sums.opt_outs, stand.sums.refused) == (3, {})


# -- what devices send


def test_the_device_says_it_once(
    tmp_path: Path,
    clock: Clock,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    settings = Settings(store=f"sqlite:///{tmp_path}/c.db", admin_key=ADMIN_KEY, rate_limit="")
    with Served(settings, clock) as url:
        where = url + create(url, campaign())
        with Collector(where) as collector:
            assert collector.decline()
            assert collector.rounds()[0]["opt_outs"] == 1
            monkeypatch.setenv("DO_NOT_TRACK", "1")
            assert not collector.decline()
            assert collector.rounds()[0]["opt_outs"] == 1
            monkeypatch.delenv("DO_NOT_TRACK")
        assert main(["campaign", "show", where]) == 0
    assert "opt-outs in its newest rounds: 1 (anybody" in capsys.readouterr().out


def test_it_is_never_repeated() -> None:
    def waited(_: float) -> None:
        pytest.fail("tried again")

    with Collector(
        f"http://127.0.0.1:9/v1/campaigns/{'0' * 64}", patience=Patience(sleep=waited)
    ) as collector:
        assert not collector.decline()
