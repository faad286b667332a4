"""`rollcall track`: sends the series of a training run, or the report of an eval, to Weights & Biases.

It uses W&B's own library, an optional dependency (`rollcall[wandb]`). The W&B run has the id of the platform's run,
so a second call continues the first one.

Invariants. A step is sent once, in order, and only when nothing of it can change any more: its batch was trained, or
the run has ended. Values of evals (`eval/…`) may arrive long after their step. Each is sent with a later row, and with
`eval/step`, the step whose weights were evaluated. W&B itself has what was sent: the number of the last row, and for
each eval its last step (`eval/…/reward/step`). So an interruption neither repeats a step nor loses one.
"""

from __future__ import annotations

import argparse
import importlib.util
import sys
import time
from collections.abc import Iterator, Mapping
from typing import Any, Protocol

import httpx

from .calls import json_of, path
from .client import Client
from .errors import ApiError, ConfigError
from .following import FIRST_POLL_S, LONGEST_POLL_S, SILENT_FOR_S
from .said import say
from .transport import Call
from .types import ENDED, Run

EXAMPLE = """example:
  rollcall track run_01ks2h9q4e7mxw3f0tbn8vc5za2k7p4mxq --project my-models"""
EVAL = "eval/"
EVAL_STEP = "eval/step"
PAGE = 1_000
INTERRUPTED = 130


class WandbRun(Protocol):
    """The parts of `wandb.Run` that are used."""

    starting_step: int
    summary: Any

    def log(self, data: dict[str, Any], step: int | None = None, commit: bool | None = None) -> None: ...

    def define_metric(self, name: str, step_metric: str | None = None) -> Any: ...

    def finish(self, exit_code: int | None = None) -> None: ...


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("run", nargs="?", help="id of the run")
    parser.add_argument("--project", help="project at Weights & Biases (default: WANDB_PROJECT, or rollcall)")
    parser.add_argument("--entity", help="team or user at Weights & Biases (default: WANDB_ENTITY, or your own)")
    parser.add_argument("--check", action="store_true", help="only check that the library is installed")
    parser.add_argument("--url", help="the platform (default: ROLLCALL_URL)")
    parser.add_argument("--api-key", help="a key of the project (default: ROLLCALL_API_KEY)")


def run(arguments: argparse.Namespace) -> int:
    """0: everything was sent. 130: interrupted; the same command continues. Raises `RollcallError`."""
    check_library()
    if arguments.check:
        return 0
    if arguments.run is None:
        raise ConfigError("run: the id of a run is required")
    with Client(arguments.url, arguments.api_key) as client:
        return track(client, client.runs.get(arguments.run), arguments.project, arguments.entity)


def check_library() -> None:
    """Raises `ConfigError` with what to install."""
    if importlib.util.find_spec("wandb") is None:
        raise ConfigError("the library of Weights & Biases is not installed: pip install 'wandb>=0.19,<1'")


def track(client: Client, run: Run, project: str | None, entity: str | None) -> int:
    sent = open_run(run, project, entity)
    say(f"{run['id']} is sent to Weights & Biases")
    exit_code = 1
    try:
        ended = send_all(client, run, sent)
        exit_code = 0 if ended["status"] == "completed" else 1
        return 0
    except KeyboardInterrupt:
        exit_code = INTERRUPTED
        say(f"interrupted: the same command continues with {run['id']}")
        return INTERRUPTED
    finally:
        # Waits until everything has arrived.
        sent.finish(exit_code=exit_code)


def open_run(run: Run, project: str | None, entity: str | None) -> WandbRun:
    """Begins the W&B run, or continues it if it exists. Raises `ConfigError` if W&B refuses it."""
    import wandb

    # Quiet: without the tables of the last values of some of the hundred series.
    settings = wandb.Settings(console="off", disable_git=True, save_code=False, quiet=True)
    try:
        opened: WandbRun = wandb.init(
            id=run["id"],
            name=run.get("name") or run["id"],
            project=project or wandb.Settings().project or "rollcall",
            entity=entity,
            job_type=run["kind"],
            config=config_of(run),
            resume="allow",
            settings=settings,
        )
    except wandb.errors.Error as error:
        raise ConfigError(f"Weights & Biases: {error}") from None
    opened.define_metric(EVAL_STEP)
    opened.define_metric(f"{EVAL}*", step_metric=EVAL_STEP)
    return opened


def config_of(run: Run) -> dict[str, Any]:
    """What the run was started with. No addresses and no keys."""
    fields: Mapping[str, Any] = run
    names = ("environment", "model", "sampling", "rollouts_per_example", "seed", "metadata")
    training: Mapping[str, Any] = fields.get("training") or {}
    settings = ("max_steps", "group_size", "batch_size", "advantage", "members", "max_off_policy_steps")
    return {name: fields[name] for name in names if name in fields} | {
        name: training[name] for name in settings if name in training
    }


def send_all(client: Client, run: Run, sent: WandbRun) -> Run:
    """Sends what is final, until the run has ended. Returns the ended run."""
    series = Series(sent) if run["kind"] == "training" else None
    pause, answered = FIRST_POLL_S, time.monotonic()
    while True:
        try:
            now = client.runs.get(run["id"])
            has_ended = now["status"] in ENDED
            if series is not None:
                series.send(metrics_of(client, run["id"]), last_step(now, has_ended), has_ended)
            if has_ended:
                send_report(now, sent, is_eval=series is None)
                return now
            answered = time.monotonic()
        except (httpx.TransportError, ApiError) as error:
            refused = isinstance(error, ApiError) and error.status < 500 and error.status != 429
            if refused or time.monotonic() - answered > SILENT_FOR_S:
                raise
        time.sleep(pause)
        pause = min(pause * 1.5, LONGEST_POLL_S)


def last_step(run: Run, has_ended: bool) -> float:
    """The last step that is final."""
    training: Mapping[str, Any] = run.get("training") or {}
    return float("inf") if has_ended else training.get("steps_trained", 0)


def metrics_of(client: Client, run_id: str) -> Iterator[dict[str, Any]]:
    """Every step of the series so far: values of evals may have come to any of them."""
    after: Any = None
    while True:
        params = {"limit": PAGE} if after is None else {"after_step": after, "limit": PAGE}
        page = json_of(client.transport.send(Call("GET", path("runs", run_id, "metrics"), params=params)))
        yield from page["data"]
        if not page["has_more"]:
            return
        after = page["last_id"]


class Series:
    """What W&B has of the series, and what it gets next."""

    def __init__(self, sent: WandbRun) -> None:
        self._sent = sent
        self._next = sent.starting_step
        # The last step that was sent of each eval: they end in any order.
        self._evaluated: dict[str, int] = {}

    def send(self, points: Iterator[dict[str, Any]], last: float, has_ended: bool) -> None:
        rows: list[tuple[int, dict[str, Any]]] = []
        evals: list[dict[str, Any]] = []
        for point in points:
            step, values = point["step"], known(point["values"])
            of_evals = {name: value for name, value in values.items() if name.startswith(EVAL)}
            evaluated = {name: value for name, value in of_evals.items() if step > self._last_step(name)}
            if evaluated:
                steps = {step_of(name): step for name in evaluated}
                evals.append({**evaluated, **steps, EVAL_STEP: step})
            others = {name: value for name, value in values.items() if name not in of_evals}
            if others and self._next <= step <= last:
                rows.append((step, others))
        for step, others in rows:
            self._log(step, others, evals)
        while evals and has_ended:
            self._log(self._next, {}, evals)

    def _last_step(self, name: str) -> int:
        if name not in self._evaluated:
            summary = self._sent.summary
            # A run that an earlier version sent has one step for its only eval.
            known = EVAL_STEP if summary.get(name) is not None and summary.get(step_of(name)) is None else step_of(name)
            self._evaluated[name] = int(summary.get(known, -1))
        return self._evaluated[name]

    def _log(self, step: int, values: dict[str, Any], evals: list[dict[str, Any]]) -> None:
        """A row has one eval at most, since it has one value for each name."""
        evaluated = evals.pop(0) if evals else {}
        self._evaluated |= {name: evaluated[EVAL_STEP] for name in evaluated if step_of(name) in evaluated}
        # Without `commit` the row would be kept back until the next one.
        self._sent.log({**values, **evaluated}, step=step, commit=True)
        self._next = step + 1


def step_of(name: str) -> str:
    """The metric with the step at which the eval `name` was last sent."""
    return f"{name}/step"


def known(values: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value is not None}


def send_report(run: Run, sent: WandbRun, *, is_eval: bool) -> None:
    """The report as the summary of the W&B run. An eval has one row of it, too, so that W&B's plots show it."""
    values = report_values(run)
    if is_eval and sent.starting_step == 0:
        sent.log(values, step=0, commit=True)
    sent.summary.update(values)


def report_values(run: Run) -> dict[str, Any]:
    """Names and numbers of the report. What was not scored is left out: it is never 0."""
    report, counts = run.get("report", {}), run["counts"]
    values: dict[str, Any] = {"status": run["status"]}
    reward: Mapping[str, Any] = report.get("reward", {})
    values |= {f"report/reward/{name}": reward.get(name) for name in ("mean", "se", "n_tasks")}
    low, high = reward.get("ci95") or (None, None)
    values |= {"report/reward/ci95_low": low, "report/reward/ci95_high": high}
    values |= {f"report/metrics/{name}": metric.get("mean") for name, metric in report.get("metrics", {}).items()}
    values |= {f"report/pass_at_k/{k}": value for k, value in report.get("pass_at_k", {}).items()}
    values |= {"report/rollouts/scored": counts["scored"]}
    values |= {
        f"report/rollouts/{outcome}": sum(reasons.values())
        for outcome, reasons in (
            ("unscored", counts["unscored"]),
            ("failed", counts["failed"]),
            ("cancelled", counts["cancelled"]),
        )
    }
    return known(values)


if __name__ == "__main__":
    from .cli import main

    sys.exit(main(["track", *sys.argv[1:]]))
