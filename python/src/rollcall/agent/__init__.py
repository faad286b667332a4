"""Run an agent of your own on rollouts that Rollcall hands out.

from rollcall.agent import agent, serve

@agent("solver")
async def solve(rollout):
    client = openai.AsyncOpenAI(**rollout.openai_kwargs())
    reply = await client.chat.completions.create(model=rollout.model, messages=rollout.prompt)
    return {"answer": reply.choices[0].message.content}

serve(solve, max_concurrent=16)
"""

from __future__ import annotations

import asyncio
import inspect
import signal
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from ..errors import ConfigError
from ..lease import Worker
from ..rollout import UNTRAINED, Outcome, Result, Reward, Rollout, RolloutFailed, finish_of
from ..transport import AsyncTransport, Settings

__all__ = [
    "UNTRAINED",
    "Agent",
    "Outcome",
    "Result",
    "Reward",
    "Rollout",
    "RolloutFailed",
    "agent",
    "serve",
    "serve_async",
]

AgentFunction = Callable[[Rollout], Any]
"""Takes a rollout and returns an `Outcome`, or an awaitable of one."""


@dataclass(frozen=True)
class Agent:
    """A function with the name under which runs ask for it."""

    name: str
    function: AgentFunction

    def __call__(self, rollout: Rollout) -> Any:
        return self.function(rollout)


def agent(name: str) -> Callable[[AgentFunction], Agent]:
    """Names a function: `@agent("solver")`. Runs use it with `"agent": {"name": "solver"}`."""
    if not name:
        raise ConfigError("name: must not be empty")

    def named(function: AgentFunction) -> Agent:
        return Agent(name, function)

    return named


def serve(
    agent: Agent,
    *,
    base_url: str | None = None,
    api_key: str | None = None,
    project: str | None = None,
    max_concurrent: int = 8,
    worker: str | None = None,
) -> None:
    """Plays rollouts until Ctrl-C or SIGTERM; then gives the leases back. The address and the key are those of
    `ROLLCALL_URL` and `ROLLCALL_API_KEY`, unless they are passed. Raises `ApiError` if the platform refuses the key."""
    settings = Settings.of(base_url, api_key, project)
    asyncio.run(serve_async(agent, settings=settings, max_concurrent=max_concurrent, worker=worker))


async def serve_async(agent: Agent, *, settings: Settings, max_concurrent: int = 8, worker: str | None = None) -> None:
    """`serve` in a loop of the caller. Cancel it to stop, or send SIGINT or SIGTERM."""
    transport = AsyncTransport(settings)
    threads = ThreadPoolExecutor(max_concurrent, thread_name_prefix="rollout")
    loop = asyncio.get_running_loop()

    async def play(rollout: Rollout) -> dict[str, Any]:
        if inspect.iscoroutinefunction(agent.function):
            return finish_of(await agent.function(rollout))
        outcome = await _wait_for_thread(loop.run_in_executor(threads, agent.function, rollout))
        return finish_of(await outcome if inspect.isawaitable(outcome) else outcome)

    leases = Worker(transport, agent.name, play, max_concurrent=max_concurrent, name=worker)
    try:
        await run_until_signal(leases)
    finally:
        threads.shutdown(wait=False, cancel_futures=True)
        await transport.close()


async def _wait_for_thread(thread: asyncio.Future[Any]) -> Any:
    """A thread cannot be cancelled. Its slot is busy until it returns, which its refused model calls hasten."""
    try:
        return await asyncio.shield(thread)
    except asyncio.CancelledError:
        await asyncio.wait({thread})
        if not thread.cancelled():
            thread.exception()
        raise


async def run_until_signal(leases: Worker) -> None:
    """Runs a worker until SIGINT or SIGTERM stops it. A second signal does not wait for what is in progress."""
    loop = asyncio.get_running_loop()
    caught: list[signal.Signals] = []
    running = asyncio.current_task()

    def stop() -> None:
        if leases.stopping and running is not None:
            running.cancel()
        leases.stop()

    if threading.current_thread() is threading.main_thread():
        for number in (signal.SIGINT, signal.SIGTERM):
            try:
                loop.add_signal_handler(number, stop)
                caught.append(number)
            except NotImplementedError:
                break  # Windows: Ctrl-C raises KeyboardInterrupt, which cancels this task.
    try:
        await leases.run()
    finally:
        for number in caught:
            loop.remove_signal_handler(number)
