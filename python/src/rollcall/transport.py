"""Every HTTP call of this package: addresses, the key, and the one place where calls are retried."""

from __future__ import annotations

import asyncio
import json
import os
import random
import time
import uuid
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from typing import Any

import httpx

from .errors import ApiError, ConfigError, error_body, retry_after_of

RETRIED_STATUS = frozenset({429, 502, 503, 504})
"""Statuses that may be different in a moment. 409 `in_progress` is one too."""
LONGEST_WAIT_S = 60.0
"""A longer `retry-after` is an error: the caller decides whether to wait."""


def encode(body: Any) -> bytes:
    """JSON in ASCII, which also holds texts that are not valid Unicode. Raises `ConfigError` for what JSON lacks."""
    try:
        return json.dumps(body, allow_nan=False).encode()
    except (TypeError, ValueError) as error:
        raise ConfigError(f"the request cannot be written as JSON: {error}") from None


@dataclass(frozen=True)
class Call:
    """One request, the same for both transports. `timeout` in seconds, None: the client's own.

    It is sent `after` so many seconds.
    """

    method: str
    path: str
    json: Any = None
    content: bytes | None = None
    params: Mapping[str, Any] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)
    key: str | None = None
    timeout: float | None = None
    retries: int | None = None
    after: float = 0.0


@dataclass(frozen=True)
class Settings:
    """Where the platform is. Missing values come from `ROLLCALL_URL`, `ROLLCALL_API_KEY`, `ROLLCALL_PROJECT`."""

    base_url: str
    api_key: str
    project: str | None = None
    timeout: float = 60.0
    max_retries: int = 2

    @classmethod
    def of(
        cls,
        base_url: str | None = None,
        api_key: str | None = None,
        project: str | None = None,
        timeout: float = 60.0,
        max_retries: int = 2,
    ) -> Settings:
        url = base_url or os.environ.get("ROLLCALL_URL") or "http://127.0.0.1:8787"
        key = api_key or os.environ.get("ROLLCALL_API_KEY")
        if not key:
            raise ConfigError("api_key: is required: pass it, or set ROLLCALL_API_KEY to a key of the platform")
        if not url.startswith(("http://", "https://")):
            raise ConfigError(f"base_url: must begin with http:// or https://: {url}")
        if max_retries < 0:
            raise ConfigError("max_retries: must be 0 or more")
        project = project or os.environ.get("ROLLCALL_PROJECT")
        return cls(url.rstrip("/"), key, project, timeout, max_retries)

    def request(self, call: Call) -> dict[str, Any]:
        """The arguments of `build_request`. A POST has an `Idempotency-Key`, so that a repeat makes nothing twice."""
        headers = {"authorization": f"Bearer {call.key or self.api_key}"}
        if self.project is not None and call.key is None:
            headers["rollcall-project"] = self.project
        if call.method == "POST":
            headers["idempotency-key"] = str(uuid.uuid4())
        headers.update(call.headers)
        url = call.path if call.path.startswith(("http://", "https://")) else self.base_url + call.path
        arguments: dict[str, Any] = {
            "method": call.method,
            "url": url,
            "headers": headers,
            "timeout": httpx.Timeout(self.timeout if call.timeout is None else call.timeout, connect=10.0),
        }
        params = {name: value for name, value in call.params.items() if value is not None}
        if params:  # Even empty params would remove the query of the address.
            arguments["params"] = params
        if call.json is not None:
            headers.setdefault("content-type", "application/json")
            arguments["content"] = encode(call.json)
        if call.content is not None:
            arguments["content"] = call.content
        return arguments

    def delay_before_repeat(
        self, call: Call, attempt: int, failed: httpx.Response | httpx.TransportError
    ) -> float | None:
        """Seconds until the call is repeated, or None if it is not. `attempt` counts from 0."""
        most = self.max_retries if call.retries is None else call.retries
        if attempt >= most:
            return None
        backoff = float(min(0.5 * 2**attempt, 8.0)) * (0.5 + random.random() / 2)
        if isinstance(failed, httpx.TransportError):
            return backoff
        in_progress = failed.status_code == 409 and error_body(failed).get("code") == "in_progress"
        if failed.status_code not in RETRIED_STATUS and not in_progress:
            return None
        wanted = retry_after_of(failed)
        if wanted is None:
            return backoff
        return wanted if wanted <= LONGEST_WAIT_S else None


class Transport:
    """Calls from plain code."""

    def __init__(self, settings: Settings, http: httpx.Client | None = None) -> None:
        self.settings = settings
        self._http = http or httpx.Client()
        self._owned = http is None

    def send(self, call: Call) -> httpx.Response:
        """The reply, read whole. Raises `ApiError` for a refusal, `httpx.TransportError` without a reply."""
        return self._open(call, whole=True)

    @contextmanager
    def stream(self, call: Call) -> Iterator[httpx.Response]:
        """The reply, whose body the caller reads while it arrives. A break of the body is the caller's."""
        reply = self._open(call, whole=False)
        try:
            yield reply
        finally:
            reply.close()

    def _open(self, call: Call, *, whole: bool) -> httpx.Response:
        if call.after > 0:
            time.sleep(call.after)
        arguments = self.settings.request(call)
        attempt = 0
        while True:
            failed: httpx.Response | httpx.TransportError
            try:
                reply = self._http.send(self._http.build_request(**arguments), stream=True)
                if whole or not reply.is_success:
                    reply.read()
                if reply.is_success:
                    return reply
                failed = reply
            except httpx.TransportError as error:
                failed = error
            delay = self.settings.delay_before_repeat(call, attempt, failed)
            if delay is None:
                raise failed if isinstance(failed, Exception) else ApiError.of(failed)
            time.sleep(delay)
            attempt += 1

    def close(self) -> None:
        if self._owned:
            self._http.close()


class AsyncTransport:
    """Calls from async code."""

    def __init__(self, settings: Settings, http: httpx.AsyncClient | None = None) -> None:
        self.settings = settings
        limits = httpx.Limits(max_connections=None, max_keepalive_connections=64)
        self._http = http or httpx.AsyncClient(limits=limits)
        self._owned = http is None

    async def send(self, call: Call) -> httpx.Response:
        """The reply, read whole. Raises `ApiError` for a refusal, `httpx.TransportError` without a reply."""
        return await self._open(call, whole=True)

    @asynccontextmanager
    async def stream(self, call: Call) -> AsyncIterator[httpx.Response]:
        """The reply, whose body the caller reads while it arrives. A break of the body is the caller's."""
        reply = await self._open(call, whole=False)
        try:
            yield reply
        finally:
            await reply.aclose()

    async def _open(self, call: Call, *, whole: bool) -> httpx.Response:
        if call.after > 0:
            await asyncio.sleep(call.after)
        arguments = self.settings.request(call)
        attempt = 0
        while True:
            failed: httpx.Response | httpx.TransportError
            try:
                reply = await self._http.send(self._http.build_request(**arguments), stream=True)
                if whole or not reply.is_success:
                    await reply.aread()
                if reply.is_success:
                    return reply
                failed = reply
            except httpx.TransportError as error:
                failed = error
            delay = self.settings.delay_before_repeat(call, attempt, failed)
            if delay is None:
                raise failed if isinstance(failed, Exception) else ApiError.of(failed)
            await asyncio.sleep(delay)
            attempt += 1

    async def close(self) -> None:
        if self._owned:
            await self._http.aclose()
