"""A worker of verifiers that is killed in the middle, on a real platform.

Skipped unless `ROLLCALL_URL`, `ROLLCALL_API_KEY` and the Python of the release are set. The platform must be on this
machine, because the model is the scripted one of this process.
"""

from __future__ import annotations

import asyncio
import json
import os
import secrets
import threading
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from fake_platform import FakePlatform, echo
from runners import HERE, LEGACY, Compared, library_rows, vf_eval
from worker_process import SOURCES, end, records, start

from rollcall.client import Client

PLATFORM = bool(os.environ.get("ROLLCALL_URL") and os.environ.get("ROLLCALL_API_KEY"))
V1 = os.environ.get("ROLLCALL_TEST_V1_PYTHON", "")
LEGACY_PYTHON = os.environ.get("ROLLCALL_TEST_LEGACY_PYTHON", "")
pytestmark = pytest.mark.skipif(not PLATFORM, reason="ROLLCALL_URL and ROLLCALL_API_KEY are not set")

EXAMPLES, EACH = 3, 2
HELD_FROM = 9
"""The model answers the calls before this one, and holds the others until the worker is dead."""


class HeldModel:
    """Repeats the last user message. Counts the calls of each conversation."""

    def __init__(self) -> None:
        self.calls: Counter[str] = Counter()
        self.reached = threading.Event()
        self.opened = threading.Event()

    async def __call__(self, body: dict[str, Any]) -> Any:
        self.calls[json.dumps([(each["role"], each["content"]) for each in body["messages"]])] += 1
        if self.calls.total() >= HELD_FROM:
            self.reached.set()
            await asyncio.to_thread(self.opened.wait)
        return echo(body)


def play_and_kill(model: HeldModel, url: str, python: str, environment: str, path: str, out: Path) -> list[Any]:
    """The results of a run whose worker is killed after eight answered turns, and replaced."""
    name = f"killed-{secrets.token_hex(4)}"
    variables = {**os.environ, "PYTHONPATH": os.pathsep.join([SOURCES, path])}
    first = start(python, environment, out, variables, "--agent", name)
    try:
        with Client() as client:
            run = client.runs.create(
                environment="agent",
                agent={"name": name, "lease_s": 5},
                dataset=records(out / "rows.jsonl"),
                model="scripted",
                endpoint={"base_url": f"{url}/direct/v1"},
                rollouts_per_example=EACH,
            )
            model.reached.wait()
            assert client.runs.get(run["id"])["counts"]["scored"] < EXAMPLES * EACH
            end(first)
            second = start(python, environment, out, variables, "--agent", name)
            try:
                model.opened.set()
                assert client.runs.wait(run["id"])["counts"]["scored"] == EXAMPLES * EACH
            finally:
                end(second)
            return list(client.runs.results(run["id"]))
    finally:
        model.opened.set()
        end(first)


def by_task(rows: list[tuple[int, float, str]]) -> list[tuple[int, float, str]]:
    return sorted((task, round(reward, 6), stop) for task, reward, stop in rows)


def ended(results: list[Any]) -> list[tuple[int, float, str]]:
    return by_task([(row["group"], row["reward"], row["stop_condition"]) for row in results])


def reward_of(trace: dict[str, Any]) -> float:
    return float(sum(each["score"] * each["weight"] for each in trace["rewards"].values()))


@pytest.mark.skipif(not V1, reason="ROLLCALL_TEST_V1_PYTHON is not set")
def test_a_killed_worker_changes_no_reward_and_repeats_no_model_call(tmp_path: Path) -> None:
    path = str(HERE / "v1_envs")
    model = HeldModel()
    with FakePlatform(model) as scripted:
        results = play_and_kill(model, scripted.url, V1, "rc-turns", path, tmp_path)
        calls = model.calls.copy()
        model.calls.clear()
        compared = Compared("rc-turns")
        theirs = vf_eval(scripted, V1, compared, tmp_path / "vf-eval", examples=EXAMPLES, each=EACH, path=path)
    traces = [(each["task"]["data"]["idx"], each["traces"][0]) for each in theirs]
    assert ended(results) == by_task([(idx, reward_of(trace), trace["stop_condition"]) for idx, trace in traces])
    assert calls == model.calls
    assert calls.total() == EACH * (2 + 3 + 5)


@pytest.mark.skipif(not LEGACY_PYTHON, reason="ROLLCALL_TEST_LEGACY_PYTHON is not set")
def test_a_killed_worker_of_the_legacy_api_changes_no_reward_and_repeats_no_model_call(tmp_path: Path) -> None:
    model = HeldModel()
    with FakePlatform(model) as scripted:
        results = play_and_kill(model, scripted.url, LEGACY_PYTHON, "lg-game", LEGACY, tmp_path)
        calls = model.calls.copy()
        model.calls.clear()
        theirs = library_rows(scripted, LEGACY_PYTHON, "lg-game", tmp_path, EACH)
    assert ended(results) == by_task([(row["example_id"], row["reward"], row["stop_condition"]) for row in theirs])
    assert calls == model.calls
