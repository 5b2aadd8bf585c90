"""A collector's client: every call against a collector that runs."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest

pytest.importorskip("fastapi", reason="the collector's extra is not installed")

import loloha
from collecting import ADMIN_KEY, START, Clock, campaign, clients, messages
from loloha.collector.settings import Settings
from loloha.errors import CampaignError, ParameterError
from loloha.sender.collector import JSON, Collector, Receipt
from loloha.sender.connection import Answer, Unreachable
from serving import Served


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder: Path = tmp_path_factory.mktemp("collector")
    store = f"sqlite:///{folder}/loloha.db"
    settings = Settings(store=store, admin_key=ADMIN_KEY, rate_limit="")
    with Served(settings, Clock(START + 60)) as served:
        yield served


def test_a_campaign_from_its_creation_to_its_series(url: str) -> None:
    one = campaign("every call")
    with Collector(f"{url}/", token=ADMIN_KEY) as admin:
        created = admin.create(one, {"minimum_cohort": 1}, token=True)
        assert created.new
        assert created.url == f"{url}/v1/campaigns/{one.fingerprint}"
        assert created.terms["minimum_cohort"] == 1
        assert created.token is not None
        assert created.token not in repr(created)
        again = admin.create(one)
        assert (again.new, again.token, again.terms) == (False, None, created.terms)
        assert one.fingerprint in [each["fingerprint"] for each in admin.campaigns()]
    with Collector(created.url, token=created.token) as remote:
        assert remote.document() == one
        sent = messages(one, clients(one, 8), 0)
        assert remote.submit(b"\n".join(sent)) == Receipt(8)
        assert remote.submit(b"\n".join([*sent, b"{}"])) == Receipt(0, 8, {"malformed": 1})
        assert remote.submit(b"[]", JSON) == Receipt()
        assert remote.rounds()[0]["n"] == 8
        assert remote.estimates(0, level=0.9)["level"] == 0.9
        assert remote.series(value=[1, 3])["value"] == [1, 3]
        assert remote.privacy()["eps_1"] > 0
        assert "token" not in repr(remote)


def test_keys_are_assigned_with_a_ticket(url: str) -> None:
    one = campaign("assigned", keys="assigned")
    with Collector(url, token=ADMIN_KEY) as admin:
        where = admin.create(one).url
    with Collector(where) as remote:
        key, ticket = remote.assign_key(one)
        assert one.protocol.encoding.is_key(key)
        assert len(ticket) == 32


def test_what_a_collector_refuses_is_an_error_with_its_reason(url: str) -> None:
    with Collector(url) as nobody, pytest.raises(CampaignError, match="must create the campaign"):
        nobody.create(campaign("refused"))
    with Collector(f"{url}/v1/campaigns/{'0' * 64}") as unknown:
        with pytest.raises(CampaignError, match="must know the campaign"):
            unknown.document()
        with pytest.raises(CampaignError, match="must take the batch"):
            unknown.submit(b"")
        with pytest.raises(CampaignError, match="must show rounds/0/estimates"):
            unknown.estimates(0)
    with Collector(url) as whole, pytest.raises(ParameterError, match="url must end with"):
        whole.rounds()


def test_receipts_add_up() -> None:
    total = Receipt(3, 1, {"late": 2}) + Receipt(1, 0, {"late": 1, "early": 4})
    assert total == Receipt(4, 1, {"late": 3, "early": 4})
    assert total.sent == 12


class Scripted:
    """A connection that notes what is asked, and gives the answers in turn, or the last again."""

    def __init__(self, *answers: Any, status: int = 200) -> None:
        self.asked: list[tuple[Any, ...]] = []
        self.answers = [Answer(status, {}, json.dumps(plain).encode()) for plain in answers]

    def request(self, method: str, path: str, *rest: Any, **more: Any) -> Answer:
        self.asked.append((method, path, *rest, *more))
        return self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]

    def get(self, path: str) -> Answer:
        return self.request("GET", path)

    def post(self, path: str, body: bytes, media: str) -> Answer:
        return self.request("POST", path, body, media)


def asking(path: str, *answers: Any, status: int = 200) -> tuple[Collector, Scripted]:
    collector, connection = Collector(f"http://here{path}"), Scripted(*answers, status=status)
    collector._connection = connection  # type: ignore[assignment]
    return collector, connection


def test_each_result_has_its_own_address() -> None:
    path = f"/lo/v1/campaigns/{'a' * 64}"
    collector, connection = asking(path, {"rounds": [7], "now": {"first_open": 3, "last_open": 5}})
    assert collector.rounds(first=2) == [7]
    assert collector.open_rounds() == range(3, 6)
    for shown in (
        collector.estimates(4, level=0.9, value=["a b", "c"]),
        collector.series(),
        collector.smoothed(last=3),
        collector.alarms(),
        collector.privacy(),
    ):
        assert shown["rounds"] == [7]
    asked = [path.removeprefix("/lo/v1/campaigns/" + "a" * 64) for _, path in connection.asked]
    assert asked == [
        "/rounds?first=2", "", "/rounds/4/estimates?level=0.9&value=a+b&value=c",
        "/series", "/smoothed?last=3", "/alarms", "/privacy",
    ]  # fmt: skip


def test_campaigns_are_listed_page_by_page_the_oldest_first() -> None:
    pages = [
        {"campaigns": [{"fingerprint": "c"}, {"fingerprint": "d"}], "more": True},
        {"campaigns": [{"fingerprint": "b"}], "more": False},
    ]
    collector, connection = asking("/lo", *pages)
    assert [one["fingerprint"] for one in collector.campaigns()] == ["b", "c", "d"]
    assert connection.asked == [("GET", "/lo/v1/campaigns"), ("GET", "/lo/v1/campaigns?before=c")]
    collector, connection = asking("", pages[1])
    collector.campaigns(archived=True)
    assert connection.asked == [("GET", "/v1/campaigns?archived=true")]


@pytest.mark.parametrize(("key", "ticket"), [("00", "f" * 32), ("zz", "f" * 32), (7, "f" * 32)])
def test_an_assigned_key_that_could_mark_a_device_is_refused(key: Any, ticket: Any) -> None:
    one = campaign("assigned", protocol=loloha.BiLOLOHA(k=5, eps_inf=2.0, eps_1=1.0))
    for assigned in ({"key": key, "ticket": ticket}, {"key": key}, {}):
        collector, _ = asking(f"/v1/campaigns/{one.fingerprint}", assigned)
        with pytest.raises(CampaignError, match="must assign a key and a ticket"):
            collector.assign_key(one)


@pytest.mark.parametrize(("status", "counted"), [(204, True), (200, False), (503, False)])
def test_an_opt_out_is_counted_where_the_collector_says_so(
    status: int, counted: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("DO_NOT_TRACK", raising=False)
    collector, connection = asking(f"/v1/campaigns/{'b' * 64}", {}, status=status)
    assert collector.decline() is counted
    ((method, path, body, _, once),) = connection.asked
    assert (method, path[-9:], body, once) == ("POST", "/opt-outs", b"", "once")
    monkeypatch.setenv("DO_NOT_TRACK", "1")
    assert collector.decline() is False
    assert len(connection.asked) == 1


def test_an_opt_out_that_reaches_nobody_is_not_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    collector, connection = asking(f"/v1/campaigns/{'b' * 64}", {})
    monkeypatch.delenv("DO_NOT_TRACK", raising=False)
    monkeypatch.setattr(connection, "request", Mock(side_effect=Unreachable("must answer")))
    assert collector.decline() is False
    connection.request.assert_called_once()
