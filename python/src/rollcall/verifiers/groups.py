"""Collects the rollouts of a group, for environments whose rubric compares them."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..rollout import Rollout, failure

PlayGroup = Callable[[Sequence[Rollout]], Awaitable[list[dict[str, Any]]]]

WAIT_S = 300.0
"""Seconds that a member waits for the others. A retry of one member alone can never be scored with them."""


@dataclass
class Gathering:
    members: dict[int, tuple[Rollout, asyncio.Future[dict[str, Any]]]] = field(default_factory=dict)
    task: asyncio.Task[None] | None = None


class Groups:
    """Plays a group in one call when all `size_of` members are leased. `at_once` groups are played at the same time."""

    def __init__(
        self, play: PlayGroup, size_of: Callable[[str], Awaitable[int]], at_once: int, wait_s: float = WAIT_S
    ) -> None:
        self._play = play
        self._size_of = size_of
        self._at_once = asyncio.Semaphore(at_once)
        self._wait_s = wait_s
        self._open: dict[tuple[str, int], Gathering] = {}

    async def play(self, rollout: Rollout) -> dict[str, Any]:
        size = await self._size_of(rollout.run_id)
        key = (rollout.run_id, rollout.group)
        gathering = self._open.setdefault(key, Gathering())
        result: asyncio.Future[dict[str, Any]] = asyncio.get_running_loop().create_future()
        gathering.members[rollout.slot] = (rollout, result)
        if len(gathering.members) == size:
            del self._open[key]
            gathering.task = asyncio.create_task(self._run(list(gathering.members.values())))
        try:
            done, _ = await asyncio.wait({result}, timeout=None if gathering.task else self._wait_s)
            if not done and gathering.task is None:
                held = len(gathering.members)
                message = f"group {rollout.group} has {size} members, and only {held} were leased together"
                return failure("infrastructure", "IncompleteGroup", message)
            return await result
        finally:
            self._leave(key, gathering, rollout.slot, result)

    def _leave(self, key: tuple[str, int], gathering: Gathering, slot: int, result: asyncio.Future[Any]) -> None:
        """A member that is gone takes no result. A group without members stops."""
        result.cancel()
        if gathering.members.get(slot, (None, None))[1] is result:
            del gathering.members[slot]
        if gathering.members:
            return
        if gathering.task is not None:
            gathering.task.cancel()
        if self._open.get(key) is gathering:
            del self._open[key]

    async def _run(self, members: Sequence[tuple[Rollout, asyncio.Future[dict[str, Any]]]]) -> None:
        try:
            async with self._at_once:
                bodies = await self._play([rollout for rollout, _ in members])
        except Exception as error:
            bodies = [failure("environment", type(error).__name__, str(error)) for _ in members]
        for (_, result), body in zip(members, bodies, strict=True):
            if not result.done():
                result.set_result(body)
