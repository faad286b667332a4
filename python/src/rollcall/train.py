"""`rollcall train`: start a training run, play its rollouts if the environment is written in Python, and follow it."""

from __future__ import annotations

import argparse
import json
from typing import Any

from . import run_arguments
from .calls import json_of, path
from .client import Client
from .environment_process import Process, check_alive, playing
from .environment_process import add_arguments as add_python
from .errors import ConfigError, RollcallError
from .following import StatusLine, follow, say_why
from .said import say
from .transport import Call
from .types import Run

EXAMPLE = """The rollouts go to a trainer of yours, which begins with the variables that are printed:
  from rollcall.trainer import Trainer
  Trainer(os.environ["ROLLCALL_RUN"], token=os.environ["ROLLCALL_TRAINER_TOKEN"])

example:
  rollcall train --python ./my-environment -m qwen3-4b --endpoint https://gpu.example/v1 --max-steps 200"""
REWARD = "train/agg/all/reward/mean"
"""The mean of all rollouts that arrived for a step, also of those that train nothing."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    run_arguments.add(parser)
    parser.add_argument("--max-steps", type=int, required=True, help="batches to train on")
    parser.add_argument("--group-size", type=int, default=8, help="rollouts of a task (default 8)")
    parser.add_argument("--batch-size", type=int, help="rollouts of a batch (default 128)")
    parser.add_argument(
        "--trainer",
        default="pull",
        help="pull: your trainer gets the batches from the platform (default); push:URL: it receives them",
    )
    add_python(parser, split="train")


def run(arguments: argparse.Namespace) -> int:
    """0: the run completed. 1: it did not. 130: it was interrupted. Raises `RollcallError`."""
    request: dict[str, Any] = {
        "kind": "training",
        "max_steps": arguments.max_steps,
        "group_size": arguments.group_size,
        "trainer": trainer_of(arguments.trainer),
    }
    if arguments.batch_size is not None:
        request["batch_size"] = {"rollouts": arguments.batch_size}
    request |= run_arguments.request_of(arguments)
    with Client(arguments.url, arguments.api_key) as client:
        if arguments.python:
            with playing(client, arguments, arguments.group_size) as environment:
                return train(client, request | environment.request, arguments, environment.process)
        if arguments.num_examples != -1:
            raise ConfigError("num-examples: needs --python: a training plays all tasks")
        return train(client, request | run_arguments.environment_of(arguments), arguments, None)


def trainer_of(text: str) -> dict[str, str]:
    if text == "pull":
        return {"delivery": "pull"}
    scheme, _, url = text.partition(":")
    if scheme != "push" or not url.startswith(("http://", "https://")):
        raise ConfigError(f"trainer: {text} is not pull or push:URL")
    return {"delivery": "push", "url": url}


def train(client: Client, request: dict[str, Any], arguments: argparse.Namespace, process: Process) -> int:
    progress = TrainingProgress(client)
    followed = follow(
        client,
        request,
        progress,
        begun=lambda run: introduce_trainer(client, run),
        check=lambda: check_alive(process),
    )
    ended = followed.run
    say_why(client, ended)
    print(json.dumps(ended, indent=2) if arguments.json else report_of(ended, progress.rewards))
    return run_arguments.exit_code(followed)


def introduce_trainer(client: Client, run: Run) -> None:
    """What a trainer of the user needs to begin. `run` is the reply that created it."""
    trainer = run.get("trainer", {})
    say("The trainer begins with these variables (docs/training.md):")
    say(f"  ROLLCALL_URL={client.transport.settings.base_url}")
    say(f"  ROLLCALL_RUN={run['id']}")
    for variable, value in (("ROLLCALL_TRAINER_TOKEN", "token"), ("ROLLCALL_PUSH_SECRET", "push_secret")):
        if trainer.get(value):
            say(f"  {variable}={trainer[value]}")


class TrainingProgress:
    """A line for each step that was trained. A terminal also has a line with the state of the run."""

    def __init__(self, client: Client) -> None:
        self.rewards: dict[int, float] = {}
        self._client = client
        self._line = StatusLine()
        self._trained = 0
        self._waits: set[str] = set()

    def show(self, run: Run) -> None:
        training = training_of(run)
        if training["steps_trained"] > self._trained:
            self._show_steps(run, training)
        reason = run.get("status_reason") or {}
        state = reason.get("state", "active")
        waits = "" if state == "active" else f", {state}: {reason.get('reason')}"
        if self._line.terminal:
            self._line.show(run_arguments.counts_text(run) + waits)
        elif waits and state not in self._waits:
            self._waits.add(state)
            say(f"{run['status']}{waits}")

    def _show_steps(self, run: Run, training: dict[str, Any]) -> None:
        if self._line.terminal:
            self._line.show("")
        call = Call("GET", path("runs", run["id"], "metrics"), params={"after_step": self._trained, "limit": 1_000})
        while True:
            page = json_of(self._client.transport.send(call))
            for point in page["data"]:
                if point["step"] <= training["steps_trained"]:
                    self._show_step(point, training, run["counts"]["scored"])
            if not page["has_more"] or self._trained >= training["steps_trained"]:
                return
            call = Call("GET", call.path, params={"after_step": page["last_id"], "limit": 1_000})

    def _show_step(self, point: dict[str, Any], training: dict[str, Any], scored: int) -> None:
        step, reward = point["step"], point["values"].get(REWARD)
        self._trained = step
        text = f"step {step} of {training['max_steps']}, weights v{training['published']}"
        if reward is not None:
            self.rewards[step] = reward
            text += f", reward {reward:.3f}"
        say(f"{text}, {scored} rollouts scored")

    def end(self) -> None:
        self._line.end()


def training_of(run: Run) -> dict[str, Any]:
    training = run.get("training")
    if training is None:
        raise RollcallError(f"{run['id']} is not a training run")
    return training


def report_of(run: Run, rewards: dict[int, float]) -> str:
    """The report as text: status, steps, the reward of the first and of the last step, and what was not scored."""
    training, counts = training_of(run), run["counts"]
    lines = [f"{run['id']}  {run['status']}"]
    lines.append(f"steps     {training['steps_trained']} of {training['max_steps']} trained")
    lines.append(f"weights   v{training['published']}")
    if rewards:
        first, last = min(rewards), max(rewards)
        text = f"reward    {rewards[first]:.4f} at step {first}"
        lines.append(text + (f", {rewards[last]:.4f} at step {last}" if last != first else ""))
    lines.append(f"rollouts  {counts['scored']} scored of {counts['dispatched']}")
    lines += run_arguments.trouble_lines(run) + run_arguments.error_lines(run)
    return "\n".join(lines)
