"""A collector's client: every call against a collector that runs."""

from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("fastapi", reason="the collector's extra is not installed")

from collecting import ADMIN_KEY, START, Clock, campaign, clients, messages
from loloha.collector.settings import Settings
from loloha.errors import CampaignError, ParameterError
from loloha.sender.collector import JSON, Collector, Receipt
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
