"""The command `rollcall` of the Python package: `eval`, `agent`, `train`.

Exit codes: 0 success; 1 the run did not complete; 2 wrong usage or a refused request; 4 the platform cannot be
reached; 130 interrupted. The npm package has a command of the same name with the rest of the platform.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

import httpx

from . import __version__, evaluate
from .agent import __main__ as agents
from .errors import ApiError, ConfigError, RollcallError
from .train import add_arguments as add_train
from .train import run as run_train


def parser() -> argparse.ArgumentParser:
    parsed = argparse.ArgumentParser(prog="rollcall", description="Rollouts and scoring, from Python.")
    parsed.add_argument("--version", action="version", version=__version__)
    commands = parsed.add_subparsers(dest="command", required=True)
    evaluation = commands.add_parser("eval", help="run an environment and print its report")
    evaluate.add_arguments(evaluation)
    evaluation.set_defaults(perform=evaluate.run)
    agent = commands.add_parser("agent", help="play rollouts with a function of yours")
    agents.add_arguments(agent)
    agent.set_defaults(perform=agents.run)
    train = commands.add_parser("train", help="start a training run and print how a trainer connects")
    add_train(train)
    train.set_defaults(perform=run_train)
    return parsed


def main(argv: Sequence[str] | None = None) -> int:
    arguments = parser().parse_args(argv)
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
