"""``loloha demo``: the main job on real data, from devices to a dashboard, on this machine."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING

from loloha.cli import console
from loloha.cli.results_folder import FILES, new_folder
from loloha.cli.run import check, run_and_save, save
from loloha.cli.summary import show_summary, show_top
from loloha.errors import ParameterError

if TYPE_CHECKING:
    from loloha.population.trial import Trial

USERS, ROUNDS = 20_000, 48
EPS_INF, EPS_1 = 4.0, 2.0
NAME = "Browser versions (caniuse-lite)"


def demo(
    *,
    out: Path = Path("loloha-demo"),
    rounds: int = ROUNDS,
    stay: bool = False,
    offline: bool = False,
    seed: int | None = None,
    top: int = 8,
    level: float = 0.95,
    as_json: bool = False,
) -> None:
    """Estimate the browser versions of 20 000 users as they are rolled out, by OLOLOHA.

    The versions' shares are real, from January 2025 on, eight rounds a month (caniuse-lite,
    shipped); the users who upgrade are simulated.

    Starts a collector on a free port of this machine, creates a campaign, and lets every user
    report every round over HTTP; nothing leaves the machine. Ends with the collector's estimates
    beside the truth, the privacy statement, a picture and the dashboard's address; then the
    collector stops. An earlier demo in the folder --out is replaced.
    """
    import loloha

    check(top, level, seed)
    if stay and offline:
        raise ParameterError("--stay must be given without --offline, got both; leave one out")
    lacking = None if offline else _lacking()
    if lacking is not None:
        console.warn(
            f"{lacking} is not installed (pip install 'loloha[collector]'): no collector and no "
            "dashboard, devices and server are simulated instead"
        )
    dataset = loloha.datasets.browsers(USERS, tau=rounds)
    protocol = loloha.OLOLOHA(k=dataset.k, eps_inf=EPS_INF, eps_1=EPS_1)
    if offline or lacking is not None:
        with new_folder(out, FILES, force=True) as draft:
            trial = run_and_save(dataset, protocol, draft, seed=seed, top=top, level=level)
        _show(trial, out, top, str(loloha.privacy.explain(protocol)), as_json)
        return
    from loloha.cli import deployment
    from loloha.population.trial import Trial
    from loloha.sender.collector import Collector

    began = time.monotonic()
    campaign = deployment.hourly(NAME, protocol, dataset)
    with deployment.collector() as running:
        with new_folder(out, FILES, force=True) as draft:
            url = deployment.create(running, campaign, dataset.tau)
            page = f"{running.url}/#campaign={campaign.fingerprint}"
            console.say(f"collector started; dashboard: {page}")
            counted = deployment.report_all(url, campaign, dataset, seed)
            with console.working("reading estimates, drawing and saving"):
                shown = deployment.collected(url, campaign, dataset, level)
                with Collector(url) as collector:
                    statement = collector.privacy()["text"]
                trial = Trial(shown, level, seed)
                save(trial, draft, top)
        seconds = time.monotonic() - began
        after = "until Ctrl-C" if stay else "stopped by now: --stay keeps it up"
        extra = {"counted": counted, "seconds": seconds, "dashboard": page}
        _show(trial, out, top, statement, as_json, extra, after)
        if stay:
            console.say(f"be a device yourself: {running.url}/try")
            running.wait()


def _lacking() -> str | None:
    """Libraries of a collector that are missing."""
    try:
        import uvicorn  # noqa: F401

        import loloha.collector.service  # noqa: F401
    except ModuleNotFoundError as error:
        return error.name or "the collector's extra"
    return None


def _show(
    trial: Trial,
    out: Path,
    top: int,
    statement: str,
    as_json: bool,
    extra: dict[str, object] | None = None,
    after: str = "",
) -> None:
    """Print the results; ``extra`` are members of the JSON if there was a collector."""
    picture = out / "frequencies.png"
    if as_json:
        mode = "offline" if extra is None else "collector"
        console.show_json(
            {**trial.metrics(), "picture": str(picture), "mode": mode, **(extra or {})}
        )
        return
    show_summary(trial)
    show_top(trial, top)
    console.show_text(statement)
    if extra is not None:
        console.show(f"\n{extra['counted']} reports counted in {extra['seconds']:.1f} s")
        console.show(f"Dashboard: {extra['dashboard']} ({after})")
        console.show("Its rounds are an hour each, so that the newest one is running now.")
    console.show(f"{'' if extra else chr(10)}Picture: {picture}")
