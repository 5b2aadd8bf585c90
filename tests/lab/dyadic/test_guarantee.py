"""What is said of a budget for changes: each number by a second way."""

import json
import math

import pytest

import loloha
from loloha.distribution import exact_distribution, loss_between
from loloha_lab.dyadic import DyadicLH, explain_budget


def test_explain_says_what_the_device_does() -> None:
    protocol = DyadicLH(k=2, eps=1.5, rounds=3, changes=1)
    found = explain_budget(protocol)

    def report(v: int, level: int) -> float:
        """Pr[the first answer is 1 | this level] of a user who stays at ``v``."""

        def first(rng: loloha.rng.Rng) -> int | None:
            client = protocol.client(rng=rng)
            sent = [client.report(v, round=t) for t in range(3)]
            told = [one for one in sent if one]
            return told[0].y if told[0].key == (1, level) else None

        law = exact_distribution(first)
        return float(law.get(1, 0) / (1 - law[None]))

    assert found.gaps == pytest.approx([report(1, level) - report(0, level) for level in (0, 1)])
    laws = [exact_distribution(lambda rng, v=v: transcript(protocol, v, rng)) for v in (0, 1)]
    assert found.loss == pytest.approx(loss_between(*laws), abs=1e-12)
    assert found.loss <= found.eps == 1.5


def transcript(protocol: DyadicLH, v: int, rng: loloha.rng.Rng) -> object:
    client = protocol.client(rng=rng)
    sent = [client.report(v, round=t) for t in range(protocol.rounds)]
    return tuple(one and (one.key, one.y) for one in sent)


def test_explain_is_plain_words_and_plain_data() -> None:
    protocol = DyadicLH(k=96, eps=2.0, rounds=120, changes=3)
    found = explain_budget(protocol)
    said = str(found)
    assert f"at most e^2 = {math.exp(2):.4g}, however often the value changes" in said
    assert "After 120 rounds the budget is used up" in said
    assert "3 changes of the user's bit count" in said
    assert "no campaign, engine or collector knows it" in said
    data = json.loads(json.dumps(found.to_dict()))
    assert data["text"] == said
    assert DyadicLH(
        **{name: data["protocol"][name] for name in ("k", "eps", "rounds", "changes")}
    ) == protocol  # fmt: skip
