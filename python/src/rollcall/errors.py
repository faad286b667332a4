"""The errors of this package. A platform that cannot be reached raises `httpx.TransportError`."""

from __future__ import annotations

import json
from typing import Any

import httpx


class RollcallError(Exception):
    """The base of the errors that this package raises."""


class ConfigError(RollcallError):
    """A setting, an argument or a value that is missing or wrong. The message names it."""


class RunFailed(RollcallError):
    """A run ended as `failed` or `cancelled`."""

    def __init__(self, run_id: str, status: str, reason: str | None) -> None:
        super().__init__(f"{run_id}: {status}" + (f": {reason}" if reason else ""))
        self.run_id = run_id
        self.status = status


class ApiError(RollcallError):
    """The platform refused a request. docs/api.md lists the codes.

    `code` is `unreadable` if the reply did not come from Rollcall.
    """

    def __init__(
        self,
        status: int,
        code: str,
        message: str,
        *,
        param: str | None = None,
        request_id: str | None = None,
        retry_after: float | None = None,
        body: dict[str, Any] | None = None,
    ) -> None:
        super().__init__(f"{status} {code}: {message}")
        self.status = status
        self.code = code
        self.message = message
        self.param = param
        self.request_id = request_id
        self.retry_after = retry_after
        self.body = body or {}

    @classmethod
    def of(cls, reply: httpx.Response) -> ApiError:
        """The error of a reply whose body was read."""
        body = error_body(reply)
        text = reply.reason_phrase or "the reply has no error message"
        if reply.has_redirect_location:
            text = f"the address redirects; use the address it redirects to: {reply.headers['location']}"
        return cls(
            reply.status_code,
            str(body.get("code", "unreadable")),
            str(body.get("message", text)),
            param=body.get("param"),
            request_id=reply.headers.get("x-request-id"),
            retry_after=retry_after_of(reply),
            body=body,
        )


def error_body(reply: httpx.Response) -> dict[str, Any]:
    """The member `error` of a reply; empty if the reply is not one of the platform's."""
    try:
        body = json.loads(reply.content)
    except ValueError:
        return {}
    error = body.get("error") if isinstance(body, dict) else None
    return error if isinstance(error, dict) else {}


def retry_after_of(reply: httpx.Response) -> float | None:
    """The seconds of `retry-after`, or None. Dates are not used by the platform."""
    try:
        seconds = float(reply.headers.get("retry-after", ""))
    except ValueError:
        return None
    return seconds if seconds >= 0 else None
