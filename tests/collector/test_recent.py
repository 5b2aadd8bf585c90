"""What was used last is kept, up to a size."""

from loloha.collector.prepared import Recent


def test_the_least_recently_used_goes() -> None:
    recent: Recent[str] = Recent(4, len)
    assert recent.put("a", "aa") == "aa"
    recent.put("b", "bb")
    assert recent.get("a") == "aa"
    recent.put("c", "c")
    assert ("a" in recent, "b" in recent, "c" in recent) == (True, False, True)
    assert recent.get("b") is None


def test_the_bound_is_reached_and_not_passed() -> None:
    recent: Recent[str] = Recent(4, len)
    for name in "abcd":
        recent.put(name, name)
    assert all(name in recent for name in "abcd")
    recent.put("e", "e")
    assert [name for name in "abcde" if name in recent] == list("bcde")


def test_an_item_in_place_of_another_counts_once() -> None:
    recent: Recent[str] = Recent(4, len)
    recent.put("a", "a")
    for _ in range(9):
        recent.put("b", "bbb")
    assert recent.get("a") == "a"
    recent.put("b", "b")
    recent.put("c", "cc")
    assert recent.get("a") == "a"
    assert recent.get("b") == "b"


def test_one_that_is_too_large_stays_alone() -> None:
    recent: Recent[str] = Recent(4, len)
    recent.put("a", "a")
    recent.put("b", "b" * 9)
    assert "a" not in recent
    assert recent.get("b") == "b" * 9
    recent.put("c", "c" * 4)
    assert "b" not in recent
    assert recent.get("c") == "c" * 4
