"""What each method of the clients does, once for both: which calls it makes, and what it reads of their replies.

A plan yields calls, gets their replies, and returns the result. The clients differ only in how they send a call.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Generic, TypeVar

import httpx

from .calls import Rows, check_ended, frame_of, json_of, lines_of, next_page, path, rows_of
from .transport import Call
from .types import ENDED, Comparison, Dataset, ResultRow, Run

T = TypeVar("T")
Plan = Generator[Call, httpx.Response, T]

FIRST_POLL_S, LONGEST_POLL_S = 0.5, 5.0
PART_BYTES = 5 << 20
"""A dataset that is larger is uploaded in parts of this size."""
UPLOAD_S = 600.0


@dataclass(frozen=True)
class Pages(Generic[T]):
    """A list that comes page after page. `following`: the call for the page after a reply, or None at the end."""

    first: Call
    rows: Callable[[httpx.Response], list[T]]
    following: Callable[[httpx.Response], Call | None]


def create_run(body: Mapping[str, Any] | None = None, /, **fields: Any) -> Plan[Run]:
    """Starts a run. The fields are those of `POST /v1/runs`, as keywords or as one mapping."""
    run: Run = json_of((yield Call("POST", "/v1/runs", json={**(body or {}), **fields})))
    return run


def get_run(run_id: str) -> Plan[Run]:
    """The run with its counts and its report as they are now."""
    run: Run = json_of((yield Call("GET", path("runs", run_id))))
    return run


def list_runs(**filters: Any) -> Pages[Run]:
    """Runs, newest first, page after page. Filters are query parameters: `environment="gsm8k"`."""
    first = Call("GET", "/v1/runs", params=filters)

    def rows(reply: httpx.Response) -> list[Run]:
        runs: list[Run] = json_of(reply)["data"]
        return runs

    def following(reply: httpx.Response) -> Call | None:
        page = json_of(reply)
        return replace(first, params={**filters, "after": page["last_id"]}) if page["has_more"] else None

    return Pages(first, rows, following)


def cancel_run(run_id: str) -> Plan[Run]:
    """Ends the run. It is `cancelled` once every rollout has ended."""
    run: Run = json_of((yield Call("POST", path("runs", run_id, "cancel"))))
    return run


def wait_for_run(
    run_id: str,
    *,
    timeout: float | None = None,
    on_progress: Callable[[Run], object] | None = None,
    check: bool = True,
) -> Plan[Run]:
    """Waits until the run has ended. `on_progress` gets each view of it.

    Raises `RunFailed` if it did not complete, unless `check` is false, and `TimeoutError` after `timeout` seconds;
    the run then continues.
    """
    ends = None if timeout is None else time.monotonic() + timeout
    call = Call("GET", path("runs", run_id))
    pause = FIRST_POLL_S
    while True:
        run: Run = json_of((yield call))
        if on_progress is not None:
            on_progress(run)
        if run["status"] in ENDED:
            return check_ended(run) if check else run
        if ends is not None and time.monotonic() + pause > ends:
            raise TimeoutError(f"{run_id} is still {run['status']} after {timeout} s")
        call = replace(call, after=pause)
        pause = min(pause * 1.5, LONGEST_POLL_S)


def results_of(run_id: str, *, outcome: str | None = None, limit: int = 1_000) -> Pages[ResultRow]:
    """The finished rollouts in the order they ended, `limit` in a request."""

    def following(reply: httpx.Response) -> Call | None:
        address = next_page(reply)
        return None if address is None else Call("GET", address)

    first = Call("GET", path("runs", run_id, "results"), params={"outcome": outcome, "limit": limit})
    return Pages(first, rows_of, following)


def frame_of_run(run_id: str, *, outcome: str | None = None) -> Plan[Any]:
    """The results as a pandas frame, one line a rollout. Needs pandas."""
    pages = results_of(run_id, outcome=outcome)
    rows: list[ResultRow] = []
    call: Call | None = pages.first
    while call is not None:
        reply = yield call
        rows += pages.rows(reply)
        call = pages.following(reply)
    return frame_of(rows)


def compare_runs(run_id: str, baseline: str, *, metric: str = "reward", limit: int = 20) -> Plan[Comparison]:
    """The run against a baseline, by their common tasks."""
    params = {"baseline": baseline, "metric": metric, "limit": limit}
    comparison: Comparison = json_of((yield Call("GET", path("runs", run_id, "compare"), params=params)))
    return comparison


def upload_dataset(rows: Rows, *, name: str | None = None, environment: str | None = None) -> Plan[Dataset]:
    """Stores rows (mappings, or JSON lines as text or bytes). With `environment` each row must be a task of it."""
    content = lines_of(rows)
    about = {"name": name, "environment": environment}
    if len(content) <= PART_BYTES:
        headers = {"content-type": "application/jsonl"}
        whole = Call("POST", "/v1/datasets", content=content, params=about, headers=headers, timeout=UPLOAD_S)
        dataset: Dataset = json_of((yield whole))
        return dataset
    body = {**about, "sha256": hashlib.sha256(content).hexdigest()}
    given = {key: value for key, value in body.items() if value is not None}
    upload = json_of((yield Call("POST", "/v1/dataset-uploads", json=given)))
    size = int(upload["part_bytes"])
    for number, start in enumerate(range(0, len(content), size), start=1):
        yield Call(
            "PUT",
            path("dataset-uploads", upload["id"], "parts", str(number)),
            content=content[start : start + size],
            headers={"content-type": "application/octet-stream"},
            timeout=UPLOAD_S,
        )
    complete = path("dataset-uploads", upload["id"], "complete")
    dataset = json_of((yield Call("POST", complete, json={"bytes": len(content)}, timeout=UPLOAD_S)))
    return dataset


def get_dataset(dataset: str) -> Plan[Dataset]:
    """A dataset by id or name."""
    found: Dataset = json_of((yield Call("GET", path("datasets", dataset))))
    return found
