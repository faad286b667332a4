"""The address on this machine that forwards each model call to that of its rollout."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import httpx
from aiohttp import web
from test_groups import rollout_of

from rollcall.verifiers.router import SESSION, Router


def test_a_stream_passes_through_piece_by_piece_with_the_key_of_its_rollout() -> None:
    async def run() -> None:
        seen: list[dict[str, str]] = []
        read_first = asyncio.Event()

        async def upstream(request: web.Request) -> web.StreamResponse:
            seen.append({name.lower(): value for name, value in request.headers.items()})
            reply = web.StreamResponse(headers={"content-type": "text/event-stream"})
            await reply.prepare(request)
            await reply.write(b"data: 1\n\n")
            await read_first.wait()
            await reply.write(b"data: [DONE]\n\n")
            return reply

        app = web.Application()
        app.router.add_post("/model/v1/chat/completions", upstream)
        runner = web.AppRunner(app)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        address = f"http://127.0.0.1:{runner.addresses[0][1]}/model/v1"
        async with Router() as router, httpx.AsyncClient() as http:
            router.register("one", replace(rollout_of(0, 0), base_url=address, key="own key"))
            headers = {SESSION: "one", "authorization": f"Bearer {router.key}", "x-stainless-retry-count": "1"}
            url = f"{router.base_url}/chat/completions"
            async with http.stream("POST", url, json={}, headers=headers) as reply:
                pieces = []
                async for piece in reply.aiter_text():
                    pieces.append(piece)
                    read_first.set()
            assert pieces == ["data: 1\n\n", "data: [DONE]\n\n"]
            assert reply.headers["content-type"] == "text/event-stream"
            assert seen[0]["authorization"] == "Bearer own key"
            assert (seen[0]["x-session-id"], seen[0]["x-stainless-retry-count"]) == ("one", "1")
            assert "x-rollcall-train" not in seen[0]

            wrong = await http.post(url, json={}, headers={**headers, "authorization": "Bearer guessed"})
            router.unregister("one")
            unknown = await http.post(url, json={}, headers=headers)
            assert (wrong.status_code, unknown.status_code) == (401, 401)
        await runner.cleanup()
        assert len(seen) == 1

    asyncio.run(run())


def test_an_error_that_the_platform_compresses_is_readable_text() -> None:
    async def run() -> None:
        async def upstream(request: web.Request) -> web.Response:
            assert request.headers["accept-encoding"] == "identity"
            reply = web.json_response({"error": {"message": "the prompt is too long"}}, status=400)
            reply.enable_compression(web.ContentCoding.gzip)
            return reply

        app = web.Application()
        app.router.add_post("/model/v1/chat/completions", upstream)
        runner = web.AppRunner(app)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        async with Router() as router, httpx.AsyncClient() as http:
            address = f"http://127.0.0.1:{runner.addresses[0][1]}/model/v1"
            router.register("one", replace(rollout_of(0, 0), base_url=address))
            headers = {SESSION: "one", "authorization": f"Bearer {router.key}"}
            reply = await http.post(f"{router.base_url}/chat/completions", json={}, headers=headers)
            assert (reply.status_code, reply.json()) == (400, {"error": {"message": "the prompt is too long"}})
        await runner.cleanup()

    asyncio.run(run())


def test_a_platform_that_is_away_is_503_which_the_harness_tries_again() -> None:
    async def run() -> None:
        async with Router() as router, httpx.AsyncClient() as http:
            router.register("one", replace(rollout_of(0, 0), base_url="http://127.0.0.1:9/v1"))
            headers = {SESSION: "one", "authorization": f"Bearer {router.key}"}
            reply = await http.post(f"{router.base_url}/chat/completions", json={}, headers=headers)
            assert reply.status_code == 503
            assert "the platform cannot be reached" in reply.json()["error"]["message"]

    asyncio.run(run())
