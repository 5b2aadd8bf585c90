"""The life of a campaign: paused, ended, archived, deleted; what devices are told, what is left."""

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any, get_args

import pytest
import sqlalchemy as sql

from collecting import (
    ADMIN,
    HOUR,
    START,
    batch,
    become,
    campaign,
    clients,
    created,
    messages,
)
from loloha.campaign import Campaign, Schedule
from loloha.collector.life import State, Wanted, require_next
from loloha.collector.open_collector import SECONDS_TO_DROP
from loloha.collector.store import Store, schema
from loloha.collector.store.deletion import Deletion
from loloha.collector.store.log_queue import LogQueue
from loloha.collector.stored_campaign import StoredCampaign
from loloha.collector.submission import Submission, UploadOutcome
from loloha.collector.terms import Terms
from loloha.errors import CampaignError, ParameterError, StoreError

LINES = {"content-type": "application/x-ndjson"}
JSON = {"content-type": "application/json"}
NOW = START + 60
TERMS = Terms(late_seconds=HOUR, early_seconds=60, minimum_cohort=1)
COUNTED = [one.name for one in schema.metadata.tables.values() if "campaign_id" in one.c]


@pytest.fixture
def one() -> Campaign:
    return campaign()


def rows(store: Store, stored: StoredCampaign) -> dict[str, int]:
    with store.database.read() as connection:
        return {
            name: connection.scalar(
                sql.select(sql.func.count())
                .select_from(schema.metadata.tables[name])
                .where(schema.metadata.tables[name].c.campaign_id == stored.id)
            )
            or 0
            for name in COUNTED
        }


def test_which_state_may_follow_which() -> None:
    may = {
        (one, other)
        for one in get_args(State)
        for other in get_args(Wanted)
        if one != other and follows(one, other)
    }
    assert may == {
        ("open", "paused"),
        ("paused", "open"),
        ("open", "closed"),
        ("paused", "closed"),
        ("closed", "archived"),
        ("closed", "deleted"),
        ("archived", "deleted"),
        ("deleting", "deleted"),
    }


def follows(one: State, other: Wanted) -> bool:
    try:
        require_next(one, other)
    except CampaignError:
        return False
    return True


@pytest.mark.parametrize(("state", "says"), [("paused", "paused"), ("closed", "ended")])
def test_every_way_in_says_that_it_takes_no_reports(
    serve: Any, one: Campaign, state: str, says: str
) -> None:
    client, some = serve(), clients(one, 6)
    path = created(client, one)
    sent = messages(one, some, 0)
    assert client.post(f"{path}/reports", content=sent[0], headers=JSON).status_code == 200
    shown = become(client, one, state)
    assert (shown["state"], shown["fingerprint"]) == (state, one.fingerprint)
    assert shown["now"]["last_open"] < shown["now"]["first_open"]
    single = client.post(f"{path}/reports", content=sent[1], headers=JSON)
    many = client.post(f"{path}/reports", content=b"\n".join(sent), headers=LINES)
    together = client.post("/v1/reports", content=b"[%s]" % sent[2], headers=JSON)
    (answer,) = together.json()["answers"]
    assert answer["status"] == single.status_code == many.status_code == 410
    for told in (single.json(), many.json(), answer["body"]):
        assert told["campaign"] == says
        assert ("resumed" in told["detail"]) == (says == "paused")
        # What a device of 0.2 knows: it drops the report.
        assert (told["reason"], told["type"]) == ("late", "urn:loloha:problem:late")
    assert single.json()["reporter"] == some[1].reporter(0)
    assert answer["body"]["reporter"] == some[2].reporter(0)
    (counted,) = client.get(f"{path}/rounds").json()["rounds"]
    assert counted["n"] == 1


def test_keys_are_not_assigned_either(serve: Any) -> None:
    client, one = serve(), campaign(keys="assigned")
    path = created(client, one)
    assert client.post(f"{path}/keys").status_code == 200
    become(client, one, "paused")
    assert client.post(f"{path}/keys").json()["campaign"] == "paused"
    become(client, one, "open")
    assert client.post(f"{path}/keys").status_code == 200


def test_a_paused_campaign_goes_on_and_counts_nothing_twice(serve: Any, one: Campaign) -> None:
    client = serve()
    path = created(client, one)
    sent = messages(one, clients(one, 6), 0)
    become(client, one, "paused")
    become(client, one, "open")
    body = b"\n".join(sent)
    assert client.post(f"{path}/reports", content=body, headers=LINES).json()["accepted"] == 6
    become(client, one, "paused")
    become(client, one, "paused")
    become(client, one, "open")
    assert client.post(f"{path}/reports", content=body, headers=LINES).json()["duplicates"] == 6


def test_what_cannot_follow_is_refused_and_changes_nothing(serve: Any, one: Campaign) -> None:
    client = serve()
    path = created(client, one)
    assert "must be closed to become archived" in become(client, one, "archived", 409)["detail"]
    become(client, one, "paused")
    detail = become(client, one, "deleted", 409)["detail"]
    assert "deleted, it is paused" in detail
    assert "loloha campaign close" in detail
    become(client, one, "open")
    assert client.get(path).json()["state"] == "open"
    become(client, one, "closed")
    for state in ("open", "paused"):
        detail = become(client, one, state, 409)["detail"]
        assert "it is closed" in detail
        assert "loloha campaign close" not in detail
    assert client.get(path).json()["state"] == "closed"


def test_only_an_admin_and_only_what_is_there(serve: Any, one: Campaign) -> None:
    client = serve()
    created(client, one, token=True)
    path = f"/v1/admin/campaigns/{one.fingerprint}/state"
    body = {"state": "closed"}
    assert client.put(path, json=body).status_code == 401
    wrong = {"Authorization": "Bearer another"}
    assert client.put(path, json=body, headers=wrong).status_code == 403
    foreign = {**ADMIN, "Sec-Fetch-Site": "cross-site", "Origin": "https://evil.example"}
    assert client.put(path, json=body, headers=foreign).status_code == 403
    nowhere = path.replace(one.fingerprint, "0" * 64)
    assert client.put(nowhere, json=body, headers=ADMIN).status_code == 404
    for bad in ({"state": "gone"}, {"state": "deleting"}, {}, {"state": "open", "more": 1}, []):
        assert client.put(path, json=bad, headers=ADMIN).status_code == 422
    assert client.put(path, content=b"{", headers={**ADMIN, **JSON}).status_code == 400
    assert client.get(f"/v1/campaigns/{one.fingerprint}").json()["state"] == "open"


def test_archived_and_deleted_ones_are_listed_on_demand(serve: Any) -> None:
    client, every = serve(), [campaign(name=name) for name in get_args(Wanted)]
    for one in every:
        created(client, one)
        if one.name in ("archived", "deleted"):
            become(client, one, "closed")
        become(client, one, one.name)
    listed = client.get("/v1/campaigns").json()["campaigns"]
    assert [one["name"] for one in listed] == ["open", "paused", "closed"]
    listed = client.get("/v1/campaigns?archived=true").json()["campaigns"]
    assert [one["name"] for one in listed] == [one["state"] for one in listed]
    assert [one["name"] for one in listed] == [one.name for one in every]
    older = client.get(f"/v1/campaigns?newest=1&before={every[2].fingerprint}").json()
    assert [one["name"] for one in older["campaigns"]] == ["paused"]
    assert older["more"]


def test_rounds_of_an_ended_campaign_are_closed(serve: Any, one: Campaign) -> None:
    client = serve()
    path = created(client, one, terms={"minimum_cohort": 10})
    sent = messages(one, clients(one, 3), 0)
    client.post(f"{path}/reports", content=b"\n".join(sent), headers=LINES)

    def states() -> list[str]:
        (round,) = client.get(f"{path}/rounds").json()["rounds"]
        shown = [client.get(f"{path}/rounds/{at}/estimates").json()["state"] for at in (0, 9)]
        return [round["state"], *shown]

    assert states() == ["open", "open", "future"]
    become(client, one, "paused")
    assert states() == ["open", "open", "future"]
    for state in ("closed", "archived", "deleted"):
        become(client, one, state)
        assert set(states() if state != "deleted" else ["closed"]) == {"closed"}


def test_a_state_outlives_the_collector(serve: Any, one: Campaign) -> None:
    first = serve()
    path = created(first, one)
    become(first, one, "closed")
    second = serve()
    assert second.get(path).json()["state"] == "closed"
    sent = messages(one, clients(one, 1), 0)
    assert second.post(f"{path}/reports", content=sent[0], headers=JSON).status_code == 410
    # Created again it is what it was.
    again = {"campaign": one.to_dict()}
    told = second.post("/v1/campaigns", json=again, headers=ADMIN).json()
    assert (told["created"], told["campaign"]["state"]) == (False, "closed")


def test_counts_stay_at_the_end_and_are_gone_once_deleted(store: Store, one: Campaign) -> None:
    store._record.keeps = lambda *_: b"kept"
    stored = store.create(one, TERMS, token=b"t" * 32, now=NOW)[0]
    other = store.create(campaign(name="other"), TERMS, token=None, now=NOW)[0]
    for each in (stored, other):
        sent = messages(each.campaign, clients(each.campaign, 20), 0)
        upload = Submission.of(each, batch(each.campaign, sent))
        store.record([upload], NOW)
    before, tally = rows(store, stored), store.tally(stored, 0)
    assert min(before[name] for name in ("cell", "outcome", "guard", "kept")) > 0
    store.set_state(stored, "closed", NOW)
    assert rows(store, stored) == {**before, "guard": 0}
    assert store.tally(stored, 0) == tally
    store.set_state(stored, "deleted", NOW)
    assert rows(store, stored) == dict.fromkeys(COUNTED, 0)
    assert rows(store, other)["guard"] > 0
    assert store.life(stored).state == "deleted"
    # The document stays: devices are told that it has ended.
    assert store.campaign(one.fingerprint).campaign == one  # type: ignore[union-attr]
    assert not store.tally(stored, 0).n


@pytest.mark.parametrize("state", ["open", "paused"])
def test_an_end_date_closes_it_by_the_clock_alone(store: Store, state: State) -> None:
    end = START + HOUR + 60
    one = campaign(schedule=Schedule(START, HOUR, expires=end))
    terms = Terms(late_seconds=9 * HOUR, early_seconds=60, minimum_cohort=1, publish_every=0)
    stored = store.create(one, terms, token=None, now=NOW)[0]
    some = clients(one, 4)
    uploads = [Submission.of(stored, batch(one, messages(one, some, round))) for round in (0, 1, 2)]
    early = end - 1
    for upload, accepted in zip(uploads, (4, 4, 0), strict=True):
        outcome = UploadOutcome.of(store.record([upload], early)[0].tolist())
        assert outcome.accepted == accepted
    store.set_state(stored, state, early)
    store.close_rounds(early)
    # Not shown before, however many there are; nor are pseudonyms gone.
    assert (store.tally(stored, 0).n, rows(store, stored)["guard"]) == (0, 2)
    store.close_rounds(end)
    assert [store.tally(stored, round).n for round in (0, 1)] == [4, 4]
    assert rows(store, stored)["guard"] == 0
    for upload in uploads:
        outcome = UploadOutcome.of(store.record([upload], end)[0].tolist())
        assert (outcome.accepted, {str(one) for one in outcome.reasons}) == (0, {"late"})
    for wanted in ("open", "paused"):
        with pytest.raises(CampaignError, match="it is closed"):
            store.set_state(stored, wanted, end)
    store.set_state(stored, "archived", end)


def test_a_new_campaign_is_not_over_already(serve: Any, clock: Any) -> None:
    client, end = serve(), START + HOUR
    one = campaign(schedule=Schedule(START, HOUR, expires=end))
    asked = {"campaign": one.to_dict()}
    clock.now = end
    told = client.post("/v1/campaigns", json=asked, headers=ADMIN)
    assert (told.status_code, told.json()["type"]) == (422, "urn:loloha:problem:campaign")
    assert "expires must lie ahead" in told.json()["detail"]
    assert client.get("/v1/campaigns").json()["campaigns"] == []
    clock.now = end - 1
    created(client, one)
    clock.now = end
    # The same again changes nothing.
    told = client.post("/v1/campaigns", json=asked, headers=ADMIN)
    assert (told.status_code, told.json()["created"]) == (200, False)


@pytest.mark.parametrize("state", ["paused", "closed"])
def test_the_store_itself_refuses_what_was_on_its_way(
    store: Store, one: Campaign, state: State
) -> None:
    stored = store.create(one, TERMS, token=None, now=NOW)[0]
    some = clients(one, 4)
    uploads = [Submission.of(stored, batch(one, messages(one, some, round))) for round in (0, 9)]
    store.set_state(stored, state, NOW)
    for upload in uploads:
        outcome = UploadOutcome.of(store.record([upload], NOW)[0].tolist())
        assert (outcome.accepted, {str(one) for one in outcome.reasons}) == (0, {"late"})
    assert rows(store, stored)["guard"] == 0


def test_sums_past_keep_days_are_deleted(store: Store, one: Campaign) -> None:
    day, keep = 24, Terms(late_seconds=HOUR, early_seconds=60, minimum_cohort=1, keep_days=2)
    stored = store.create(one, keep, token=None, now=NOW)[0]
    for_ever = store.create(campaign(name="other"), TERMS, token=None, now=NOW)[0]
    some = clients(one, 3)
    for each in (stored, for_ever):
        for round in (0, 1, 2 * day):
            sent = Submission.of(each, batch(each.campaign, messages(each.campaign, some, round)))
            store.record([sent], START + round * HOUR)

    def kept(each: StoredCampaign) -> list[int]:
        return [one.number for one in store.rounds(each)]

    # A round of an hour, an hour more for those that are late, and two days.
    last = START + HOUR + HOUR + 2 * 86_400
    Deletion(store).old_sums(last - 1)
    assert kept(stored) == [0, 1, 2 * day]
    Deletion(store).old_sums(last)
    assert kept(stored) == [1, 2 * day]
    assert not store.tally(stored, 0).counts.any()
    Deletion(store).old_sums(last + HOUR)
    assert kept(stored) == [2 * day]
    assert kept(for_ever) == [0, 1, 2 * day]


def test_a_collector_drops_them_by_itself(serve: Any, one: Campaign, clock: Any) -> None:
    client = serve()
    path = created(client, one, terms={"keep_days": 1, "late_seconds": 0, "minimum_cohort": 1})
    sent = messages(one, clients(one, 3), 0)
    client.post(f"{path}/reports", content=b"\n".join(sent), headers=LINES)
    assert len(client.get(f"{path}/rounds").json()["rounds"]) == 1
    clock.now += 2 * 86_400
    client = serve(accept_clock=True)
    # A start by a clock that is ahead deletes nothing yet.
    client.__exit__(None, None, None)
    client = serve(steady=lambda: clock.now)
    assert len(client.get(f"{path}/rounds").json()["rounds"]) == 1
    clock.now += SECONDS_TO_DROP
    client.__exit__(None, None, None)
    client = serve()
    assert client.get(f"{path}/rounds").json()["rounds"] == []
    assert client.get(path).json()["terms"]["keep_days"] == 1


def test_terms_keep_at_least_a_day() -> None:
    for days in (0, -1, 1.5, 10**6):
        with pytest.raises(ParameterError, match="keep_days"):
            Terms(keep_days=days)  # type: ignore[arg-type]
    assert Terms.from_dict(Terms(keep_days=3).to_dict()) == Terms(keep_days=3)
    assert "keep_days" not in Terms().to_dict()


def test_reports_of_a_campaign_that_is_deleted_on_the_way_to_a_log_make_no_file(
    store: Store, one: Campaign
) -> None:
    store._record.keeps = lambda *_: b"kept"
    stored = store.create(one, TERMS, token=None, now=NOW)[0]
    for round in (0, 1):
        sent = messages(one, clients(one, 3), round)
        store.record([Submission.of(stored, batch(one, sent))], START + round * HOUR)
    delivered: list[Any] = []

    def deliver(_: Any, round: int, reports: list[bytes]) -> None:
        delivered.append((round, reports))
        for state in ("closed", "deleted"):
            store.set_state(stored, state, NOW)

    LogQueue(store).take(deliver)
    assert delivered == [(0, [b"kept"])]


def test_refusals_of_no_round_stay_until_a_round_is_deleted(store: Store, one: Campaign) -> None:
    keep = Terms(late_seconds=0, early_seconds=0, minimum_cohort=1, keep_days=1)
    stored = store.create(one, keep, token=None, now=START - HOUR)[0]
    early = Submission.of(stored, batch(one, messages(one, clients(one, 3), 0)))
    store.record([early], START - HOUR)
    Deletion(store).old_sums(START)
    (before,) = store.rounds(stored)
    assert (before.number, before.refused) == (-1, {"early": 3})
    Deletion(store).old_sums(START + 2 * 86_400)
    assert store.rounds(stored) == []


def test_what_was_on_its_way_leaves_nothing_in_a_deleted_campaign(
    store: Store, one: Campaign
) -> None:
    stored = store.create(one, TERMS, token=None, now=NOW)[0]
    upload = Submission.of(stored, batch(one, messages(one, clients(one, 4), 0)))
    store.set_state(stored, "closed", NOW)
    store.set_state(stored, "deleted", NOW)
    assert UploadOutcome.of(store.record([upload], NOW)[0].tolist()).accepted == 0
    assert rows(store, stored) == dict.fromkeys(COUNTED, 0)


@pytest.mark.parametrize(
    ("states", "says"),
    [(["paused"], "open"), (["closed"], "closed"), (["closed", "archived"], "closed")],
)
def test_rounds_of_a_campaign_that_has_ended_are_closed(
    serve: Any, one: Campaign, states: list[str], says: str
) -> None:
    client = serve()
    path = created(client, one, terms={"minimum_cohort": 1})
    sent = messages(one, clients(one, 6), 0)
    client.post(f"{path}/reports", content=b"\n".join(sent), headers=LINES)
    shown = client.get(f"{path}/rounds/0/estimates")
    for state in states:
        become(client, one, state)
    assert client.get(f"{path}/rounds").json()["rounds"][0]["state"] == says
    known = {"If-None-Match": shown.headers["ETag"]}
    again = client.get(f"{path}/rounds/0/estimates", headers=known)
    assert again.status_code == (304 if says == "open" else 200)
    assert client.get(f"{path}/rounds/0/estimates").json()["state"] == says
    unborn = client.get(f"{path}/rounds/99/estimates").json()["state"]
    assert unborn == ("future" if says == "open" else "closed")


def test_changes_at_the_same_time_are_remembered_in_the_order_of_their_commits(
    serve: Any, one: Campaign, monkeypatch: pytest.MonkeyPatch
) -> None:
    client, paused, opened = serve(), threading.Event(), threading.Event()
    path, change = created(client, one), Store.set_state

    def slow(store: Store, stored: StoredCampaign, wanted: State, now: float) -> None:
        change(store, stored, wanted, now)
        if wanted == "open":
            opened.set()
        else:
            paused.set()
            opened.wait(0.5)

    monkeypatch.setattr(Store, "set_state", slow)
    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(become, client, one, "paused")
        assert paused.wait(300)
        second = pool.submit(become, client, one, "open")
        assert second.result(300)["state"] == "open"
        # What it says is so by now.
        assert first.result(300)["state"] == "open"
    assert client.get(path).json()["state"] == "open"


def test_a_change_whose_commit_is_uncertain_is_looked_up(
    serve: Any, one: Campaign, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = serve()
    path = created(client, one)
    database = client.app.state.context.store.database

    def cut_off() -> None:
        monkeypatch.undo()
        raise StoreError("store must be reachable; try again")

    monkeypatch.setattr(database, "must_be_in_place", cut_off)
    become(client, one, "paused", 503)
    assert client.get(path).json()["state"] == "paused"
    sent = messages(one, clients(one, 1), 0)
    told = client.post(f"{path}/reports", content=sent[0], headers=JSON)
    assert (told.status_code, told.json()["campaign"]) == (410, "paused")


@pytest.mark.parametrize(("state", "says"), [("paused", "paused"), ("closed", "ended")])
def test_an_upload_under_way_gets_the_state_of_the_campaign(
    serve: Any, one: Campaign, monkeypatch: pytest.MonkeyPatch, state: State, says: str
) -> None:
    client, record = serve(), Store.record
    path = created(client, one)
    sent = messages(one, clients(one, 6), 0)

    def change_before(store: Store, submissions: Any, now: float) -> Any:
        store.set_state(submissions[0].stored, state, now)
        return record(store, submissions, now)

    monkeypatch.setattr(Store, "record", change_before)
    ways = [
        (f"{path}/reports", sent[1], JSON),
        (f"{path}/reports", b"\n".join(sent), LINES),
        ("/v1/reports", b"[%s]" % sent[2], JSON),
    ]
    for where, body, headers in ways:
        store = client.app.state.context.store
        with store.writing() as connection:
            connection.execute(sql.update(schema.campaign).values(state="open", first_open=0))
        store.read_lives()
        assert client.get(path).json()["state"] == "open"
        answer = client.post(where, content=body, headers=headers)
        told = answer.json()
        if "answers" in told:
            ((status, told),) = [(each["status"], each["body"]) for each in told["answers"]]
        else:
            status = answer.status_code
        assert (status, told["campaign"], told["reason"]) == (410, says, "late")
