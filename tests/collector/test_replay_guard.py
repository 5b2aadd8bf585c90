"""The guard in memory against a dictionary, and its rows on disk."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from loloha.collector import replay_guard as guard_module
from loloha.collector.replay_guard import MOST_PROBES, Guard, Seen, digest_rows, pack, unpack

Rows = st.lists(st.tuples(st.integers(0, 30), st.integers(0, 2)), max_size=40)


def arrays(rows: list[tuple[int, int]]) -> tuple[np.ndarray, np.ndarray]:
    # Names that differ in their last bytes only, and end in zeros: the hard cases for S16.
    names = b"".join((name * 256).to_bytes(16) for name, _ in rows)
    return np.frombuffer(names, "S16"), np.array([digest for _, digest in rows], dtype=np.uint64)


@given(st.lists(Rows, max_size=6))
def test_it_knows_what_a_dictionary_knows(uploads: list[list[tuple[int, int]]]) -> None:
    guard, known = Guard(), {}
    for rows in uploads:
        reporters, digests = arrays(rows)
        seen = guard.classify(reporters, digests)
        expected = []
        for name, digest in rows:
            if name not in known:
                known[name] = digest
                expected.append(Seen.NEW)
            else:
                expected.append(Seen.SAME if known[name] == digest else Seen.DIFFERENT)
        assert seen.tolist() == expected
        new = seen == Seen.NEW
        guard.add(reporters[new], digests[new])
        assert len(guard) == len(known)


def test_it_grows_and_stays_right() -> None:
    rng = np.random.default_rng(1)
    guard = Guard()
    names = np.frombuffer(rng.bytes(16 * 50_000), "S16")
    digests = rng.integers(0, 1 << 63, 50_000).astype(np.uint64)
    for start in range(0, 50_000, 7_001):
        part = slice(start, start + 7_001)
        assert (guard.classify(names[part], digests[part]) == Seen.NEW).all()
        guard.add(names[part], digests[part])
        # Half of the slots are free, and no more than that many again.
        assert 2 * len(guard) <= len(guard._slots) <= 4 * len(guard)
    assert (guard.classify(names, digests) == Seen.SAME).all()
    assert (guard.classify(names, digests + np.uint64(1)) == Seen.DIFFERENT).all()


def test_names_picked_to_collide_are_distinguished() -> None:
    # The same first 8 bytes in all of them: whoever picks pseudonyms can do that.
    names = np.frombuffer(b"".join(b"a" * 8 + i.to_bytes(8) for i in range(5000)), "S16")
    digests = np.arange(5000, dtype=np.uint64)
    guard = Guard()
    guard.add(names[::2], digests[::2])
    seen = guard.classify(names, digests)
    assert (seen[::2] == Seen.SAME).all()
    assert (seen[1::2] == Seen.NEW).all()


def furthest(guard: Guard) -> int:
    """How far from its own slot any row lies."""
    taken = np.flatnonzero(guard._slots >= 0)
    home = guard._slot(guard._names[guard._slots[taken]])
    return int(((taken - home) % len(guard._slots)).max())


@pytest.mark.parametrize("place", [(i, j) for i in range(0, 16, 3) for j in range(i + 1, 16, 4)])
def test_no_two_bytes_can_be_picked_to_make_a_search_long(place: tuple[int, int]) -> None:
    # 24 000 names that differed in bytes 8 to 11 alone held up the committer for 13 s.
    names = np.zeros((24_000, 16), dtype=np.uint8)
    numbers = np.arange(len(names))
    names[:, place[0]], names[:, place[1]] = numbers % 256, numbers // 256
    guard = Guard()
    guard.add(names.view("S16").ravel(), numbers.astype(np.uint64))
    assert furthest(guard) < MOST_PROBES
    seen = guard.classify(names.view("S16").ravel(), numbers.astype(np.uint64))
    assert (seen == Seen.SAME).all()


def test_a_key_under_which_names_meet_is_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    honest = guard_module._new_key
    drawn = []

    def unlucky() -> Any:
        drawn.append(1)
        return np.zeros(5, dtype=np.uint64) if len(drawn) < 3 else honest()

    monkeypatch.setattr(guard_module, "_new_key", unlucky)
    names = np.frombuffer(b"".join(i.to_bytes(16) for i in range(600)), "S16")
    digests = np.arange(600, dtype=np.uint64)
    guard = Guard()
    guard.add(names[:100], digests[:100])
    guard.add(names[100:], digests[100:])
    assert len(drawn) == 3
    assert (guard.classify(names, digests) == Seen.SAME).all()


def test_rows_survive_packing_and_forget_their_order() -> None:
    rng = np.random.default_rng(2)
    names = np.frombuffer(rng.bytes(16 * 100), "S16")
    digests = np.arange(100, dtype=np.uint64)
    packed = pack(names, digests)
    assert pack(names[::-1], digests[::-1]) == packed
    reporters, found = unpack(packed)
    order = np.argsort(names)
    assert (reporters == names[order]).all()
    assert (found == digests[order]).all()
    assert len(unpack(b"")[0]) == 0


def test_digests_tell_reports_apart_and_need_the_secret() -> None:
    keys = np.array([1, 1, 2, 1], dtype=np.int64)
    ys = np.array([0, 1, 0, 0], dtype=np.int64)
    one = digest_rows(b"s" * 32, keys, ys)
    assert len(set(one.tolist())) == 3
    assert one[0] == one[3]
    assert not set(digest_rows(b"t" * 32, keys, ys).tolist()) & set(one.tolist())
    bits = np.array([[1, 2], [1, 3]], dtype=np.uint8)
    assert len(set(digest_rows(b"s" * 32, None, bits).tolist())) == 2
