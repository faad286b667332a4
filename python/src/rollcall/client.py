"""Clients of the HTTP API: `Client` for scripts and notebooks, `AsyncClient` for async code.

    with Client() as client:
        run = client.runs.create(environment="gsm8k@1", model="qwen3-4b", endpoint="qwen", num_examples=50)
        run = client.runs.wait(run["id"])
        print(run["report"]["reward"]["mean"])
        frame = client.runs.frame(run["id"])

The address and the key come from `ROLLCALL_URL` and `ROLLCALL_API_KEY`, unless they are passed. A refusal is an
`ApiError`; a platform that cannot be reached is an `httpx.TransportError`. Calls are repeated after 429, 502, 503, 504
and broken connections, twice unless `max_retries` is set, and `retry-after` is kept to.
"""

from __future__ import annotations

import asyncio
import hashlib
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from types import TracebackType
from typing import Any

import httpx

from .calls import (
    PART_BYTES,
    EventReader,
    Rows,
    check_ended,
    compare_call,
    comparison_of,
    complete_call,
    dataset_of,
    events_call,
    frame_of,
    lines_of,
    next_page,
    part_calls,
    path,
    rows_of,
    run_of,
    upload_call,
)
from .transport import AsyncTransport, Call, Settings, Transport
from .types import ENDED, Comparison, Dataset, Event, ResultRow, Run

__all__ = ["AsyncClient", "Client"]

FIRST_POLL_S, LONGEST_POLL_S = 0.5, 5.0
RECONNECT_S = 1.0


class Client:
    """A blocking client. Close it, or use it as a context."""

    def __init__(
        self,
        base_url: str | None = None,
        api_key: str | None = None,
        *,
        project: str | None = None,
        timeout: float = 60.0,
        max_retries: int = 2,
        http: httpx.Client | None = None,
    ) -> None:
        self.transport = Transport(Settings.of(base_url, api_key, project, timeout, max_retries), http)
        self.runs = Runs(self.transport)
        self.datasets = Datasets(self.transport)

    def close(self) -> None:
        self.transport.close()

    def __enter__(self) -> Client:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class Runs:
    """`client.runs`"""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def create(self, body: Mapping[str, Any] | None = None, /, **fields: Any) -> Run:
        """Starts a run. The fields are those of `POST /v1/runs`, as keywords or as one mapping."""
        reply = self._transport.send(Call("POST", "/v1/runs", json={**(body or {}), **fields}))
        return run_of(reply)

    def get(self, run_id: str) -> Run:
        """The run with its counts and its report as they are now."""
        return run_of(self._transport.send(Call("GET", path("runs", run_id))))

    def list(self, **filters: Any) -> Iterator[Run]:
        """Runs, newest first, page after page. Filters are query parameters: `environment="gsm8k"`."""
        after: str | None = None
        while True:
            call = Call("GET", "/v1/runs", params={**filters, "after": after or filters.get("after")})
            page = self._transport.send(call).json()
            yield from page["data"]
            after = page["last_id"]
            if not page["has_more"]:
                return

    def cancel(self, run_id: str) -> Run:
        """Ends the run. It is `cancelled` once every rollout has ended."""
        return run_of(self._transport.send(Call("POST", path("runs", run_id, "cancel"))))

    def wait(
        self,
        run_id: str,
        *,
        timeout: float | None = None,
        on_progress: Callable[[Run], object] | None = None,
        check: bool = True,
    ) -> Run:
        """Waits until the run has ended. `on_progress` gets each view of it.

        Raises `RunFailed` if it did not complete, unless `check` is false, and `TimeoutError` after `timeout` seconds;
        the run then continues.
        """
        ends = None if timeout is None else time.monotonic() + timeout
        pause = FIRST_POLL_S
        while True:
            run = self.get(run_id)
            if on_progress is not None:
                on_progress(run)
            if run["status"] in ENDED:
                return check_ended(run) if check else run
            if ends is not None and time.monotonic() + pause > ends:
                raise TimeoutError(f"{run_id} is still {run['status']} after {timeout} s")
            time.sleep(pause)
            pause = min(pause * 1.5, LONGEST_POLL_S)

    def results(self, run_id: str, *, outcome: str | None = None, limit: int = 1_000) -> Iterator[ResultRow]:
        """The finished rollouts in the order they ended, `limit` in a request."""
        call = Call("GET", path("runs", run_id, "results"), params={"outcome": outcome, "limit": limit})
        while True:
            reply = self._transport.send(call)
            yield from rows_of(reply)
            following = next_page(reply)
            if following is None:
                return
            call = Call("GET", following)

    def frame(self, run_id: str, *, outcome: str | None = None) -> Any:
        """The results as a pandas frame, one line a rollout. Needs pandas."""
        return frame_of([row for row in self.results(run_id, outcome=outcome)])

    def compare(self, run_id: str, baseline: str, *, metric: str = "reward", limit: int = 20) -> Comparison:
        """The run against a baseline, by their common tasks."""
        return comparison_of(self._transport.send(compare_call(run_id, baseline, metric, limit)))

    def events(self, run_id: str, *, after: int | None = None) -> Iterator[Event]:
        """Every event once and in order, however often the connection breaks off, until the run has ended."""
        reader = EventReader(after)
        while not reader.over:
            with self._transport.stream(events_call(run_id, reader.after)) as reply:
                if reply.status_code == 204:
                    return
                try:
                    for line in reply.iter_lines():
                        event = reader.read(line)
                        if event is not None:
                            yield event
                except httpx.TransportError:
                    reader.forget()  # The connection broke off: it is opened again after the last event.
            if not reader.over:
                time.sleep(RECONNECT_S)


class Datasets:
    """`client.datasets`"""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def upload(self, rows: Rows, *, name: str | None = None, environment: str | None = None) -> Dataset:
        """Stores rows (mappings, or JSON lines as text or bytes). With `environment` each row must be a task of it."""
        content = lines_of(rows)
        if len(content) <= PART_BYTES:
            return dataset_of(self._transport.send(upload_call(content, name, environment)))
        body = {"name": name, "environment": environment, "sha256": hashlib.sha256(content).hexdigest()}
        given = {key: value for key, value in body.items() if value is not None}
        upload = self._transport.send(Call("POST", "/v1/dataset-uploads", json=given)).json()
        for call in part_calls(upload, content):
            self._transport.send(call)
        return dataset_of(self._transport.send(complete_call(upload, content)))

    def get(self, dataset: str) -> Dataset:
        """A dataset by id or name."""
        return dataset_of(self._transport.send(Call("GET", path("datasets", dataset))))


class AsyncClient:
    """An async client. Close it, or use it as a context."""

    def __init__(
        self,
        base_url: str | None = None,
        api_key: str | None = None,
        *,
        project: str | None = None,
        timeout: float = 60.0,
        max_retries: int = 2,
        http: httpx.AsyncClient | None = None,
    ) -> None:
        self.transport = AsyncTransport(Settings.of(base_url, api_key, project, timeout, max_retries), http)
        self.runs = AsyncRuns(self.transport)
        self.datasets = AsyncDatasets(self.transport)

    async def close(self) -> None:
        await self.transport.close()

    async def __aenter__(self) -> AsyncClient:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()


class AsyncRuns:
    """`client.runs`"""

    def __init__(self, transport: AsyncTransport) -> None:
        self._transport = transport

    async def create(self, body: Mapping[str, Any] | None = None, /, **fields: Any) -> Run:
        """Starts a run. The fields are those of `POST /v1/runs`, as keywords or as one mapping."""
        reply = await self._transport.send(Call("POST", "/v1/runs", json={**(body or {}), **fields}))
        return run_of(reply)

    async def get(self, run_id: str) -> Run:
        """The run with its counts and its report as they are now."""
        return run_of(await self._transport.send(Call("GET", path("runs", run_id))))

    async def list(self, **filters: Any) -> AsyncIterator[Run]:
        """Runs, newest first, page after page. Filters are query parameters: `environment="gsm8k"`."""
        after: str | None = None
        while True:
            call = Call("GET", "/v1/runs", params={**filters, "after": after or filters.get("after")})
            page = (await self._transport.send(call)).json()
            for run in page["data"]:
                yield run
            after = page["last_id"]
            if not page["has_more"]:
                return

    async def cancel(self, run_id: str) -> Run:
        """Ends the run. It is `cancelled` once every rollout has ended."""
        return run_of(await self._transport.send(Call("POST", path("runs", run_id, "cancel"))))

    async def wait(
        self,
        run_id: str,
        *,
        timeout: float | None = None,
        on_progress: Callable[[Run], object] | None = None,
        check: bool = True,
    ) -> Run:
        """Waits until the run has ended. `on_progress` gets each view of it.

        Raises `RunFailed` if it did not complete, unless `check` is false, and `TimeoutError` after `timeout` seconds;
        the run then continues.
        """
        ends = None if timeout is None else time.monotonic() + timeout
        pause = FIRST_POLL_S
        while True:
            run = await self.get(run_id)
            if on_progress is not None:
                on_progress(run)
            if run["status"] in ENDED:
                return check_ended(run) if check else run
            if ends is not None and time.monotonic() + pause > ends:
                raise TimeoutError(f"{run_id} is still {run['status']} after {timeout} s")
            await asyncio.sleep(pause)
            pause = min(pause * 1.5, LONGEST_POLL_S)

    async def results(self, run_id: str, *, outcome: str | None = None, limit: int = 1_000) -> AsyncIterator[ResultRow]:
        """The finished rollouts in the order they ended, `limit` in a request."""
        call = Call("GET", path("runs", run_id, "results"), params={"outcome": outcome, "limit": limit})
        while True:
            reply = await self._transport.send(call)
            for row in rows_of(reply):
                yield row
            following = next_page(reply)
            if following is None:
                return
            call = Call("GET", following)

    async def frame(self, run_id: str, *, outcome: str | None = None) -> Any:
        """The results as a pandas frame, one line a rollout. Needs pandas."""
        return frame_of([row async for row in self.results(run_id, outcome=outcome)])

    async def compare(self, run_id: str, baseline: str, *, metric: str = "reward", limit: int = 20) -> Comparison:
        """The run against a baseline, by their common tasks."""
        return comparison_of(await self._transport.send(compare_call(run_id, baseline, metric, limit)))

    async def events(self, run_id: str, *, after: int | None = None) -> AsyncIterator[Event]:
        """Every event once and in order, however often the connection breaks off, until the run has ended."""
        reader = EventReader(after)
        while not reader.over:
            async with self._transport.stream(events_call(run_id, reader.after)) as reply:
                if reply.status_code == 204:
                    return
                try:
                    async for line in reply.aiter_lines():
                        event = reader.read(line)
                        if event is not None:
                            yield event
                except httpx.TransportError:
                    reader.forget()  # The connection broke off: it is opened again after the last event.
            if not reader.over:
                await asyncio.sleep(RECONNECT_S)


class AsyncDatasets:
    """`client.datasets`"""

    def __init__(self, transport: AsyncTransport) -> None:
        self._transport = transport

    async def upload(self, rows: Rows, *, name: str | None = None, environment: str | None = None) -> Dataset:
        """Stores rows (mappings, or JSON lines as text or bytes). With `environment` each row must be a task of it."""
        content = lines_of(rows)
        if len(content) <= PART_BYTES:
            return dataset_of(await self._transport.send(upload_call(content, name, environment)))
        body = {"name": name, "environment": environment, "sha256": hashlib.sha256(content).hexdigest()}
        given = {key: value for key, value in body.items() if value is not None}
        upload = (await self._transport.send(Call("POST", "/v1/dataset-uploads", json=given))).json()
        for call in part_calls(upload, content):
            await self._transport.send(call)
        return dataset_of(await self._transport.send(complete_call(upload, content)))

    async def get(self, dataset: str) -> Dataset:
        """A dataset by id or name."""
        return dataset_of(await self._transport.send(Call("GET", path("datasets", dataset))))
