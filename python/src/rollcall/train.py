"""`rollcall train`: start a training run of the platform, and print how its trainer connects."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from .client import Client
from .errors import ConfigError
from .evaluate import json_object


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("request", help="the fields of the run as JSON, or @FILE: docs/training.md lists them")
    parser.add_argument("--url", help="the platform (default: ROLLCALL_URL)")
    parser.add_argument("--api-key", help="a key of the project (default: ROLLCALL_API_KEY)")


def run(arguments: argparse.Namespace) -> int:
    with Client(arguments.url, arguments.api_key) as client:
        run = client.runs.create({"kind": "training", **request_of(arguments.request)})
        trainer: Any = dict(run).get("trainer") or {}
        token = trainer.get("token") or "(shown once, when the run was created)"
        print(f"ROLLCALL_URL={client.transport.settings.base_url}")
        print(f"ROLLCALL_RUN={run['id']}")
        print(f"ROLLCALL_TRAINER_TOKEN={token}")
    return 0


def request_of(text: str) -> dict[str, Any]:
    if not text.startswith("@"):
        return json_object("request", text)
    try:
        return json_object("request", Path(text[1:]).read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigError(f"request: {text[1:]} cannot be read: {error.strerror}") from None
