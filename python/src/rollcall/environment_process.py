"""The environment of `--python`: where it comes from, whether it may run, and its worker's process."""

from __future__ import annotations

import argparse
import json
import os
import secrets
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from . import hub
from .client import Client
from .errors import ConfigError, RollcallError
from .said import say
from .venvs import Source, Wheel, build_wheel, package_path, prepare, read_wheel, release_of, source_of

INLINE_BYTES = 256 << 10
"""Rows that are larger are uploaded as a dataset: the body of a request has at most 1 MiB and 100,000 values."""
STOP_S = 20.0
Process = subprocess.Popen[str] | None
"""The worker's. None: the platform plays the environment."""


@dataclass(frozen=True)
class Playing:
    """An environment that a worker plays. `request` has the fields of a run that is played by it."""

    request: dict[str, Any]
    process: subprocess.Popen[str]


def add_arguments(parser: argparse.ArgumentParser, split: str) -> None:
    python = parser.add_argument_group("environments in Python")
    python.add_argument("--verifiers", help="release of verifiers; default: by the API the environment uses")
    python.add_argument("--env-name", help="the environment's name in its package; default: the package's name")
    python.add_argument("--env-config", default="{}", help="of verifiers 0.4: other members of its env block, as JSON")
    python.add_argument("--harness", help="of verifiers 0.4: the harness of every role; default: in the worker")
    python.add_argument("--runtime", help="of verifiers 0.4: subprocess, docker or another, of every role")
    python.add_argument("--max-turns", type=int, help="model turns of a rollout")
    python.add_argument("--split", default=split, help=f"of the legacy API: eval or train (default {split})")
    python.add_argument("--out", help="folder for the records that verifiers would write")
    python.add_argument("--yes", action="store_true", help="run the environment's code without asking")


@contextmanager
def playing(client: Client, arguments: argparse.Namespace, group_size: int) -> Iterator[Playing]:
    """Asks whether the code may run, installs it, and starts its worker. At the end the worker has ended."""
    with tempfile.TemporaryDirectory(prefix="rollcall-") as folder:
        source, wheel = get(client, arguments, Path(folder))
        python = prepare(source, wheel, release_of(wheel, arguments.verifiers), say)
        name = arguments.env_name or source.name or wheel.name
        agent = f"{wheel.name}-{secrets.token_hex(4)}"
        rows = Path(folder) / "rows.jsonl"
        with worker(client, python, name, agent, rows, arguments, group_size) as process:
            dataset = dataset_of(client, rows.read_bytes())
            yield Playing({"environment": "agent", "agent": {"name": agent}, "dataset": dataset}, process)


def get(client: Client, arguments: argparse.Namespace, folder: Path) -> tuple[Source, Wheel]:
    """The environment's wheel, once its code is allowed to run: building one runs code of its package."""
    source = source_of(arguments.environment)
    if source.hub is None:
        agree(source.requirement, arguments.yes)
        return source, build_wheel(source, folder, say)
    published = hub.find(client.transport, source.hub)
    if published.notice is not None:
        say(published.notice)
    agree(f"{published.id} of {client.transport.settings.base_url}", arguments.yes)
    say(f"getting {published.id}, sha256:{published.sha256}")
    return source, read_wheel(hub.download(client.transport, published, folder))


def agree(what: str, yes: bool) -> None:
    """Asks once before foreign code runs. Raises `ConfigError` if the answer is not yes."""
    if yes:
        return
    if not sys.stdin.isatty():
        raise ConfigError(f"{what} is code that runs on this machine: add --yes to allow it")
    sys.stderr.write(f"{what} is code that runs on this machine, with your rights.\nRun it? [y/N] ")
    sys.stderr.flush()
    if sys.stdin.readline().strip().lower() not in ("y", "yes"):
        raise ConfigError("the environment was not allowed to run")


def dataset_of(client: Client, content: bytes) -> Any:
    """Small rows go with the request, others become a dataset."""
    if len(content) <= INLINE_BYTES:
        return [json.loads(line) for line in content.decode().split("\n") if line]
    return client.datasets.upload(content, environment="agent")["id"]


@contextmanager
def worker(
    client: Client, python: str, name: str, agent: str, rows: Path, arguments: argparse.Namespace, group_size: int
) -> Iterator[subprocess.Popen[str]]:
    """The worker's process, ready, with its rows written. At the end it gives back what it still holds.

    Ctrl-C does not reach it: it has a session of its own. It stops by itself if this process is gone.
    """
    command = [python, "-m", "rollcall.verifiers", "worker", name, "--agent", agent, "--rows", str(rows)]
    command += ["--args", arguments.args, "--env-config", arguments.env_config, "--split", arguments.split]
    command += ["--num-examples", str(arguments.num_examples), "--seed", str(arguments.seed)]
    command += ["--max-concurrent", str(max(arguments.max_concurrent, group_size)), "--group-size", str(group_size)]
    command.append("--until-stdin-ends")
    for flag in ("harness", "runtime", "max_turns", "out"):
        if getattr(arguments, flag) is not None:
            command += [f"--{flag.replace('_', '-')}", str(getattr(arguments, flag))]
    if arguments.shuffle:
        command.append("--shuffle")
    settings = client.transport.settings
    variables = {**os.environ, "ROLLCALL_URL": settings.base_url, "ROLLCALL_API_KEY": settings.api_key}
    variables["PATH"] = f"{Path(python).parent}{os.pathsep}{variables.get('PATH', '')}"
    variables["PYTHONPATH"] = os.pathsep.join(filter(None, [package_path(), os.environ.get("PYTHONPATH")]))
    if settings.project is not None:
        variables["ROLLCALL_PROJECT"] = settings.project
    say(f"starting {name}")
    pipe = subprocess.PIPE
    process = subprocess.Popen(command, env=variables, stdin=pipe, stdout=pipe, text=True, start_new_session=True)
    try:
        wait_until_ready(process)
        yield process
    except KeyboardInterrupt:
        kill(process)
        raise
    finally:
        stop(process)


def wait_until_ready(process: subprocess.Popen[str]) -> None:
    """Environments may print while they load: the line of the worker is the one with `ready`."""
    assert process.stdout is not None
    for line in process.stdout:
        if line.startswith('{"ready": true'):
            threading.Thread(target=pass_on, args=(process,), daemon=True).start()
            return
        sys.stderr.write(line)
    code = process.wait()
    raise ConfigError(f"the environment did not start: its worker ended with {code}")


def pass_on(process: subprocess.Popen[str]) -> None:
    assert process.stdout is not None
    for line in process.stdout:
        sys.stderr.write(line)


def stop(process: subprocess.Popen[str]) -> None:
    """Lets the worker send the results that are ready and give its leases back. Another Ctrl-C ends it at once."""
    try:
        if process.poll() is None:
            process.send_signal(signal.SIGTERM)
            process.wait(STOP_S)
    except subprocess.TimeoutExpired:
        say(f"the worker did not stop within {STOP_S:.0f} s and is ended")
    finally:
        kill(process)
        process.wait()
        if process.stdin is not None:
            process.stdin.close()


def kill(process: subprocess.Popen[str]) -> None:
    """Ends the worker with the programs that it has started: its session is its own."""
    if process.poll() is not None:
        return
    if sys.platform == "win32":
        process.kill()
    else:
        os.killpg(process.pid, signal.SIGKILL)


class WorkerDied(RollcallError):
    """The worker's process ended before its run."""


def check_alive(process: Process) -> None:
    if process is not None and process.poll() is not None:
        raise WorkerDied(f"the worker ended with {process.returncode}")
