"""`python -m rollcall.verifiers worker ENVIRONMENT`: play rollouts in an environment of verifiers."""

from __future__ import annotations

import argparse
import asyncio
import importlib
import json
import logging
import os
import sys
import threading
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from urllib.parse import quote

from ..agent import run_until_signal
from ..errors import ConfigError, RollcallError
from ..lease import Worker
from ..said import json_object
from ..transport import AsyncTransport, Call, Settings
from .groups import Groups
from .names import api_of
from .results import Player, Setup

log = logging.getLogger("rollcall.verifiers")


def load_player(setup: Setup) -> Player:
    """The player for the API that the environment is written for. Raises `ConfigError`, also for its own errors."""
    try:
        module = importlib.import_module(f"rollcall.verifiers.{api_of(setup.environment)}")
        player: Player = module.PLAYER(setup)
    except RollcallError:
        raise
    except Exception as error:
        log.info("the environment cannot be loaded", exc_info=True)
        message = f"{setup.environment} cannot be loaded: {type(error).__name__}: {error}"
        raise ConfigError(f"{message} (--verbose shows where)") from error
    return player


async def work(player: Player, settings: Settings, agent: str, arguments: argparse.Namespace) -> None:
    """Plays until a signal. `ready` is printed as a line of JSON when the environment's resources are open."""
    transport = AsyncTransport(settings)
    most: int = arguments.max_concurrent
    try:
        async with player:
            play, held = player.play, most
            if player.by_group:
                size_of = GroupSizes(transport, arguments.group_size)
                play = Groups(player.play_group, size_of, max(1, most // (arguments.group_size or most))).play
                held = most * 2 + (arguments.group_size or most)
            worker = Worker(
                transport,
                agent,
                play,
                max_concurrent=held if player.by_group else most,
                max_held=held,
                name=arguments.worker,
            )
            print(
                json.dumps({"ready": True, "agent": agent, "release": player.release, "by_group": player.by_group}),
                flush=True,
            )
            if arguments.until_stdin_ends:
                stop_at_end_of_input(worker)
            await run_until_signal(worker)
    finally:
        await transport.close()


def stop_at_end_of_input(worker: Worker) -> None:
    """Stops the worker when whoever started it is gone, however that process ended."""
    loop = asyncio.get_running_loop()

    def wait() -> None:
        while os.read(sys.stdin.fileno(), 4096):
            pass  # What it says does not matter, only its end.
        with suppress(RuntimeError):  # The loop is closed: the worker has stopped.
            loop.call_soon_threadsafe(worker.stop)

    threading.Thread(target=wait, name="rollcall-input", daemon=True).start()


class GroupSizes:
    """The number of rollouts of a task in a run, read once for each run unless it is given."""

    def __init__(self, transport: AsyncTransport, given: int | None) -> None:
        self._transport = transport
        self._given = given
        self._known: dict[str, int] = {}

    async def __call__(self, run_id: str) -> int:
        if self._given is not None:
            return self._given
        if run_id not in self._known:
            reply = await self._transport.send(Call("GET", f"/v1/runs/{quote(run_id, safe='')}"))
            size = reply.json().get("rollouts_per_example")
            if not isinstance(size, int):
                raise ConfigError("group_size: the run does not say how many rollouts a task has: set --group-size")
            self._known[run_id] = size
        return self._known[run_id]


def add_setup(parser: argparse.ArgumentParser) -> None:
    """The flags that say how an environment is played. `rollcall eval` passes them on."""
    parser.add_argument("-a", "--args", default="{}", help="arguments of the environment, as JSON")
    parser.add_argument("--env-config", default="{}", help="of verifiers 0.4: other members of its env block, as JSON")
    parser.add_argument("--harness", help="of verifiers 0.4: the harness of every role; default: in this process")
    parser.add_argument("--runtime", help="of verifiers 0.4: subprocess, docker or another, of every role")
    parser.add_argument("--max-turns", type=int, help="model turns of a rollout")
    parser.add_argument("--split", default="eval", help="of the legacy API: eval (default) or train")
    parser.add_argument("--max-concurrent", type=int, default=32, help="rollouts played at once (default 32)")
    parser.add_argument("--verbose", action="store_true", help="log each rollout and each model call")
    parser.add_argument("--out", help="folder for traces.jsonl, or results.jsonl of the legacy API")


def add_rows(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("-n", "--num-examples", type=int, default=-1, help="tasks, -1: all (default)")
    parser.add_argument("--shuffle", action="store_true", help="shuffle the tasks before taking -n of them")
    parser.add_argument("--seed", type=int, default=0, help="seed of --shuffle (default 0)")


def setup_of(arguments: argparse.Namespace) -> Setup:
    return Setup(
        environment=arguments.environment,
        args=json_object("args", arguments.args),
        env_config=json_object("env-config", arguments.env_config),
        harness=arguments.harness,
        runtime=arguments.runtime,
        max_turns=arguments.max_turns,
        split=arguments.split,
        out=Path(arguments.out) if arguments.out else None,
        group_size=getattr(arguments, "group_size", None),
    )


def write_rows(player: Player, arguments: argparse.Namespace, target: Path | None) -> None:
    """The rows as JSON lines, complete or not at all if they go to a file."""
    n = arguments.num_examples
    if n == 0 or n < -1:
        raise ConfigError("num_examples: must be -1 (all) or at least 1")
    rows = player.rows(n, shuffle=arguments.shuffle, seed=arguments.seed)
    text = "".join(json.dumps(row) + "\n" for row in rows)
    if target is None:
        sys.stdout.write(text)
        return
    partial = target.with_suffix(".partial")
    partial.write_text(text, encoding="utf-8")
    partial.replace(target)


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m rollcall.verifiers")
    commands = parser.add_subparsers(dest="command", required=True)
    worker = commands.add_parser("worker", help="play rollouts until Ctrl-C")
    worker.add_argument("environment", help="name of an environment that is installed here")
    worker.add_argument("--agent", help="the agent's name that runs ask for; default: that of the environment")
    worker.add_argument("--worker", help="this worker's name; default: host name and process id")
    worker.add_argument("--group-size", type=int, help="rollouts of a task; default: read from the run")
    worker.add_argument("--until-stdin-ends", action="store_true", help="also stop when standard input is closed")
    worker.add_argument("--rows", help="also write the tasks as rows to this file")
    worker.add_argument("--url", help="the platform (default: ROLLCALL_URL)")
    worker.add_argument("--api-key", help="a key of the project (default: ROLLCALL_API_KEY)")
    tasks = commands.add_parser("tasks", help="print the tasks as rows for a dataset")
    tasks.add_argument("environment", help="name of an environment that is installed here")
    for command in (worker, tasks):
        add_setup(command)
        add_rows(command)
    arguments = parser.parse_args(argv)
    level = logging.INFO if arguments.verbose else logging.WARNING
    logging.basicConfig(level=level, format="%(asctime)s %(name)s %(message)s", stream=sys.stderr)
    try:
        player = load_player(setup_of(arguments))
        if arguments.command == "tasks":
            write_rows(player, arguments, None)
            return 0
        settings = Settings.of(arguments.url, arguments.api_key)
        if arguments.rows:
            write_rows(player, arguments, Path(arguments.rows))
        agent = arguments.agent or arguments.environment.rsplit("/", 1)[-1].split("@", 1)[0]
        asyncio.run(work(player, settings, agent, arguments))
    except RollcallError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    return 0
