"""The flags and the texts that `rollcall eval` and `rollcall train` have in common."""

from __future__ import annotations

import argparse
import os
from typing import Any

from .errors import ConfigError
from .following import Followed
from .said import json_object
from .types import Run


def add(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "environment",
        help="package, folder, git+…, hub:owner/name@version of the platform, or owner/name@version of Prime's hub; "
        "without --python: an environment that the platform plays",
    )
    parser.add_argument("--python", action="store_true", help="the environment is written in Python, for verifiers")
    parser.add_argument("-a", "--args", default="{}", help="arguments of the environment, as JSON or @FILE")
    parser.add_argument("-m", "--model", required=True, help="the model's name at the endpoint")
    parser.add_argument("--endpoint", required=True, help="the endpoint: its URL, or its name at the platform")
    parser.add_argument("--endpoint-key", help="environment variable with the key of an endpoint given by URL")
    parser.add_argument("-n", "--num-examples", type=int, default=-1, help="tasks, -1: all (default)")
    parser.add_argument("--shuffle", action="store_true", help="shuffle the tasks")
    parser.add_argument("--seed", type=int, default=0, help="seed of the run (default 0)")
    parser.add_argument("-t", "--max-tokens", type=int, help="tokens of one answer")
    parser.add_argument("-T", "--temperature", type=float, help="sampling temperature")
    parser.add_argument("-S", "--sampling", default="{}", help="other sampling fields, as JSON or @FILE")
    parser.add_argument("-c", "--max-concurrent", type=int, default=32, help="rollouts at once (default 32)")
    parser.add_argument("--name", help="name of the run")
    parser.add_argument("--request", default="{}", help="other fields of the run's request, as JSON or @FILE")
    parser.add_argument("--json", action="store_true", help="print the run as JSON instead of the report")
    parser.add_argument("--url", help="the platform (default: ROLLCALL_URL)")
    parser.add_argument("--api-key", help="a key of the project (default: ROLLCALL_API_KEY)")


def request_of(arguments: argparse.Namespace) -> dict[str, Any]:
    """The fields of the request that do not depend on where the environment is played."""
    sampling = json_object("sampling", arguments.sampling)
    for name, value in (("max_tokens", arguments.max_tokens), ("temperature", arguments.temperature)):
        if value is not None:
            sampling[name] = value
    request: dict[str, Any] = {
        "model": arguments.model,
        "endpoint": endpoint_of(arguments),
        "max_concurrent": arguments.max_concurrent,
        "seed": arguments.seed,
        "sampling": sampling,
    }
    if arguments.name is not None:
        request["name"] = arguments.name
    return request | json_object("request", arguments.request)


def environment_of(arguments: argparse.Namespace) -> dict[str, Any]:
    """The fields for an environment that the platform plays."""
    return {
        "environment": arguments.environment,
        "environment_args": json_object("args", arguments.args),
        "shuffle": arguments.shuffle,
    }


def endpoint_of(arguments: argparse.Namespace) -> Any:
    if not arguments.endpoint.startswith(("http://", "https://")):
        return arguments.endpoint
    endpoint = {"base_url": arguments.endpoint}
    if arguments.endpoint_key:
        key = os.environ.get(arguments.endpoint_key)
        if not key:
            raise ConfigError(f"endpoint-key: the environment variable {arguments.endpoint_key} is not set")
        endpoint["api_key"] = key
    return endpoint


def exit_code(followed: Followed) -> int:
    if followed.interrupted:
        return 130
    return 0 if followed.run["status"] == "completed" else 1


def counts_text(run: Run) -> str:
    counts = run["counts"]
    done = counts["scored"] + sum(sum(counts[name].values()) for name in ("unscored", "failed", "cancelled"))
    return f"{run['status']}: {done} of {counts['planned']} done, {counts['in_flight']} in flight"


def trouble_lines(run: Run) -> list[str]:
    counts = run["counts"]
    named = (("unscored", counts["unscored"]), ("failed", counts["failed"]))
    return [
        f"  {name}: " + ", ".join(f"{count} {reason}" for reason, count in reasons.items())
        for name, reasons in named
        if reasons
    ]


def error_lines(run: Run) -> list[str]:
    error = run.get("error")
    return [f"error     {error.get('code')}: {error.get('message')}"] if error else []
