"""`python -m rollcall.agent module:function`: play rollouts with a function of yours."""

from __future__ import annotations

import argparse
import importlib
import logging
import os
import sys
from collections.abc import Sequence

from ..errors import ConfigError, RollcallError
from . import Agent, serve


def load(target: str, name: str | None) -> Agent:
    """The agent at `module:function`. A function without `@agent` needs a name."""
    module_name, colon, attribute = target.partition(":")
    if not colon or not attribute:
        raise ConfigError(f"{target}: must be module:function")
    sys.path.insert(0, os.getcwd())
    found = getattr(importlib.import_module(module_name), attribute, None)
    if isinstance(found, Agent):
        return Agent(name, found.function) if name else found
    if not callable(found):
        raise ConfigError(f"{target}: {module_name} has no function {attribute}")
    if not name:
        raise ConfigError(f"{target}: has no @agent name: set --name")
    return Agent(name, found)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("target", help="module:function, in this folder or installed")
    parser.add_argument("--name", help="the agent's name; default: that of @agent")
    parser.add_argument("--max-concurrent", type=int, default=8, help="rollouts played at once (default 8)")
    parser.add_argument("--worker", help="this worker's name; default: host name and process id")
    parser.add_argument("--url", help="the platform (default: ROLLCALL_URL)")
    parser.add_argument("--api-key", help="a key of the project (default: ROLLCALL_API_KEY)")


def run(arguments: argparse.Namespace) -> int:
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s", stream=sys.stderr)
    logging.getLogger("httpx").setLevel(logging.WARNING)
    agent = load(arguments.target, arguments.name)
    print(f"serving {agent.name}: Ctrl-C gives the leases back", file=sys.stderr)
    serve(
        agent,
        base_url=arguments.url,
        api_key=arguments.api_key,
        max_concurrent=arguments.max_concurrent,
        worker=arguments.worker,
    )
    return 0


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m rollcall.agent", description=__doc__)
    add_arguments(parser)
    try:
        return run(parser.parse_args(argv))
    except RollcallError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
