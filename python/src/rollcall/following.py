"""Follows a run to its end: progress, an interruption, a platform that is away, a worker that dies."""

from __future__ import annotations

import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType
from typing import Any, Protocol

import httpx

from .client import Client
from .errors import ApiError
from .said import say
from .types import ENDED, Run

FIRST_POLL_S, LONGEST_POLL_S = 0.5, 3.0
SILENT_FOR_S = 60.0
"""A platform that restarts is back sooner."""
MOST_WHY = 2_000
"""Characters of an error that are shown."""


class Progress(Protocol):
    def show(self, run: Run) -> None: ...

    def end(self) -> None: ...


@dataclass(frozen=True)
class Followed:
    """The ended run. `interrupted`: by Ctrl-C, which cancelled it."""

    run: Run
    interrupted: bool


def follow(
    client: Client,
    request: dict[str, Any],
    progress: Progress,
    *,
    begun: Callable[[Run], object],
    check: Callable[[], object],
) -> Followed:
    """Starts the run, and shows it until it has ended. `check` raises if nothing can play it any more.

    The first Ctrl-C cancels the run and waits for its end; the second raises KeyboardInterrupt. If `check` raises, the
    run is cancelled.
    """
    with _uninterrupted():
        run = client.runs.create(request)
    run_id = run["id"]
    try:
        say(f"run {run_id}")
        begun(run)
        return Followed(_wait(client, run_id, progress, check), interrupted=False)
    except KeyboardInterrupt:
        progress.end()
        say(f"cancelling {run_id}: again to end at once")
        client.runs.cancel(run_id)
        ended = _wait(client, run_id, progress, lambda: None)
        say(f"cancelled {run_id}: what was finished is kept")
        return Followed(ended, interrupted=True)
    except httpx.TransportError:
        progress.end()
        say(f"{run_id} was not cancelled")
        raise
    except Exception:
        progress.end()
        client.runs.cancel(run_id)
        say(f"cancelled {run_id}")
        raise


def _wait(client: Client, run_id: str, progress: Progress, check: Callable[[], object]) -> Run:
    pause, answered = FIRST_POLL_S, time.monotonic()
    while True:
        try:
            run = client.runs.get(run_id)
            progress.show(run)
            answered = time.monotonic()
            if run["status"] in ENDED:
                progress.end()
                return run
        except (httpx.TransportError, ApiError) as error:
            refused = isinstance(error, ApiError) and error.status < 500 and error.status != 429
            if refused or time.monotonic() - answered > SILENT_FOR_S:
                raise
        check()
        time.sleep(pause)
        pause = min(pause * 1.5, LONGEST_POLL_S)


@contextmanager
def _uninterrupted() -> Iterator[None]:
    """Delays Ctrl-C to the end of the block: a run whose id is not known yet could not be cancelled."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    caught: list[int] = []

    def note(number: int, frame: FrameType | None) -> None:
        caught.append(number)

    before = {number: signal.signal(number, note) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    if caught:
        raise KeyboardInterrupt


def say_why(client: Client, run: Run) -> None:
    """Shows one error of the rollouts that failed, and one of those that are unscored."""
    for outcome in ("failed", "unscored"):
        if not run["counts"][outcome]:
            continue
        row: Any = next(client.runs.results(run["id"], outcome=outcome, limit=1), {})
        error = row.get("error")
        texts = [f"{error.get('error')}: {error.get('message')}"] if error else []
        texts += [f"{each.get('function')}: {each.get('error')}" for each in row.get("scoring_errors", [])]
        if texts:
            say(f"{outcome}, for example: {texts[0]}"[:MOST_WHY])


class StatusLine:
    """One line that is written over in a terminal, and a line for each change elsewhere."""

    def __init__(self) -> None:
        self.terminal = sys.stderr.isatty()
        self._last = ""

    def show(self, text: str) -> None:
        if text != self._last:
            self._last = text
            sys.stderr.write(f"\r\x1b[K{text}" if self.terminal else f"{text}\n")
            sys.stderr.flush()

    def end(self) -> None:
        """The next output begins on a line of its own."""
        if self.terminal and self._last:
            sys.stderr.write("\n")
        self._last = ""
