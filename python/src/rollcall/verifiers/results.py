"""What both APIs share: the settings of a player, kinds of errors, and the files of records."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from ..errors import ConfigError
from ..rollout import ErrorKind, Rollout

KINDS: Mapping[str, ErrorKind] = {
    # verifiers 0.4
    "ProviderError": "model",
    "HarnessError": "environment",
    "EnvError": "environment",
    "TaskError": "environment",
    "ToolsetError": "tool",
    "InterceptionError": "infrastructure",
    # the legacy API
    "ModelError": "model",
    "InvalidModelResponseError": "model",
    "EmptyModelResponseError": "model",
    "OverlongPromptError": "model",
    "ToolError": "tool",
    "ToolParseError": "tool",
    "ToolCallError": "tool",
    "InfraError": "infrastructure",
    # both
    "SandboxError": "infrastructure",
    "TunnelError": "infrastructure",
    "TimeoutError": "timeout",
}


def kind_of(name: str) -> ErrorKind:
    """The kind of an error of verifiers by its class. Errors of other classes come from the environment's code."""
    return KINDS.get(name, "environment")


@dataclass(frozen=True)
class Setup:
    """How a worker plays its environment. `args` are those of the environment."""

    environment: str
    args: Mapping[str, Any] = field(default_factory=dict)
    env_config: Mapping[str, Any] = field(default_factory=dict)
    harness: str | None = None
    runtime: str | None = None
    max_turns: int | None = None
    split: str = "eval"
    out: Path | None = None
    group_size: int | None = None


class Player(Protocol):
    """Plays one environment. It is a context: its resources are open inside."""

    release: str
    by_group: bool

    def rows(self, n: int, *, shuffle: bool, seed: int) -> list[dict[str, Any]]: ...

    async def __aenter__(self) -> Player: ...

    async def __aexit__(self, *_: object) -> None: ...

    async def play(self, rollout: Rollout) -> dict[str, Any]: ...

    async def play_group(self, rollouts: Sequence[Rollout]) -> list[dict[str, Any]]: ...


class Records:
    """Appends records to a file of JSON lines, each written before the platform has the result."""

    def __init__(self, out: Path | None, name: str) -> None:
        self._file = None
        if out is not None:
            out.mkdir(parents=True, exist_ok=True)
            self._file = (out / name).open("a", encoding="utf-8")

    def write(self, record: Mapping[str, Any]) -> None:
        if self._file is None:
            return
        self._file.write(json.dumps(record, default=_plain) + "\n")
        self._file.flush()

    def close(self) -> None:
        if self._file is not None:
            self._file.close()


def _plain(value: Any) -> Any:
    """What JSON lacks, in the form in which verifiers saves it."""
    dump = getattr(value, "model_dump", None)
    if callable(dump):
        return dump(mode="json", exclude_none=True)
    return dict(value) if isinstance(value, Mapping) else str(value)


def plain_row(row: Mapping[str, Any], number: int) -> dict[str, Any]:
    """A row that is only JSON. Raises `ConfigError` with the field that is not."""
    for name, value in row.items():
        try:
            json.dumps(value, allow_nan=False)
        except (TypeError, ValueError) as error:
            raise ConfigError(f"row {number}: {name}: is not JSON: {error}") from None
    return dict(row)


def finite(value: Any) -> float | None:
    """A number, or None for what is not a score."""
    if isinstance(value, bool | int | float) and math.isfinite(value):
        return float(value)
    return None
