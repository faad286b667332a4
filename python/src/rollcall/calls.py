"""What requests are made of, and the readers of replies."""

from __future__ import annotations

import importlib
import json
from collections.abc import Iterable, Mapping
from typing import Any
from urllib.parse import quote

import httpx

from .errors import ApiError, ConfigError, RunFailed
from .transport import Call
from .types import Event, ResultRow, Run

SILENCE_S = 60.0
"""The longest silence of a stream of events. The platform sends something every 15 s."""
Rows = Iterable[Mapping[str, Any]] | bytes | str


def path(*parts: str) -> str:
    return "/v1/" + "/".join(quote(part, safe="") for part in parts)


def lines_of(rows: Rows) -> bytes:
    """Rows as JSON lines. Raises `ConfigError` with the number of a row that JSON cannot hold."""
    if isinstance(rows, bytes):
        return rows
    if isinstance(rows, str):
        return rows.encode()
    lines = []
    for number, row in enumerate(rows):
        try:
            lines.append(json.dumps(row, allow_nan=False))
        except (TypeError, ValueError) as error:
            raise ConfigError(f"rows[{number}]: is not JSON: {error}") from None
    if not lines:
        raise ConfigError("rows: must not be empty")
    return ("\n".join(lines) + "\n").encode()


def events_call(run_id: str, after: int | None) -> Call:
    headers = {"accept": "text/event-stream"}
    return Call("GET", path("runs", run_id, "events"), params={"after": after}, headers=headers, timeout=SILENCE_S)


def json_of(reply: httpx.Response) -> Any:
    """The body. Raises `ApiError` with the code `unreadable` if it is not JSON: a proxy may have answered."""
    try:
        return reply.json()
    except ValueError:
        message = "the reply is not JSON: is this the address of a Rollcall platform?"
        raise ApiError(reply.status_code, "unreadable", message) from None


def rows_of(reply: httpx.Response) -> list[ResultRow]:
    return [json.loads(line) for line in reply.text.split("\n") if line.strip()]


def next_page(reply: httpx.Response) -> str | None:
    """The address of the `Link` header's next page."""
    return reply.links.get("next", {}).get("url")


def check_ended(run: Run) -> Run:
    """The run, if it completed. Raises `RunFailed`."""
    status = run.get("status", "")
    if status == "completed":
        return run
    error = run.get("error") or {}
    raise RunFailed(run.get("id", ""), status, error.get("message") or error.get("code"))


def frame_of(rows: list[ResultRow]) -> Any:
    """A pandas frame with a line for each rollout and a column `metrics.NAME` for each metric."""
    try:
        pandas = importlib.import_module("pandas")
    except ImportError:
        raise ConfigError("pandas is not installed: pip install pandas, or use results()") from None
    flat = []
    for row in rows:
        rest = {name: value for name, value in row.items() if name != "metrics"}
        flat.append({**rest, **{f"metrics.{name}": value for name, value in row.get("metrics", {}).items()}})
    return pandas.DataFrame(flat)


class EventReader:
    """Makes events of the lines of a stream. `after` is the id of the last one."""

    def __init__(self, after: int | None) -> None:
        self.after = after
        self.over = False
        self._fields: dict[str, str] = {}

    def forget(self) -> None:
        """Drops an event of which only a part arrived."""
        self._fields.clear()

    def read(self, line: str) -> Event | None:
        if line and not line.startswith(":"):
            name, _, value = line.partition(":")
            value = value.removeprefix(" ")
            before = self._fields.get(name)
            self._fields[name] = f"{before}\n{value}" if name == "data" and before is not None else value
            return None
        if line or "data" not in self._fields:
            if not line:
                self._fields.clear()
            return None
        fields, self._fields = self._fields, {}
        number = int(fields.get("id", self.after or 0))
        if self.after is not None and number <= self.after:
            return None
        self.after = number
        name = fields.get("event", "message")
        self.over = name in ("run.completed", "run.failed", "run.cancelled")
        return {"id": number, "event": name, "data": json.loads(fields["data"])}
