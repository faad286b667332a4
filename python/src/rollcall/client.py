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
import functools
import inspect
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from types import TracebackType
from typing import Any, Concatenate, Generic, ParamSpec, TypeVar

import httpx

from . import plans
from .calls import EventReader, events_call
from .plans import Pages, Plan
from .transport import AsyncTransport, Call, Settings, Transport
from .types import Event

__all__ = ["AsyncClient", "Client"]

P = ParamSpec("P")
T = TypeVar("T")
TransportT = TypeVar("TransportT")
MethodT = TypeVar("MethodT", bound=Callable[..., Any])

RECONNECT_S = 1.0


class _Part(Generic[TransportT]):
    def __init__(self, transport: TransportT) -> None:
        self._transport = transport


_Sync = _Part[Transport]
_Async = _Part[AsyncTransport]


def _does(plan: Callable[P, Plan[T]]) -> Callable[Concatenate[_Sync, P], T]:
    """A method that carries a plan out."""

    def method(part: _Sync, /, *arguments: P.args, **named: P.kwargs) -> T:
        steps = plan(*arguments, **named)
        try:
            call = next(steps)
            while True:
                call = steps.send(part._transport.send(call))
        except StopIteration as ended:
            result: T = ended.value
            return result

    return _described_by(plan, method)


def _awaits(plan: Callable[P, Plan[T]]) -> Callable[Concatenate[_Async, P], Coroutine[Any, Any, T]]:
    async def method(part: _Async, /, *arguments: P.args, **named: P.kwargs) -> T:
        steps = plan(*arguments, **named)
        try:
            call = next(steps)
            while True:
                call = steps.send(await part._transport.send(call))
        except StopIteration as ended:
            result: T = ended.value
            return result

    return _described_by(plan, method)


def _iterates(pages_of: Callable[P, Pages[T]]) -> Callable[Concatenate[_Sync, P], Iterator[T]]:
    """A method that reads a list page after page."""

    def method(part: _Sync, /, *arguments: P.args, **named: P.kwargs) -> Iterator[T]:
        pages = pages_of(*arguments, **named)
        call: Call | None = pages.first
        while call is not None:
            reply = part._transport.send(call)
            yield from pages.rows(reply)
            call = pages.following(reply)

    return _described_by(pages_of, method)


def _iterates_async(pages_of: Callable[P, Pages[T]]) -> Callable[Concatenate[_Async, P], AsyncIterator[T]]:
    async def method(part: _Async, /, *arguments: P.args, **named: P.kwargs) -> AsyncIterator[T]:
        pages = pages_of(*arguments, **named)
        call: Call | None = pages.first
        while call is not None:
            reply = await part._transport.send(call)
            for row in pages.rows(reply):
                yield row
            call = pages.following(reply)

    return _described_by(pages_of, method)


def _described_by(plan: Callable[..., Any], method: MethodT) -> MethodT:
    """The method with the text and the parameters of its plan, as `help` shows them."""
    functools.update_wrapper(method, plan)
    own = inspect.signature(plan)
    itself = inspect.Parameter("self", inspect.Parameter.POSITIONAL_ONLY)
    method.__dict__["__signature__"] = own.replace(parameters=[itself, *own.parameters.values()])
    return method


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


class Runs(_Sync):
    """`client.runs`"""

    create = _does(plans.create_run)
    get = _does(plans.get_run)
    list = _iterates(plans.list_runs)
    cancel = _does(plans.cancel_run)
    wait = _does(plans.wait_for_run)
    results = _iterates(plans.results_of)
    frame = _does(plans.frame_of_run)
    compare = _does(plans.compare_runs)

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


class Datasets(_Sync):
    """`client.datasets`"""

    upload = _does(plans.upload_dataset)
    get = _does(plans.get_dataset)


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


class AsyncRuns(_Async):
    """`client.runs`"""

    create = _awaits(plans.create_run)
    get = _awaits(plans.get_run)
    list = _iterates_async(plans.list_runs)
    cancel = _awaits(plans.cancel_run)
    wait = _awaits(plans.wait_for_run)
    results = _iterates_async(plans.results_of)
    frame = _awaits(plans.frame_of_run)
    compare = _awaits(plans.compare_runs)

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


class AsyncDatasets(_Async):
    """`client.datasets`"""

    upload = _awaits(plans.upload_dataset)
    get = _awaits(plans.get_dataset)
