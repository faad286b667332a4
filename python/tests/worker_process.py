"""Runs the verifiers worker as users do: a process in the virtual environment of the environment."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
from fake_platform import KEY, FakePlatform, FakeRollout

AGENT = "player"
SOURCES = str(Path(__file__).parent.parent / "src")


def environ(platform: FakePlatform, python: str, **more: str) -> dict[str, str]:
    """The environment of a worker: the platform, and the programs of its virtual environment."""
    path = f"{Path(python).parent}{os.pathsep}{os.environ['PATH']}"
    more["PYTHONPATH"] = os.pathsep.join(filter(None, [SOURCES, more.get("PYTHONPATH")]))
    return {**os.environ, "PATH": path, "ROLLCALL_URL": platform.url, "ROLLCALL_API_KEY": KEY, **more}


def start(
    python: str, environment: str, out: Path, variables: dict[str, str], *flags: str, cwd: Path | None = None
) -> subprocess.Popen[str]:
    """A worker that is ready. Its tasks are in `rows.jsonl` of `out`, its log in `worker.log`."""
    command = [python, "-m", "rollcall.verifiers", "worker", environment, "--rows", str(out / "rows.jsonl"), *flags]
    with (out / "worker.log").open("a") as log:
        process = subprocess.Popen(command, cwd=cwd, env=variables, stdout=subprocess.PIPE, stderr=log, text=True)
    assert process.stdout is not None
    if not process.stdout.readline():
        process.wait()
        process.stdout.close()
        raise AssertionError(f"the worker did not start: {(out / 'worker.log').read_text()[-4000:]}")
    return process


def end(process: subprocess.Popen[str]) -> None:
    process.kill()
    process.wait()
    if process.stdout is not None:
        process.stdout.close()


@contextmanager
def worker(
    platform: FakePlatform,
    python: str,
    environment: str,
    out: Path,
    *flags: str,
    path: str = "",
    cwd: Path | None = None,
) -> Iterator[list[dict[str, Any]]]:
    """A worker that is ready; the block gets the rows of its tasks. It must end with exit code 0."""
    variables = environ(platform, python, PYTHONPATH=path)
    process = start(python, environment, out, variables, "--agent", AGENT, "--out", str(out), *flags, cwd=cwd)
    try:
        with platform.watching(process):
            yield records(out / "rows.jsonl")
        process.send_signal(signal.SIGTERM)
        assert process.wait() == 0, (out / "worker.log").read_text()[-4000:]
    finally:
        end(process)


def play(platform: FakePlatform, rows: list[dict[str, Any]], **fields: Any) -> list[FakeRollout]:
    """Starts a run of the rows, waits for its end, and returns its rollouts by group and slot."""
    agent = {"name": AGENT, **fields.pop("agent", {})}
    body = {"environment": "agent", "dataset": rows, "model": "scripted", "endpoint": "e", "agent": agent, **fields}
    reply = httpx.post(f"{platform.url}/v1/runs", json=body, headers={"authorization": f"Bearer {KEY}"})
    run_id = reply.raise_for_status().json()["id"]
    platform.wait_until(lambda: all(each.over for each in platform.of_run(run_id)))
    return sorted(platform.of_run(run_id), key=lambda each: (each.group, each.slot))


def records(file: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in file.read_text().splitlines()]
