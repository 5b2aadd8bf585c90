"""Generated logs: the law of clients, the same files from the same seed, the truth told."""

import numpy as np
import pyarrow.parquet as pq
import pytest
from scipy.stats import chi2

from logs import PROTOCOLS
from loloha import BLH, LGRR, LOSUE, OLOLOHA, BiLOLOHA, DBitFlipPM
from loloha.distribution import exact_distribution
from loloha.engines import tally
from loloha.errors import DomainError, ParameterError
from loloha.population import generation
from loloha.population.samplers import Draws, History, sample_reports
from loloha.reportlog import ReportLog, from_arrow, generate

ALPHA = 2e-9
SMALL = [
    LGRR(k=3, eps_inf=2.0, eps_1=1.0),
    BiLOLOHA(k=3, eps_inf=2.0, eps_1=1.0),
    OLOLOHA(k=3, eps_inf=2.0, eps_1=1.0, g=3),
    LOSUE(k=3, eps_inf=2.0, eps_1=1.0),
    DBitFlipPM(k=4, eps_inf=2.0, b=4, d=2),
    BLH(k=3, eps=1.0),
]


@pytest.mark.parametrize("protocol", SMALL, ids=repr)
@pytest.mark.parametrize("held", [[1, 1, 1], [0, 2, 0]], ids=str)
def test_reports_have_the_distribution_of_clients(protocol, held):
    """Sees a memo drawn anew, kept by value, or shared, and any wrong probability above 1 %."""
    n, seed = 20_000, 11
    if protocol.encoding.kind == "bits":
        held = held[:2]  # 3 bits a round and a memo have 32 768 outcomes in three rounds

    def run(rng):
        client = protocol.client(rng=rng)
        reports = [client.report(v, round=t) for t, v in enumerate(held)]
        return tuple((report.key, report.y) for report in reports)

    law = exact_distribution(run)
    columns = []
    history = History(np.tile(held, (n, 1)), protocol.k)
    for _, keys, ys in sample_reports(protocol, history, Draws(seed)):
        listed = [None] * n if keys is None else [plain(key) for key in keys]
        columns.append(list(zip(listed, [plain(y) for y in ys], strict=True)))
    seen = dict.fromkeys(law, 0)
    for outcome in zip(*columns, strict=True):
        seen[outcome] += 1
    wanted = {outcome: float(p) * n for outcome, p in law.items()}
    # Rare outcomes share one cell, so that the chi-square law holds.
    rare = [outcome for outcome in law if wanted[outcome] < 10]
    cells = [(seen[o], wanted[o]) for o in law if wanted[o] >= 10]
    if sum(wanted[o] for o in rare) >= 10:
        cells.append((sum(seen[o] for o in rare), sum(wanted[o] for o in rare)))
    statistic = sum((got - want) ** 2 / want for got, want in cells)
    p_value = chi2.sf(statistic, len(cells) - 1)
    assert p_value > ALPHA, f"seed={seed} n={n} statistic={statistic} cells={len(cells)} {p_value=}"


def plain(one):
    if np.ndim(one) == 0:
        return int(one)
    return one.tobytes() if one.dtype == np.uint8 else tuple(map(int, one))


@pytest.mark.parametrize("protocol", PROTOCOLS, ids=repr)
def test_every_protocol_can_be_generated(protocol, tmp_path):
    values = np.random.default_rng(0).integers(-1, protocol.k, size=(40, 3))
    log = ReportLog(tmp_path, protocol)
    truth = generate(log, values, users=100, rounds=4, rng=5)
    contents = log.scan()
    contents.must_be_clean()
    held = values[np.arange(100) % 40][:, [0, 1, 2, 0]]
    assert [int((held[:, t] == 3).sum()) for t in range(4)] == truth[:, 3].tolist()
    counted = list(tally(log, engine="local"))
    assert [one.tally.n for one in counted] == truth.sum(axis=1).tolist()
    assert not any(one.duplicates or one.conflicts or one.invalid for one in counted)


def test_a_seed_repeats_the_files_and_another_does_not(tmp_path):
    protocol = BiLOLOHA(k=5, eps_inf=2.0, eps_1=1.0)
    names = []
    for folder, seed in (("a", 1), ("b", 1), ("c", 2)):
        log = ReportLog(tmp_path / folder, protocol)
        generate(log, np.arange(20).reshape(10, 2) % 5, rng=seed)
        names.append([path.name for path in sorted(log.folder.rglob("*.parquet"))])
    assert names[0] == names[1]
    assert not set(names[0]) & set(names[2])


def test_chunks_keep_each_users_key_for_ever(tmp_path, monkeypatch):
    protocol = BiLOLOHA(k=64, eps_inf=2.0, eps_1=1.0)
    monkeypatch.setattr("loloha.population.generation._MOST_USERS_AT_ONCE", 7)
    log, done = ReportLog(tmp_path, protocol), []
    generate(log, np.zeros((50, 3), dtype=int), progress=done.append, rng=1)
    assert done == [7 / 50, 14 / 50, 21 / 50, 28 / 50, 35 / 50, 42 / 50, 49 / 50, 1.0]
    keys, reporters = [], set()
    for files in log.scan().rounds.values():
        parquet = pq.ParquetFile(files[0].path)
        assert parquet.num_row_groups == 8
        pseudonyms, key, _ = from_arrow(protocol, parquet.read())
        keys.append(key.tolist())
        reporters |= {row.tobytes() for row in pseudonyms}
        parquet.close()
    assert keys[0] == keys[1] == keys[2]
    assert len(reporters) == 150


def test_as_many_users_are_made_at_once_as_fit(monkeypatch):
    """What a user takes: 16 bytes of pseudonym, 32 of objects, the key and the answer a round."""
    sizes = {
        LGRR(k=5, eps_inf=2.0, eps_1=1.0): (16 + 32 + 8, 5, 8),
        BiLOLOHA(k=5, eps_inf=2.0, eps_1=1.0): (16 + 32 + 8 + 8, 2, 8),
        DBitFlipPM(k=40, eps_inf=2.0, b=40, d=10): (16 + 32 + 80 + 2, 11, 2),
    }
    for protocol, (a_round, memo, answer) in sizes.items():
        assert protocol.encoding.memo_symbols >= min(memo, 3)
        for rounds in (1, 3):
            a_user = rounds * a_round + min(protocol.encoding.memo_symbols, rounds) * answer
            monkeypatch.setattr(generation, "_BYTES_AT_ONCE", 10 * a_user + a_user - 1)
            assert generation._users_at_once(protocol, rounds) == 10, (protocol, rounds)
            monkeypatch.setattr(generation, "_BYTES_AT_ONCE", a_user - 1)
            assert generation._users_at_once(protocol, rounds) == 1
        monkeypatch.undo()
    protocol = LGRR(k=5, eps_inf=2.0, eps_1=1.0)
    monkeypatch.setattr(generation, "_REPORTS_AT_ONCE", 100)
    assert generation._users_at_once(protocol, 3) == 33
    monkeypatch.setattr(generation, "_MOST_USERS_AT_ONCE", 7)
    assert generation._users_at_once(protocol, 3) == 7


def test_estimates_find_the_truth(tmp_path):
    """Sees a bias of 5 standard errors: a wrong probability, hash or truth."""
    protocol = OLOLOHA(k=20, eps_inf=3.0, eps_1=2.0)
    log = ReportLog(tmp_path, protocol)
    values = np.minimum(np.random.default_rng(3).geometric(0.3, size=(5000, 2)), 20) - 1
    truth = generate(log, values, users=20_000, rng=3)
    for one in tally(log):
        estimate = one.tally.estimate()
        shares = truth[one.round] / truth[one.round].sum()
        off = np.abs(estimate.frequencies - shares)
        assert off.max() < estimate.simultaneous(1 - 2e-9).max(), (one.round, off.max())


@pytest.mark.parametrize(
    ("changed", "says"),
    [
        ({"values": np.zeros(3, dtype=int)}, "values must be integers"),
        ({"values": np.zeros((3, 2))}, "values must be integers"),
        ({"values": np.zeros((3, 0), dtype=int)}, "values must hold"),
        ({"values": np.full((3, 2), 5)}, "values must be in 0..4"),
        ({"values": np.full((3, 2), -2)}, "values must be in 0..4"),
        ({"users": 0}, "users must be"),
        ({"rounds": 1.5}, "rounds must be"),
        ({"rng": -1}, "rng must be"),
        ({"rng": None}, "rng must be"),
    ],
)
def test_what_cannot_be_generated_is_refused(changed, says, tmp_path):
    log = ReportLog(tmp_path, BiLOLOHA(k=5, eps_inf=2.0, eps_1=1.0))
    given = {"values": np.zeros((3, 2), dtype=int), "rng": 0} | changed
    with pytest.raises((DomainError, ParameterError), match=says):
        generate(log, given.pop("values"), **given)
    assert list(tmp_path.rglob("*.parquet")) == []
