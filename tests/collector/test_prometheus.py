"""The rules of alerts and the dashboard in deploy/, against what a collector exports."""

import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from prometheus_client.parser import text_string_to_metric_families as families

from collecting import campaign, clients, created, messages
from loloha.collector.store import Store
from loloha.errors import StoreError
from uploading import LINES, send

DEPLOY = Path(__file__).parents[2] / "deploy"
CASES = Path(__file__).with_name("prometheus_cases.yml")
SCRAPED = {"job": "loloha", "instance": "127.0.0.1:8770"}
"""Prometheus adds these labels to all that it reads."""
_GROUPED = re.compile(r"\b(?:by|on|group_left)\s*\(([^)]*)\)")
_SELECTOR = re.compile(r"\b([a-z_:][\w:]*+)(?!\s*\()(?:\{(.*?)\})?", re.IGNORECASE)
_MATCHER = re.compile(r'(\w+)\s*(=~|!~|!=|=)\s*"([^"]*)"')
_VARIABLE = re.compile(r"label_values\((.*), (\w+)\)")

Sample = tuple[str, dict[str, str]]


def rules() -> list[dict[str, Any]]:
    (group,) = yaml.safe_load((DEPLOY / "prometheus-rules.yml").read_text())["groups"]
    return list(group["rules"])


def dashboard() -> dict[str, Any]:
    return dict(json.loads((DEPLOY / "grafana-dashboard.json").read_text()))


def expressions() -> Iterator[str]:
    """Each expression of both files, of variables as what they select and their label."""
    yield from (rule["expr"] for rule in rules())
    shown = dashboard()
    yield from (target["expr"] for panel in shown["panels"] for target in panel["targets"])
    for variable in shown["templating"]["list"]:
        if variable["type"] == "query":
            selector, label = _VARIABLE.fullmatch(variable["query"]["query"]).groups()
            yield f"count by ({label}) ({selector})"


def missing(expression: str, samples: list[Sample]) -> list[str]:
    """The selectors that select none of the samples, and labels in groups that none of them has."""
    plain = re.sub(r"\[[^\]]*\]", "", expression)
    labels = {label.strip() for group in _GROUPED.findall(plain) for label in group.split(",")}
    selectors = [
        (name, matchers)
        for name, matchers in _SELECTOR.findall(_GROUPED.sub(" ", plain))
        if name not in ("and", "or", "unless")
    ]
    assert selectors, expression
    chosen = {each: [one for one in samples if selects(*each, one)] for each in selectors}
    carried = {label for some in chosen.values() for _, own in some for label in own}
    return [f"{name}{{{matchers}}}" for (name, matchers), some in chosen.items() if not some] + [
        *(labels - carried)
    ]


def selects(name: str, matchers: str, sample: Sample) -> bool:
    if name != sample[0]:
        return False
    for label, operator, value in _MATCHER.findall(matchers.replace("$campaign", ".*")):
        own = sample[1].get(label)
        if own is None:
            return False
        same = own == value if operator in ("=", "!=") else bool(re.fullmatch(value, own))
        if same == operator.startswith("!"):
            return False
    return True


@pytest.fixture
def scraped(serve: Any, clock: Any, monkeypatch: pytest.MonkeyPatch) -> list[Sample]:
    """What a collector exports after reports, a refusal, a fault and a time without its store."""
    client, one = serve(), campaign()
    path = created(client, one)
    send(client, path, b"\n".join(messages(one, clients(one, 2), 0)), LINES)
    send(client, path, b"{}")

    def broken(*_: object, **__: object) -> None:
        raise StoreError("store must be reachable; try again")

    with monkeypatch.context() as patch:
        patch.setattr(Store, "ping", broken)
        assert client.get("/readyz").status_code == 503
        assert "\nloloha_ready 0.0\n" in client.get("/metrics").text
        patch.setattr("loloha.collector.campaigns.tagged", broken)
        assert client.get("/v1/campaigns").status_code >= 500
    assert "\nloloha_ready 1.0\n" in client.get("/metrics").text
    exported = [
        (sample.name, {**sample.labels, **SCRAPED})
        for family in families(client.get("/metrics").text)
        for sample in family.samples
    ]
    # Prometheus makes this one itself.
    return [*exported, ("up", SCRAPED)]


def test_a_collector_exports_all_that_alerts_and_panels_ask_for(scraped: list[Sample]) -> None:
    every = list(expressions())
    assert len(every) > 12
    lacking = {expression: missing(expression, scraped) for expression in every}
    assert {expression: lacks for expression, lacks in lacking.items() if lacks} == {}


def test_what_is_not_exported_is_missed(scraped: list[Sample]) -> None:
    lacks = {
        "rate(loloha_report_total[5m]) > 1e3": "loloha_report_total{}",
        'up{job="others"} == 0 or absent(up)': 'up{job="others"}',
        'loloha_campaign_info{state="running"} > 0.5': 'loloha_campaign_info{state="running"}',
        "sum by (outcome, reason) (loloha_reports_total)": "reason",
        'loloha_requests_total{code!="1"}': 'loloha_requests_total{code!="1"}',
    }
    for expression, missed in lacks.items():
        assert missing(expression, scraped) == [missed]


def test_each_rule_says_how_bad_it_is_and_what_to_do() -> None:
    every = rules()
    assert len({rule["alert"] for rule in every}) == len(every)
    for rule in every:
        assert rule["labels"]["severity"] in ("critical", "warning")
        assert set(rule["annotations"]) == {"summary", "description"}


def test_the_dashboard_leaves_its_data_source_open() -> None:
    shown = dashboard()
    kinds = {one["name"]: one["type"] for one in shown["templating"]["list"]}
    assert kinds == {"datasource": "datasource", "campaign": "query"}
    sources = [one["datasource"] for panel in shown["panels"] for one in (panel, *panel["targets"])]
    assert {source["uid"] for source in sources} == {"${datasource}"}
    assert len({panel["id"] for panel in shown["panels"]}) == len(shown["panels"])


@pytest.mark.parametrize(
    "command",
    [("check", "rules", str(DEPLOY / "prometheus-rules.yml")), ("test", "rules", str(CASES))],
    ids=["check", "test"],
)
def test_prometheus_takes_the_rules_and_raises_the_alerts(command: tuple[str, ...]) -> None:
    promtool = shutil.which("promtool")
    if promtool is None:
        pytest.skip("no promtool: Prometheus is not installed")
    ran = subprocess.run([promtool, *command], capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stdout + ran.stderr
