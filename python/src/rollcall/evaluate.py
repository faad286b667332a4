"""`rollcall eval`: run an environment written in Python, or one of the platform, and print its report."""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping
from typing import Any

from . import run_arguments
from .client import Client
from .environment_process import Process, check_alive, playing
from .environment_process import add_arguments as add_python
from .following import StatusLine, follow, say_why
from .types import Run

EXAMPLE = """example:
  rollcall eval --python ./my-environment -m qwen3-4b --endpoint https://gpu.example/v1 -n 20 -r 4"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    run_arguments.add(parser)
    parser.add_argument("-r", "--rollouts-per-example", type=int, default=1, help="rollouts of a task (default 1)")
    parser.add_argument("--min-scored", type=float, help="share of rollouts that must be scored (default 0.95)")
    add_python(parser, split="eval")


def run(arguments: argparse.Namespace) -> int:
    """0: the run completed. 1: it did not. 130: it was interrupted. Raises `RollcallError`."""
    request: dict[str, Any] = {"rollouts_per_example": arguments.rollouts_per_example}
    if arguments.min_scored is not None:
        request["min_scored"] = arguments.min_scored
    request |= run_arguments.request_of(arguments)
    with Client(arguments.url, arguments.api_key) as client:
        if arguments.python:
            with playing(client, arguments, arguments.rollouts_per_example) as environment:
                return evaluate(client, request | environment.request, arguments, environment.process)
        request |= run_arguments.environment_of(arguments) | {"num_examples": arguments.num_examples}
        return evaluate(client, request, arguments, None)


def evaluate(client: Client, request: dict[str, Any], arguments: argparse.Namespace, process: Process) -> int:
    followed = follow(client, request, EvalProgress(), begun=lambda run: None, check=lambda: check_alive(process))
    ended = followed.run
    say_why(client, ended)
    print(json.dumps(ended, indent=2) if arguments.json else report_of(ended))
    return run_arguments.exit_code(followed)


class EvalProgress:
    """How many rollouts have ended, and their mean reward."""

    def __init__(self) -> None:
        self._line = StatusLine()

    def show(self, run: Run) -> None:
        mean = run.get("report", {}).get("reward", {}).get("mean")
        self._line.show(run_arguments.counts_text(run) + (f", reward {mean:.3f}" if mean is not None else ""))

    def end(self) -> None:
        self._line.end()


def report_of(run: Run) -> str:
    """The report as text: status, reward, metrics, and what was not scored."""
    counts, report = run["counts"], run.get("report", {})
    reward = report.get("reward", {})
    lines = [f"{run['id']}  {run['status']}", f"reward    {number(reward)}"]
    metrics = sorted(report.get("metrics", {}).items())
    width = max((len(name) for name, _ in metrics), default=0)
    lines += [f"  {name:<{width}}  {number(metric)}" for name, metric in metrics]
    lines.append(f"rollouts  {counts['scored']} scored of {counts['planned']}")
    lines += run_arguments.trouble_lines(run)
    passes = {k: value for k, value in report.get("pass_at_k", {}).items() if value is not None}
    if passes:
        lines.append("pass@k    " + ", ".join(f"{k}: {value:.3f}" for k, value in passes.items()))
    stops = report.get("stop_conditions", {})
    if stops:
        lines.append("stopped   " + ", ".join(f"{name}: {count}" for name, count in stops.items()))
    lines += run_arguments.error_lines(run)
    return "\n".join(lines)


def number(value: Mapping[str, Any]) -> str:
    mean, se, ci = value.get("mean"), value.get("se"), value.get("ci95")
    if mean is None:
        return "not scored"
    text = f"{mean:.4f}" + (f" ± {se:.4f}" if se is not None else "")
    return text + (f"  (95%: {ci[0]:.4f} to {ci[1]:.4f})" if ci else "")
