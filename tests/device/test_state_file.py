"""The state file: one opener, one name; withdrawn without a trace; a clock that heals."""

import json
import os
import shutil
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

import loloha
from collecting import HOUR, START, Clock, campaign
from faulty import Collector, Disk
from loloha.device.client import KEPT_ROUNDS, Account, Client
from loloha.device.file import StateFile, resolved, write_private
from loloha.device.rounds import MOST_INTERVALS, are_rounds, holds, including
from loloha.device.sender import Sender, explain_all
from loloha.errors import BudgetError, CampaignError, LolohaError, ParameterError, StateError
from loloha.rules.campaign import Campaign
from loloha.rules.report import LARGEST_ROUND

posix = pytest.mark.skipif(os.name != "posix", reason="locks and links are those of POSIX")
HOURS, PAGES = (
    campaign("hours", protocol=loloha.LGRR(k=5, eps_inf=2.0, eps_1=1.0)),
    campaign("pages"),
)


def url(one: Campaign = HOURS) -> str:
    return f"http://c/v1/campaigns/{one.fingerprint}"


@pytest.fixture
def clock() -> Clock:
    return Clock(START + 60)


@pytest.fixture(autouse=True)
def collector(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Collector:
    """Everybody's collector, in this process; that all is on the disk is tested elsewhere."""

    class Anything(dict[str, Any]):
        def __missing__(self, _: str) -> bytes:
            return (tmp_path / "state").read_bytes()

    disk = Disk(tmp_path)
    disk.durable = Anything()
    found = Collector([HOURS, PAGES], disk)
    for module in ("sender", "collector"):
        monkeypatch.setattr(f"loloha.device.{module}.Connection", found)
    return found


def sender(path: Path, clock: Clock) -> Sender:
    return Sender(path, clock=clock)


# -- one opener


@posix
def test_a_link_is_the_file_that_it_points_to(tmp_path: Path, clock: Clock) -> None:
    (tmp_path / "link").symlink_to("state")
    (tmp_path / "folder").symlink_to(tmp_path, target_is_directory=True)
    names = [tmp_path / "link", tmp_path / "folder" / "state", tmp_path / "folder" / "link"]
    with sender(tmp_path / "state", clock) as one:
        one.agree(url())
        for name in names:
            with pytest.raises(StateError, match="another has it"):
                sender(name, clock)
    with sender(names[2], clock) as one:
        one.report("a")
    assert (tmp_path / "link").is_symlink()
    with sender(tmp_path / "state", clock) as one:
        assert one.answered == {0}


@posix
def test_a_state_of_two_names_is_refused(tmp_path: Path, clock: Clock) -> None:
    with sender(tmp_path / "state", clock) as one:
        one.agree(url())
    os.link(tmp_path / "state", tmp_path / "other")
    for name in ("state", "other"):
        with pytest.raises(StateError, match="one file with one name"):
            sender(tmp_path / name, clock)
    (tmp_path / "other").unlink()
    sender(tmp_path / "state", clock).close()


@posix
def test_deleting_the_lock_admits_nobody(tmp_path: Path, clock: Clock) -> None:
    with sender(tmp_path / "state", clock) as one:
        one.agree(url())
        before = (tmp_path / "state").read_bytes()
        (tmp_path / "state.lock").unlink()
        # The state itself is locked as well.
        with pytest.raises(StateError, match="another has it"):
            sender(tmp_path / "state", clock)
        for act in (
            lambda: one.report("a"),
            one.deliver,
            one.reset,
            one.withdraw,
            lambda: one.loss,
        ):
            with pytest.raises(StateError, match="must keep its lock"):
                act()
        assert (tmp_path / "state").read_bytes() == before
    with sender(tmp_path / "state", clock) as one:
        assert one.report("a") == 0


@posix
def test_deleting_the_lock_before_there_is_consent_leaves_one(tmp_path: Path, clock: Clock) -> None:
    with sender(tmp_path / "state", clock) as one:
        (tmp_path / "state.lock").unlink()
        with sender(tmp_path / "state", clock) as two:
            two.agree(url())
            with pytest.raises(StateError, match="must keep its lock"):
                one.agree(url())
            assert two.report("a") == 0


@posix
@pytest.mark.parametrize("change", ["deleted", "replaced", "restored"])
def test_a_state_that_is_changed_under_a_sender_stops_it(
    tmp_path: Path, clock: Clock, change: str
) -> None:
    path = tmp_path / "state"
    with sender(path, clock) as one:
        one.agree(url())
        one.report("a")
        copy = path.read_bytes()
        path.unlink()
        if change != "deleted":
            path.write_bytes(copy if change == "restored" else b"{}")
        for act in (lambda: one.report("b", round=1), one.deliver, one.reset, lambda: one.consent):
            with pytest.raises(StateError, match="deleted or replaced"):
                act()
        assert path.exists() == (change != "deleted")


def test_a_closed_sender_is_of_no_use(tmp_path: Path, clock: Clock) -> None:
    with sender(tmp_path / "state", clock) as one:
        one.agree(url())
    before = (tmp_path / "state").read_bytes()
    for act in (
        lambda: one.report("a"), one.deliver, one.reset, one.withdraw, lambda: one.agree(url()),
        lambda: one.consent, lambda: one.loss, lambda: one.answered,
    ):  # fmt: skip
        with pytest.raises(StateError, match="it was closed"):
            act()
    one.close()
    assert (tmp_path / "state").read_bytes() == before


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this platform does not fork")
def test_a_fork_has_neither_sender_nor_client(tmp_path: Path, clock: Clock) -> None:
    with sender(tmp_path / "state", clock) as one:
        one.agree(url())
        client = HOURS.protocol.client()
        child = os.fork()
        if child == 0:  # pragma: no cover - the other process
            refused = 0
            for act in (
                lambda: one.report("a"), one.deliver, one.withdraw, lambda: one.loss,
                lambda: client.report(1, round=0), client.reset,
            ):  # fmt: skip
                try:
                    act()
                except StateError:
                    refused += 1
            one.close()
            os._exit(refused)
        _, status = os.waitpid(child, 0)
        assert os.waitstatus_to_exitcode(status) == 6
        # The child has closed its copies; the lock is still ours.
        with pytest.raises(StateError, match="another has it"):
            sender(tmp_path / "state", clock)
        assert one.report("a") == 0
    assert client.report(1, round=0)


@posix
@pytest.mark.parametrize("kind", ["fifo", "folder", "device"])
def test_what_is_no_file_is_refused_at_once(tmp_path: Path, clock: Clock, kind: str) -> None:
    path = tmp_path / "state"
    if kind == "fifo":
        os.mkfifo(path)
    elif kind == "folder":
        path.mkdir()
    else:
        path.symlink_to("/dev/zero")
    with pytest.raises(StateError, match=r"^state must "):
        Client.load(path)
    if kind != "device":
        with pytest.raises(StateError, match=r"^state must "):
            sender(path, clock)


def test_a_tilde_is_the_home(tmp_path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("USERPROFILE", str(tmp_path))
    with sender(Path("~/state"), clock) as one:
        one.agree(url())
    assert one.path == tmp_path / "state"
    assert (tmp_path / "state").exists()
    HOURS.protocol.client().save("~/client")
    assert Client.load("~/client").loss == 0
    assert not Path("~").exists()


def test_threads_share_a_sender(tmp_path: Path, clock: Clock, collector: Collector) -> None:
    wrong: list[LolohaError] = []
    with sender(tmp_path / "state", clock) as one:
        one.agree(url())

        def work(n: int) -> None:
            try:
                for round in range(12):
                    one.report("abcde"[n], round=round)
                    if round % 4 == n:
                        one.deliver()
            except LolohaError as error:
                wrong.append(error)

        threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        one.deliver()
        assert wrong == []
        assert one.answered == set(range(12))
    by_round: dict[int, set[str]] = {}
    for round, body in collector.left:
        by_round.setdefault(round, set()).add(body)
    assert {round: len(bodies) for round, bodies in by_round.items()} == dict.fromkeys(range(12), 1)


def test_threads_share_a_client() -> None:
    client = loloha.GRR(k=5, eps=1.0).client()
    threads = [
        threading.Thread(target=lambda n=n: [client.report(n, round=round) for round in range(50)])
        for n in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert client.loss == 50.0


def test_a_report_does_not_wait_for_a_delivery(
    tmp_path: Path, clock: Clock, collector: Collector
) -> None:
    reached, go_on = threading.Event(), threading.Event()
    post = collector.post

    def slow(*parts: Any) -> Any:
        reached.set()
        assert go_on.wait(20)
        return post(*parts)

    collector.post = slow  # type: ignore[method-assign]
    with sender(tmp_path / "state", clock) as one:
        one.agree(url())
        one.report("a")
        thread = threading.Thread(target=one.deliver)
        thread.start()
        assert reached.wait(20)
        assert one.report("b", round=1) == 1
        assert one.loss == 4.0
        go_on.set()
        thread.join()
        assert one.deliver().sent == (1,)


def test_nothing_leaves_after_a_withdrawal_in_the_middle_of_a_delivery(
    tmp_path: Path, clock: Clock, collector: Collector
) -> None:
    post = collector.post

    def withdrawing(*parts: Any) -> Any:
        answer = post(*parts)
        one.withdraw()
        return answer

    collector.post = withdrawing  # type: ignore[method-assign]
    with sender(tmp_path / "state", clock) as one:
        one.agree(url())
        for round in range(3):
            one.report("a", round=round)
        assert one.deliver().waiting == ()
        assert not one.consent
    assert [round for round, _ in collector.left] == [0]
    assert not (tmp_path / "state").exists()


def test_a_sender_is_not_entered_twice_by_one_thread(tmp_path: Path, clock: Clock) -> None:
    """As a signal handler would: the step that it interrupts must not lose what it did."""
    with sender(tmp_path / "state", clock) as one:
        one.agree(url())
        one._clock = lambda: one.report("b", round=5) or 0.0
        with pytest.raises(StateError, match="one call before the next"):
            one.report("a")
        one._clock = clock
        assert one.report("a") == 0


# -- withdrawal


def test_a_withdrawal_is_complete_and_may_be_repeated(tmp_path: Path, clock: Clock) -> None:
    with sender(tmp_path / "state", clock) as one:
        one.agree(url())
        one.report("a")
        said = one.withdraw()
        assert one.withdraw() == said
        assert "2 spent so far stays spent" in said
        assert "counts you twice" in said
    with sender(tmp_path / "state", clock) as one:
        assert not one.consent
        assert one.withdraw() == said
    assert {path.name for path in tmp_path.iterdir()} == {"state.lock", "state.spent"}
    kept = json.loads((tmp_path / "state.spent").read_text())
    assert kept == {
        "type": "loloha-spent", "version": 1, "spent": 2.0,
        "answered": {HOURS.fingerprint: [[0, 0]]},
    }  # fmt: skip
    assert (tmp_path / "state.spent").stat().st_mode & 0o777 == 0o600


def test_a_withdrawal_before_anything_happened_leaves_nothing(tmp_path: Path, clock: Clock) -> None:
    with sender(tmp_path / "state", clock) as one:
        one.agree(url())
        one.withdraw()
    assert {path.name for path in tmp_path.iterdir()} == {"state.lock"}


@posix
def test_what_killed_writers_left_is_swept(tmp_path: Path, clock: Clock) -> None:
    secrets = [".loloha-abc12_de", ".loloha-0123456789abcdef"]
    others = [".loloha", "loloha-abcdefgh", ".loloha-ABC", "x.loloha-abcdefgh"]
    with sender(tmp_path / "state", clock) as one:
        one.agree(url())
        for name in [*secrets, *others]:
            (tmp_path / name).write_text("key and memo")
        one.withdraw()
        left = {path.name for path in tmp_path.iterdir()}
        assert left == {"state.lock", *others}
        (tmp_path / secrets[0]).write_text("key and memo")
    with sender(tmp_path / "state", clock):
        assert not (tmp_path / secrets[0]).exists()
    (tmp_path / secrets[1]).write_text("key and memo")
    HOURS.protocol.client().save(tmp_path / "client")
    assert not (tmp_path / secrets[1]).exists()


@posix
def test_a_writer_that_is_at_work_is_not_swept(tmp_path: Path, clock: Clock) -> None:
    kept: list[bool] = []

    def sweeping() -> None:
        sender(tmp_path / "other", clock).close()
        kept.extend(path.exists() for path in tmp_path.glob(".loloha-*"))

    from loloha.device.file import _write

    _write(str(tmp_path / "state"), b"{}", sweeping).close()
    assert kept == [True]


@posix
def test_what_a_killed_process_left_is_gone_after_a_withdrawal(tmp_path: Path) -> None:
    script = (
        "import os, sys\n"
        "import loloha.device.file as file\n"
        "file.os = type('os', (), {**vars(os), 'replace': lambda *a: os.kill(os.getpid(), 9)})\n"
        "file.write_private(sys.argv[1], b'key, memo and queue')\n"
    )
    ended = subprocess.run([sys.executable, "-c", script, str(tmp_path / "state")], check=False)
    assert ended.returncode == -9
    (left,) = tmp_path.glob(".loloha-*")
    assert left.read_bytes() == b"key, memo and queue"
    with Sender(tmp_path / "state") as one:
        one.withdraw()
    assert not left.exists()


def test_a_state_that_cannot_be_deleted_stays_agreed(
    tmp_path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    def busy(*_: Any) -> None:
        raise OSError(16, "Device or resource busy")

    with sender(tmp_path / "state", clock) as one:
        one.agree(url())
        one.report("a")
        with monkeypatch.context() as patch:
            patch.setattr("loloha.device.file.os.unlink", busy)
            with pytest.raises(StateError, match=r"must be deletable.*busy"):
                one.withdraw()
        assert one.consent
        assert one.report("b", round=1) == 1
        one.withdraw()
        assert one.loss == 4.0
    assert not (tmp_path / "state").exists()


# -- what was spent


def test_the_loss_outlives_withdrawals_and_resets(tmp_path: Path, clock: Clock) -> None:
    with sender(tmp_path / "state", clock) as one:
        for cycle in range(3):
            one.agree(url(), limit=8.0)
            assert one.loss == 2.0 * cycle
            assert one.report("a") == 0
            assert one.withdraw()
            assert one.loss == 2.0 * (cycle + 1)
        one.agree(url(), limit=8.0)
        one.report("a")
        one.reset()
        assert one.loss == 8.0
        # 8 are spent: nothing new is drawn, whoever asks.
        assert one.report("a") is None
        one.withdraw()
    with sender(tmp_path / "state", clock) as one:
        assert one.loss == 8.0
        one.agree(url(), limit=8.0)
        assert one.report("a") is None
        one.agree(url(), limit=10.0)
        assert one.report("a") == 0


def test_a_new_start_may_wait_for_the_next_round(tmp_path: Path, clock: Clock) -> None:
    with sender(tmp_path / "state", clock) as one:
        one.agree(url())
        for round in (0, 1, 5):
            one.report("a", round=round)
        assert "not answered again" in one.reset(wait=True)
        assert one.report("b", round=1) == 1
        assert one.loss == 6.0 - 4.0
        one.report("b", round=2)
        assert "twice" in one.reset()
        assert one.report("b", round=2) == 2
        one.withdraw()
        one.agree(url(), wait=True)
        spent = one.loss
        for round in (0, 1, 2, 5):
            assert one.report("c", round=round) == round
        assert one.loss == spent
        assert one.report("c", round=3) == 3
        assert one.loss == spent + 2.0


def test_a_client_goes_on_from_an_account() -> None:
    client = HOURS.protocol.client(limit=4.0)
    client.report(0, round=3)
    assert client.account == Account(2.0, ((3, 3),))
    later = Client(HOURS.protocol, limit=4.0, account=client.account)
    assert (later.loss, later.has_answered(3), later.has_answered(2)) == (2.0, True, False)
    with pytest.raises(StateError, match="was not answered"):
        later.report(0, round=3)
    later.report(0, round=4)
    with pytest.raises(BudgetError):
        later.report(1, round=5)


@pytest.mark.parametrize(
    "damage",
    [
        b"", b"{}", b"[]", b"null", b"[" * 100_000, b'{"type":"loloha-spent","version":2}',
        *(
            json.dumps({"type": "loloha-spent", "version": 1, "spent": 0.0, "answered": {}, **bad})
            for bad in (
                {"spent": -1}, {"spent": float("inf")}, {"spent": float("nan")}, {"spent": "2"},
                {"spent": True}, {"answered": []}, {"answered": {"x": [[2, 1]]}},
                {"answered": {"x": [[0, 1], [2, 3]]}}, {"answered": {"x": [[-1, 3]]}},
                {"answered": {"x": [[0.0, 3]]}}, {"answered": {"x": [3]}}, {"answered": None},
            )
        ),
    ],
)  # fmt: skip
def test_a_damaged_ledger_is_refused(tmp_path: Path, clock: Clock, damage: bytes | str) -> None:
    (tmp_path / "state.spent").write_bytes(damage if isinstance(damage, bytes) else damage.encode())
    with sender(tmp_path / "state", clock) as one:
        with pytest.raises(StateError):
            one.agree(url())
        assert not one.consent


# -- several campaigns under one limit


def test_one_limit_bounds_the_sum_of_all_campaigns(tmp_path: Path, clock: Clock) -> None:
    with sender(tmp_path / "state", clock) as one:
        assert one.agree(url(HOURS), url(PAGES), limit=5.0) == HOURS
        assert one.campaigns == {"hours": HOURS, "pages": PAGES}
        assert one.report_all({"pages": "a", "hours": "b"}) == {"pages": 0, "hours": 0}
        assert one.loss == 4.0
        # A value that was answered before costs nothing; another does not fit any more.
        assert one.report_all({"hours": "b", "pages": "a"}, round=1) == {"hours": 1, "pages": 1}
        assert one.report_all({"hours": "c"}, round=2) == {"hours": None}
        assert one.loss == 4.0
        delivered = one.deliver_all()
        assert {name: each.sent for name, each in delivered.items()} == {
            "hours": (0, 1), "pages": (0, 1),
        }  # fmt: skip
    with sender(tmp_path / "state", clock) as one:
        assert (one.loss, one.limit) == (4.0, 5.0)
        assert one.agree(url(PAGES), url(HOURS)) == HOURS
        said = one.reset()
        assert "2 campaigns" in said
        assert "The 4 spent" in said
        assert one.report_all({"hours": "a"}, round=9) == {"hours": None}


def test_what_all_campaigns_reveal_together_is_said() -> None:
    one = explain_all([HOURS])
    assert "hours: one of 5 values, every hour" in one
    assert "e^1 = 2.718; all reports of a value that never changes, for ever, by at most" in one
    assert "at most 10 can be spent, the cap" in one
    assert "together" not in one
    both = explain_all([HOURS, PAGES], limit=5.0)
    assert "The first report of each, all of them known: a factor of at most e^2 = 7.389" in both
    assert "all reports of values that never change: e^4 = 54.6" in both
    assert "at most 5 can be spent, the limit that is agreed on" in both
    assert "the cap" in explain_all([HOURS], limit=50.0)
    fresh = campaign("fresh", protocol=loloha.GRR(k=5, eps=1.0))
    assert "no most that can be spent" in explain_all([fresh, HOURS])
    assert "no bound for ever" in explain_all([fresh, HOURS])
    with pytest.raises(ParameterError, match="at least one"):
        explain_all([])


def test_all_are_queued_or_none(tmp_path: Path, clock: Clock) -> None:
    with sender(tmp_path / "state", clock) as one:
        one.agree(url(HOURS), url(PAGES))
        for bad in ({"hours": "a", "pages": "z"}, {"hours": "a", "others": "a"}):
            with pytest.raises((LolohaError, ParameterError)):
                one.report_all(bad)
        assert one.loss == 0
        assert all(not each.queue for each in one._state.agreed().enrolments)
        for act in (lambda: one.report("a"), one.deliver, lambda: one.campaign):
            with pytest.raises(StateError, match="the only one, the user agreed to 2"):
                act()


def test_an_agreement_is_to_different_campaigns(tmp_path: Path, clock: Clock) -> None:
    with sender(tmp_path / "state", clock) as one:
        for wrong in ([], [url(), url()]):
            with pytest.raises(ParameterError, match="different campaigns"):
                one.agree(*wrong)
        with pytest.raises(ParameterError, match=r"limit must be a number in \[4, inf\]"):
            one.agree(url(HOURS), url(PAGES), limit=3.0)
        one.agree(url(HOURS), url(PAGES))
        with pytest.raises(CampaignError, match="which the user agreed to"):
            one.agree(url(HOURS))


def test_an_answered_round_checks_its_value_too(tmp_path: Path, clock: Clock) -> None:
    with sender(tmp_path / "state", clock) as one:
        one.agree(url())
        one.report("a")
        with pytest.raises(LolohaError, match="value must"):
            one.report("z")


# -- clocks


def test_a_clock_that_was_years_ahead_heals(tmp_path: Path, clock: Clock) -> None:
    with sender(tmp_path / "state", clock) as one:
        one.agree(url())
        one.report("a")
        clock.now = START + 10 * 365 * 24 * HOUR
        for _ in range(3 * KEPT_ROUNDS):
            one.report("a")
            # Rounds that are skipped must not use up the gaps that are remembered.
            clock.now += 2 * HOUR
        ahead = one.answered
        assert min(ahead) > 80_000
        clock.now = START + HOUR
        for round in range(1, 2 * KEPT_ROUNDS):
            assert one.report("b") == round
            clock.now += HOUR
        assert max(one.answered) == 2 * KEPT_ROUNDS - 1
        assert one.loss == 4.0
    with sender(tmp_path / "state", clock) as one:
        client = one._state.agreed().enrolments[0].client
        assert all(client.has_answered(round) for round in (*range(2 * KEPT_ROUNDS), *ahead))
        assert not client.has_answered(2 * KEPT_ROUNDS)


def test_a_device_that_begins_ahead_of_time_heals(tmp_path: Path, clock: Clock) -> None:
    with sender(tmp_path / "state", clock) as one:
        one.agree(url())
        clock.now = START + 10 * 365 * 24 * HOUR
        for _ in range(2 * KEPT_ROUNDS):
            one.report("a")
            clock.now += HOUR
        clock.now = START + 60
        before = one._state.agreed().enrolments[0].queue
        assert one.report("b") == 0
        assert 0 not in before


def test_rounds_are_a_set_that_only_grows() -> None:
    """Against a plain set: nothing is forgotten, and few gaps are lost, the shortest first."""
    import random

    draw = random.Random(7)
    for span in (30, 300, 10_000, LARGEST_ROUND):
        rounds, plain = (), set[int]()
        for _ in range(300):
            round = draw.choice([draw.randrange(span + 1), max(plain, default=0) + 1])
            round = min(round, LARGEST_ROUND)
            rounds = including(rounds, ((round, round),))
            plain.add(round)
            assert are_rounds(rounds, LARGEST_ROUND)
            assert all(holds(rounds, one) for one in plain)
        probes = {draw.randrange(span + 1) for _ in range(300)} - plain
        if len(rounds) < MOST_INTERVALS:
            assert not any(holds(rounds, one) for one in probes)
    wide = including((), tuple((10 * i, 10 * i) for i in range(MOST_INTERVALS)))
    assert len(wide) == MOST_INTERVALS
    closed = including(wide, ((633, 633),))
    assert holds(closed, 632)
    assert not holds(closed, 5)
    assert including(closed, wide) == closed


# -- what 0.1.0 wrote


OLD = Path(__file__).parent / "states-0.1.0"


@pytest.mark.parametrize("name", ["fresh", "forgetful", "reset", "limited", "never"])
def test_states_of_the_first_release_go_on(tmp_path: Path, name: str) -> None:
    plain = json.loads((OLD / f"client-{name}.json").read_text())
    expected = json.loads((OLD / f"client-{name}.expected.json").read_text())
    client = Client.load(OLD / f"client-{name}.json")
    assert (client.loss, client.limit) == (expected["loss"], expected["limit"])
    assert client.reporter(7) == expected["reporter"]
    for round, key, y in plain["sent"]:
        report = client.report(0, round=round)
        assert report.key == (tuple(key) if isinstance(key, list) else key)
        assert report.y == (bytes.fromhex(y) if isinstance(y, str) else y)
    for round in range(plain["floor"] + 1):
        with pytest.raises(StateError, match="was not answered"):
            client.report(0, round=round)
    client.save(tmp_path / "again")
    again = Client.load(tmp_path / "again")
    assert again.to_dict() == client.to_dict()
    assert again.to_dict()["version"] == 2


def test_a_sender_of_the_first_release_goes_on(tmp_path: Path, collector: Collector) -> None:
    shutil.copy(OLD / "sender.json", tmp_path / "state")
    plain = json.loads((OLD / "sender.json").read_text())
    one = Campaign.from_dict(plain["campaign"])
    collector.campaigns[one.fingerprint] = one
    with sender(tmp_path / "state", Clock(START + 3 * HOUR)) as device:
        assert device.campaign == one
        assert (device.loss, device.limit) == (4.0, 6.0)
        assert device.answered == set(plain["answered"])
        assert device.report("b") == 3
        queued = dict(device._state.agreed().enrolments[0].queue)
        assert [[round, queued[round]] for round, _ in plain["queue"]] == plain["queue"]
        kept = {round for round, _ in plain["queue"]}
        device._state.adopt(device._state.agreed())
    with sender(tmp_path / "state", Clock(START + 3 * HOUR)) as device:
        assert set(device.deliver().sent) == {3, *kept}
    assert [[round, body] for round, body in collector.left if round in kept] == plain["queue"]


def test_a_limit_that_never_binds_is_none() -> None:
    client = loloha.GRR(k=5, eps=1.0).client(limit=float("inf"))
    assert client.limit is None
    assert "Infinity" not in json.dumps(client.to_dict())


def test_a_state_of_a_protocol_that_is_not_installed_says_so(tmp_path: Path) -> None:
    from loloha.device.state import checksum

    plain = HOURS.protocol.client().to_dict()
    del plain["checksum"]
    plain["protocol"] = {"type": "some-plugin", "version": 1, "k": 5}
    (tmp_path / "client").write_text(json.dumps({**plain, "checksum": checksum(plain)}))
    with pytest.raises(StateError, match=r"installed here, got 'some-plugin'.*untouched"):
        Client.load(tmp_path / "client")


def test_a_file_that_is_written_twice_at_once_is_whole(tmp_path: Path) -> None:
    path = resolved(tmp_path / "state")
    threads = [
        threading.Thread(
            target=lambda n=n: [write_private(path, bytes([n]) * 9999) for _ in range(20)]
        )
        for n in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    content = Path(path).read_bytes()
    assert len(content) == 9999
    assert len(set(content)) == 1
    assert [one.name for one in tmp_path.iterdir()] == ["state"]
    file = StateFile(path)
    assert file.read() == content
    file.close()
