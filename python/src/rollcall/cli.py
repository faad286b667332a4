"""The command `rollcall` of the Python package: `eval`, `agent`, `train`, `track`.

Exit codes: 0 success; 1 the run did not complete; 2 wrong usage or a refused request; 4 the platform cannot be
reached; 130 interrupted. The npm package has a command of the same name with the rest of the platform.
"""

from __future__ import annotations

import argparse
import signal
import sys
import threading
from collections.abc import Sequence

import httpx

from . import __version__, evaluate, track, train
from .agent import __main__ as agents
from .errors import ApiError, ConfigError, RollcallError


def parser() -> argparse.ArgumentParser:
    parsed = argparse.ArgumentParser(prog="rollcall", description="Rollouts and scoring, from Python.")
    parsed.add_argument("--version", action="version", version=__version__)
    commands = parsed.add_subparsers(dest="command", required=True)
    for module, name, text in (
        (evaluate, "eval", "run an environment and print its report"),
        (train, "train", "start a training run, play its rollouts, and follow it to its end"),
        (track, "track", "send the series or the report of a run to Weights & Biases"),
    ):
        running = commands.add_parser(
            name,
            help=text,
            description=text.capitalize() + ".",
            epilog=module.EXAMPLE,
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        module.add_arguments(running)
        running.set_defaults(perform=module.run)
    agent = commands.add_parser("agent", help="play rollouts with a function of yours")
    agents.add_arguments(agent)
    agent.set_defaults(perform=agents.run)
    return parsed


def main(argv: Sequence[str] | None = None) -> int:
    arguments = parser().parse_args(argv)
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        return int(arguments.perform(arguments))
    except KeyboardInterrupt:
        return 130
    except httpx.TransportError as error:
        print(f"error: the platform cannot be reached: {error or type(error).__name__}", file=sys.stderr)
        return 4
    except (ApiError, ConfigError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except RollcallError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
