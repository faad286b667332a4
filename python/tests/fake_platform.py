"""A small platform in this process: the routes that workers and clients use, and a model that follows a script.

It fakes only the other side of the wire.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web

KEY = "rk_test"
Script = Callable[[dict[str, Any]], Any]
"""From the body of a chat completion to a text, an assistant message, or a tuple of status and error text."""


def echo(body: dict[str, Any]) -> Any:
    """The last user message, as a text."""
    for message in reversed(body["messages"]):
        if message["role"] == "user":
            content = message["content"]
            return content if isinstance(content, str) else "".join(part.get("text", "") for part in content)
    return ""


@dataclass
class FakeRollout:
    rollout_id: str
    run_id: str
    group: int
    slot: int
    task: dict[str, Any]
    attempt: int = 0
    lease: int = 0
    worker: str | None = None
    expires_at: float = 0.0
    leases: list[str] = field(default_factory=list)
    finish: dict[str, Any] | None = None
    cancelled: bool = False
    calls: list[dict[str, Any]] = field(default_factory=list)
    untrained: list[bool] = field(default_factory=list)
    """For each call whether `X-Rollcall-Train: false` came with it."""

    @property
    def key(self) -> str:
        return f"rk_{self.rollout_id}_{self.lease}"

    @property
    def over(self) -> bool:
        return self.finish is not None or self.cancelled

    def row(self) -> dict[str, Any]:
        body = self.finish or {}
        rewards = {name: _score(value) for name, value in (body.get("rewards") or {}).items()}
        error = body.get("error")
        unscored = not rewards or any(score is None for score, _ in rewards.values())
        outcome = "cancelled" if self.cancelled else "failed" if error else "unscored" if unscored else "scored"
        return {
            "rollout_id": self.rollout_id,
            "example_id": self.group,
            "group": self.group,
            "slot": self.slot,
            "attempt": self.attempt,
            "superseded_by": None,
            "outcome": outcome,
            "reward": sum(score * weight for score, weight in rewards.values()) if outcome == "scored" else None,
            "metrics": {**{name: score for name, (score, _) in rewards.items()}, **(body.get("metrics") or {})},
            "error": error,
            "answer": body.get("answer"),
            "stop_condition": body.get("stop_condition"),
            "is_truncated": body.get("is_truncated", False),
            "state": body.get("state"),
        }


def _score(value: Any) -> tuple[float | None, float]:
    return (value["score"], value["weight"]) if isinstance(value, dict) else (value, 1.0)


class FakePlatform:
    """`with FakePlatform(script) as platform:` serves on `platform.url` until the block ends."""

    def __init__(self, script: Script = echo, *, lease_s: float = 30.0) -> None:
        self.script = script
        self.lease_s = lease_s
        self.rollouts: dict[str, FakeRollout] = {}
        self.runs: dict[str, dict[str, Any]] = {}
        self.datasets: dict[str, list[dict[str, Any]]] = {}
        self.heartbeats: list[dict[str, Any]] = []
        self.released: list[dict[str, Any]] = []
        self.refused_finishes: list[tuple[str, int]] = []
        self.requests: list[tuple[str, str]] = []
        self.sessions: list[str | None] = []
        self.cancels = True
        """False: a cancelled run continues, as one whose rollouts are slow to end."""
        self.fail_next: list[tuple[str, int, dict[str, str]]] = []
        """Requests to refuse once: (a part of the path, status, headers)."""
        self.changed = threading.Condition()
        self._exited: int | None = None
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)

    def __enter__(self) -> FakePlatform:
        self._thread.start()
        self.url = asyncio.run_coroutine_threadsafe(self._start(), self._loop).result()
        return self

    def __exit__(self, *_: object) -> None:
        asyncio.run_coroutine_threadsafe(self._end(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    async def _end(self) -> None:
        """Ends what is still answered, such as leases that wait, before the loop is closed."""
        await self._runner.cleanup()
        rest = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
        for task in rest:
            task.cancel()
        await asyncio.gather(*rest, return_exceptions=True)

    async def _start(self) -> str:
        app = web.Application(client_max_size=64 << 20, middlewares=[self._guard])
        app.router.add_post("/v1/runs", self._create_run)
        app.router.add_get("/v1/runs", self._list_runs)
        app.router.add_get("/v1/runs/{run}", self._get_run)
        app.router.add_post("/v1/runs/{run}/cancel", self._cancel_run)
        app.router.add_get("/v1/runs/{run}/results", self._results)
        app.router.add_get("/v1/runs/{run}/events", self._events)
        app.router.add_post("/v1/datasets", self._create_dataset)
        app.router.add_post("/v1/agents/{agent}/lease", self._lease)
        app.router.add_post("/v1/agents/{agent}/heartbeat", self._heartbeat)
        app.router.add_post("/v1/agents/{agent}/release", self._release)
        app.router.add_post("/v1/rollouts/{rollout}/finish", self._finish)
        app.router.add_get("/model/{rollout}/v1/models", self._models)
        app.router.add_post("/model/{rollout}/v1/chat/completions", self._chat)
        app.router.add_post("/direct/v1/chat/completions", self._direct_chat)
        self._waiting = asyncio.Condition()
        self._runner = web.AppRunner(app, shutdown_timeout=0.1)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0)
        await site.start()
        return f"http://127.0.0.1:{self._runner.addresses[0][1]}"

    @web.middleware
    async def _guard(self, request: web.Request, handler: Any) -> web.StreamResponse:
        self.requests.append((request.method, request.path))
        for failing in self.fail_next:
            if failing[0] in request.path:
                self.fail_next.remove(failing)
                return _error(failing[1], "unavailable", "try again", headers=failing[2])
        open_to_all = not request.path.startswith("/v1/") or request.path.endswith("/finish")
        if not open_to_all and request.headers.get("authorization") != f"Bearer {KEY}":
            return _error(401, "unauthorized", "the key is unknown")
        reply = await handler(request)
        with self.changed:
            self.changed.notify_all()
        return reply

    def wait_until(self, condition: Callable[[], bool]) -> None:
        """Blocks until a request has made `condition` true. Raises if a process that is watched has ended."""
        with self.changed:
            self.changed.wait_for(lambda: condition() or self._exited is not None)
            if not condition():
                raise AssertionError(f"the process ended with {self._exited}")

    @contextmanager
    def watching(self, process: subprocess.Popen[Any]) -> Iterator[None]:
        """While the block runs, `wait_until` also ends when the process does."""

        def wait() -> None:
            code = process.wait()
            with self.changed:
                self._exited = code
                self.changed.notify_all()

        self._exited = None
        threading.Thread(target=wait, daemon=True).start()
        yield

    def of_run(self, run_id: str) -> list[FakeRollout]:
        return [each for each in self.rollouts.values() if each.run_id == run_id]

    def expire(self, rollout_id: str) -> None:
        """Ends the lease of a rollout as if its time had passed."""
        self.rollouts[rollout_id].expires_at = 0.0
        asyncio.run_coroutine_threadsafe(self._notify(), self._loop).result()

    async def _notify(self) -> None:
        async with self._waiting:
            self._waiting.notify_all()

    # Runs

    async def _create_run(self, request: web.Request) -> web.Response:
        body = await request.json()
        for required in ("environment", "model", "endpoint", "agent", "dataset"):
            if required not in body:
                return _error(400, "invalid_request", f"{required}: is required", param=required)
        rows = body["dataset"] if isinstance(body["dataset"], list) else self.datasets[body["dataset"]]
        most = body.get("num_examples", -1)
        rows = rows if most == -1 else rows[:most]
        run_id = f"run_{len(self.runs)}"
        self.runs[run_id] = {**body, "cancelled": False}
        for group, row in enumerate(rows):
            for slot in range(body.get("rollouts_per_example", 1)):
                rollout_id = f"ro_{len(self.rollouts)}"
                self.rollouts[rollout_id] = FakeRollout(rollout_id, run_id, group, slot, row)
        await self._notify()
        return web.json_response(self._view(run_id), status=202)

    def _view(self, run_id: str) -> dict[str, Any]:
        rollouts = self.of_run(run_id)
        rows = [each.row() for each in rollouts if each.over]
        scored = [row["reward"] for row in rows if row["outcome"] == "scored"]
        flying = sum(1 for each in rollouts if each.lease > 0 and not each.over)
        done = len(rows) == len(rollouts)
        status = "cancelled" if self.runs[run_id]["cancelled"] else "completed" if done else "running"
        names = sorted({name for row in rows for name in row["metrics"]})
        metrics = {}
        for name in names:
            values = [row["metrics"][name] for row in rows if row["metrics"].get(name) is not None]
            metrics[name] = {"mean": sum(values) / len(values) if values else None, "se": None, "n": len(values)}
        return {
            "object": "run",
            "id": run_id,
            "kind": "eval",
            "name": self.runs[run_id].get("name"),
            "status": status,
            "error": None,
            "status_reason": None if done else {"state": "active", "reason": "dispatching"},
            "environment": self.runs[run_id]["environment"],
            "model": self.runs[run_id]["model"],
            "rollouts_per_example": self.runs[run_id].get("rollouts_per_example", 1),
            "counts": {
                "planned": len(rollouts),
                "pending": len(rollouts) - flying - len(rows),
                "dispatched": flying + len(rows),
                "in_flight": flying,
                "scored": len(scored),
                "unscored": _count(rows, "unscored"),
                "failed": _count(rows, "failed"),
                "cancelled": _count(rows, "cancelled"),
            },
            "report": {
                "reward": {
                    "mean": sum(scored) / len(scored) if scored else None,
                    "se": None,
                    "ci95": None,
                    "n_rollouts": len(scored),
                },
                "metrics": metrics,
                "stop_conditions": {},
                "turns": sum(len(each.calls) for each in rollouts),
            },
            "last_event": 0,
        }

    async def _list_runs(self, request: web.Request) -> web.Response:
        ids = sorted(self.runs, reverse=True)
        after = request.query.get("after")
        ids = ids[ids.index(after) + 1 :] if after else ids
        page = ids[: int(request.query.get("limit", "20"))]
        data = [self._view(each) for each in page]
        last = page[-1] if page else None
        return web.json_response({"object": "list", "data": data, "last_id": last, "has_more": len(ids) > len(page)})

    async def _get_run(self, request: web.Request) -> web.Response:
        run_id = request.match_info["run"]
        if run_id not in self.runs:
            return _error(404, "not_found", f"no run {run_id}", param="id")
        return web.json_response(self._view(run_id))

    async def _cancel_run(self, request: web.Request) -> web.Response:
        run_id = request.match_info["run"]
        self.runs[run_id]["cancelled"] = self.cancels
        for each in self.of_run(run_id) if self.cancels else ():
            each.cancelled = each.cancelled or each.finish is None
        await self._notify()
        return web.json_response(self._view(run_id))

    async def _results(self, request: web.Request) -> web.Response:
        run_id = request.match_info["run"]
        rows = [each.row() for each in self.of_run(run_id) if each.over]
        after, limit = int(request.query.get("after", "0")), int(request.query.get("limit", "100"))
        outcome = request.query.get("outcome")
        rows = [row for row in rows if outcome is None or row["outcome"] == outcome]
        text = "".join(json.dumps(row) + "\n" for row in rows[after : after + limit])
        reply = web.Response(text=text, content_type="application/jsonl")
        if len(rows) > after + limit:
            reply.headers["link"] = f'</v1/runs/{run_id}/results?after={after + limit}&limit={limit}>; rel="next"'
        return reply

    async def _events(self, request: web.Request) -> web.StreamResponse:
        after = int(request.query.get("after", "0"))
        rows = [each.row() for each in self.of_run(request.match_info["run"]) if each.over]
        events = [("rollout.finished", {"rollout_id": row["rollout_id"], "reward": row["reward"]}) for row in rows]
        events.append(("run.completed", {"status": "completed", "error": None}))
        reply = web.StreamResponse(headers={"content-type": "text/event-stream"})
        await reply.prepare(request)
        for number, (name, data) in enumerate(events, start=1):
            if number <= after:
                continue
            await reply.write(f"id: {number}\nevent: {name}\ndata: {json.dumps(data)}\n\n".encode())
            if number == 1 and after == 0:
                await reply.write(b": keep-alive\n\nretry: 1\n\n")
                return reply  # The connection breaks off after the first event.
        return reply

    async def _create_dataset(self, request: web.Request) -> web.Response:
        rows = [json.loads(line) for line in (await request.text()).splitlines() if line.strip()]
        dataset_id = f"ds_{len(self.datasets)}"
        self.datasets[dataset_id] = rows
        return web.json_response({"object": "dataset", "id": dataset_id, "rows": len(rows)}, status=201)

    # Agents

    def _open(self, agent: str) -> list[FakeRollout]:
        now = time.time()
        return [
            each
            for each in self.rollouts.values()
            if not each.over and each.expires_at <= now and self.runs[each.run_id]["agent"]["name"] == agent
        ]

    async def _lease(self, request: web.Request) -> web.Response:
        body = await request.json()
        agent = request.match_info["agent"]
        ends = time.monotonic() + body["wait_s"]
        async with self._waiting:
            while not self._open(agent) and time.monotonic() < ends:
                try:
                    await asyncio.wait_for(self._waiting.wait(), ends - time.monotonic())
                except TimeoutError:
                    break
        taken = self._open(agent)[: body["max"]]
        return web.json_response({"rollouts": [self._hand_out(each, body["worker"]) for each in taken]})

    def _hand_out(self, rollout: FakeRollout, worker: str) -> dict[str, Any]:
        run = self.runs[rollout.run_id]
        rollout.lease += 1
        rollout.worker = worker
        rollout.leases.append(worker)
        rollout.expires_at = time.time() + run["agent"].get("lease_s", self.lease_s)
        prompt = rollout.task.get("prompt")
        return {
            "rollout_id": rollout.rollout_id,
            "run_id": rollout.run_id,
            "lease": rollout.lease,
            "group": rollout.group,
            "slot": rollout.slot,
            "attempt": rollout.attempt,
            "example_id": rollout.group,
            "task": rollout.task,
            "prompt": [{"role": "user", "content": prompt}] if isinstance(prompt, str) else prompt or [],
            "model": run["model"],
            "base_url": f"{self.url}/model/{rollout.rollout_id}/v1",
            "anthropic_base_url": f"{self.url}/model/{rollout.rollout_id}",
            "key": rollout.key,
            "lease_s": run["agent"].get("lease_s", self.lease_s),
            "expires_at": int(rollout.expires_at * 1000),
            "deadline": run["agent"].get("deadline"),
        }

    async def _heartbeat(self, request: web.Request) -> web.Response:
        body = await request.json()
        self.heartbeats.append(body)
        data = []
        for lease in body["leases"]:
            rollout = self.rollouts[lease["rollout_id"]]
            held = rollout.lease == lease["lease"] and rollout.expires_at > time.time()
            state = "ended" if rollout.over else "held" if held else "lost"
            if state == "held":
                rollout.expires_at = time.time() + self.runs[rollout.run_id]["agent"].get("lease_s", self.lease_s)
            data.append({**lease, "state": state, "expires_at": int(rollout.expires_at * 1000)})
        return web.json_response({"data": data})

    async def _release(self, request: web.Request) -> web.Response:
        body = await request.json()
        self.released.append(body)
        for lease in body["leases"]:
            rollout = self.rollouts[lease["rollout_id"]]
            if rollout.lease == lease["lease"]:
                rollout.expires_at = 0.0
        await self._notify()
        return web.json_response({"data": [{**lease, "state": "lost", "expires_at": None} for lease in body["leases"]]})

    async def _finish(self, request: web.Request) -> web.Response:
        rollout = self.rollouts[request.match_info["rollout"]]
        body = await request.json()
        answer = {"rollout_id": rollout.rollout_id, "state": "ended"}
        if rollout.finish is not None and body == rollout.finish:
            return web.json_response(answer)
        if rollout.over or request.headers.get("authorization") != f"Bearer {rollout.key}":
            self.refused_finishes.append((rollout.rollout_id, rollout.lease))
            return _error(409, "conflict", "the lease was lost or the rollout has ended")
        rollout.finish = body
        return web.json_response(answer)

    # The model

    async def _models(self, request: web.Request) -> web.Response:
        card = {"id": "scripted", "object": "model", "max_model_len": 131_072}
        return web.json_response({"object": "list", "data": [card]})

    async def _chat(self, request: web.Request) -> web.StreamResponse:
        rollout = self.rollouts[request.match_info["rollout"]]
        if request.headers.get("authorization") != f"Bearer {rollout.key}":
            return _error(401, "unauthorized", "the key is not that of the rollout's lease")
        if rollout.over:
            return _error(410, "run_finished", "the rollout has ended")
        body = await request.json()
        rollout.calls.append(body)
        rollout.untrained.append(request.headers.get("x-rollcall-train") == "false")
        self.sessions.append(request.headers.get("x-session-id"))
        return await self._answer(request, body)

    async def _direct_chat(self, request: web.Request) -> web.StreamResponse:
        return await self._answer(request, await request.json())

    async def _answer(self, request: web.Request, body: dict[str, Any]) -> web.StreamResponse:
        scripted = self.script(body)
        if asyncio.iscoroutine(scripted):
            scripted = await scripted
        if isinstance(scripted, tuple):
            return _error(scripted[0], "scripted", scripted[1])
        message = scripted if isinstance(scripted, dict) else {"role": "assistant", "content": scripted}
        message = {"role": "assistant", "content": None, **message}
        finish = "tool_calls" if message.get("tool_calls") else "stop"
        usage = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}
        base = {"id": "cmpl", "created": 1, "model": body["model"]}
        if not body.get("stream"):
            choice = {"index": 0, "message": message, "finish_reason": finish}
            return web.json_response({**base, "object": "chat.completion", "choices": [choice], "usage": usage})
        reply = web.StreamResponse(headers={"content-type": "text/event-stream"})
        await reply.prepare(request)
        for delta, reason in [*_deltas(message), ({}, finish)]:
            choice = {"index": 0, "delta": delta, "finish_reason": reason}
            await _event(reply, {**base, "object": "chat.completion.chunk", "choices": [choice]})
        if (body.get("stream_options") or {}).get("include_usage"):
            await _event(reply, {**base, "object": "chat.completion.chunk", "choices": [], "usage": usage})
        await reply.write(b"data: [DONE]\n\n")
        return reply


def _deltas(message: dict[str, Any]) -> list[tuple[dict[str, Any], None]]:
    """A message as a server sends it: the role, the text in two pieces, each tool call in two."""
    text = message["content"] or ""
    deltas: list[dict[str, Any]] = [{"role": "assistant", "content": ""}]
    deltas += [{"content": piece} for piece in (text[: len(text) // 2], text[len(text) // 2 :]) if piece]
    for index, call in enumerate(message.get("tool_calls") or []):
        name, arguments = call["function"]["name"], call["function"]["arguments"]
        deltas.append({"tool_calls": [{**call, "index": index, "function": {"name": name, "arguments": ""}}]})
        deltas.append({"tool_calls": [{"index": index, "function": {"arguments": arguments}}]})
    return [(delta, None) for delta in deltas]


async def _event(reply: web.StreamResponse, data: dict[str, Any]) -> None:
    await reply.write(f"data: {json.dumps(data)}\n\n".encode())


def _count(rows: list[dict[str, Any]], outcome: str) -> dict[str, int]:
    count = sum(1 for row in rows if row["outcome"] == outcome)
    return {"scorer": count} if count else {}


def _error(
    status: int, code: str, message: str, *, param: str | None = None, headers: dict[str, str] | None = None
) -> web.Response:
    error = {"code": code, "message": message, "param": param, "type": "invalid_request_error"}
    return web.json_response({"error": error}, status=status, headers=headers)
