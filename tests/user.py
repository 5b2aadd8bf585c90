"""A user's program under strict type checkers: every documented module is real to them."""

from typing import assert_type

import numpy as np

import loloha
from loloha.campaign import Campaign, Labels, Schedule
from loloha.client import Client
from loloha.population import Simulation
from loloha.protocols import Protocol, protocol_from_dict
from loloha.report import Report
from loloha.sender import Delivery, Sender, explain_all
from loloha.server.estimate import Estimate
from loloha.server.tally import Tally

rules = loloha.OLOLOHA(k=96, eps_inf=2.0, eps_1=1.0)
assert_type(protocol_from_dict(rules.to_dict()), Protocol)

client = rules.client()
assert_type(client, Client)
assert_type(client.report(42, round=0), Report)

tally = rules.tally()
assert_type(tally, Tally)
estimate = tally.estimate()
assert_type(estimate, Estimate)

campaign = Campaign(
    name="Hours", protocol=rules, domain=Labels(("a", "b")), schedule=Schedule(0, 3600)
)
assert_type(explain_all([campaign], limit=4.0), str)


def deliver(sender: Sender) -> Delivery:
    return sender.deliver()


result = loloha.simulate(rules, np.zeros((5, 2), dtype=np.int64), rng=1)
assert_type(result, Simulation)
