"""A model address on this machine for all rollouts: forwards each call to the address of its rollout.

verifiers keeps one client for each base URL until it ends, so a URL for each rollout would pile up clients. Its
interception server sends the id of the trace in `X-Session-ID`, by which this router finds the rollout.
"""

from __future__ import annotations

import secrets

import aiohttp
from aiohttp import web

from ..rollout import UNTRAINED, Rollout

SESSION = "X-Session-ID"
MAX_BODY = 1 << 30
"""Bytes of a request: the interception server's own limit. The platform has a lower one."""
CONNECT_S = 30.0
NOT_FORWARDED = frozenset(
    {"authorization", "x-api-key", "host", "connection", "content-length", "transfer-encoding", "accept-encoding",
     "keep-alive", "te", "trailer", "upgrade", "expect"}
)  # fmt: skip
FROM_REPLY = ("content-type", "retry-after", "x-should-retry", "x-request-id", "request-id")


class Router:
    """`async with Router() as router:` listens on `router.base_url`, with `router.key` as its key."""

    def __init__(self) -> None:
        self.key = secrets.token_urlsafe(24)
        self.base_url = ""
        self._rollouts: dict[str, tuple[Rollout, bool]] = {}

    def register(self, session: str, rollout: Rollout, *, trained: bool = True) -> None:
        """`trained`: whether the session's calls are those of the policy, and may be trained on."""
        self._rollouts[session] = rollout, trained

    def unregister(self, session: str) -> None:
        self._rollouts.pop(session, None)

    async def __aenter__(self) -> Router:
        timeout = aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_S)
        self._http = aiohttp.ClientSession(timeout=timeout, connector=aiohttp.TCPConnector(limit=0))
        app = web.Application(client_max_size=MAX_BODY)
        app.router.add_route("*", "/v1/{rest:.*}", self._forward)
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=1.0)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", 0).start()
        self.base_url = f"http://127.0.0.1:{self._runner.addresses[0][1]}/v1"
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._runner.cleanup()
        await self._http.close()

    async def _forward(self, request: web.Request) -> web.StreamResponse:
        given = request.headers.get("authorization", "").removeprefix("Bearer ") or request.headers.get("x-api-key", "")
        found = self._rollouts.get(request.headers.get(SESSION, ""))
        if not secrets.compare_digest(given, self.key) or found is None:
            message = f"{SESSION}: is not a rollout that is being played here"
            return web.json_response({"error": {"code": "unauthorized", "message": message}}, status=401)
        rollout, trained = found
        rest = request.match_info["rest"]
        base = f"{rollout.anthropic_base_url}/v1" if rest.startswith("messages") else rollout.base_url
        headers = {name: value for name, value in request.headers.items() if name.lower() not in NOT_FORWARDED}
        headers["authorization"] = f"Bearer {rollout.key}"
        headers["accept-encoding"] = "identity"
        if not trained:
            headers.update(UNTRAINED)
        body = await request.read()
        try:
            async with self._http.request(
                request.method, f"{base}/{rest}", params=request.query, headers=headers, data=body or None
            ) as answer:
                return await self._pass_on(request, answer)
        except aiohttp.ClientError as error:
            message = f"the platform cannot be reached: {error or type(error).__name__}"
            return web.json_response({"error": {"code": "unavailable", "message": message}}, status=503)

    async def _pass_on(self, request: web.Request, answer: aiohttp.ClientResponse) -> web.StreamResponse:
        """Sends the answer on while it arrives. If it breaks off, the connection breaks off too."""
        reply = web.StreamResponse(status=answer.status)
        for name in FROM_REPLY:
            if name in answer.headers:
                reply.headers[name] = answer.headers[name]
        await reply.prepare(request)
        try:
            async for chunk in answer.content.iter_any():
                await reply.write(chunk)
        except aiohttp.ClientError:
            if request.transport is not None:
                request.transport.abort()
            raise web.HTTPBadGateway from None
        await reply.write_eof()
        return reply
