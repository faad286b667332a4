"""Groups whose members are scored together."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from rollcall.rollout import Rollout
from rollcall.verifiers.groups import Groups


def rollout_of(group: int, slot: int) -> Rollout:
    wire: dict[str, Any] = {"rollout_id": f"ro_{group}_{slot}", "run_id": "run_0", "lease": 1, "attempt": 0}
    wire |= {"group": group, "slot": slot, "example_id": group, "task": {}, "prompt": [], "model": "m", "key": "k"}
    wire |= {"base_url": "http://p/v1", "anthropic_base_url": "http://p", "lease_s": 60, "expires_at": 0}
    return Rollout.of(wire)


async def size_of(run_id: str) -> int:
    return 2


def test_a_group_is_played_in_one_call_when_all_its_members_are_there() -> None:
    calls: list[list[str]] = []

    async def play(rollouts: Sequence[Rollout]) -> list[dict[str, Any]]:
        calls.append([rollout.rollout_id for rollout in rollouts])
        return [{"answer": rollout.rollout_id} for rollout in rollouts]

    async def run() -> list[dict[str, Any]]:
        groups = Groups(play, size_of, at_once=4)
        members = [rollout_of(group, slot) for slot in range(2) for group in range(2)]
        return await asyncio.gather(*(groups.play(member) for member in members))

    bodies = asyncio.run(run())
    assert calls == [["ro_0_0", "ro_0_1"], ["ro_1_0", "ro_1_1"]]
    assert [body["answer"] for body in bodies] == ["ro_0_0", "ro_1_0", "ro_0_1", "ro_1_1"]


def test_a_member_without_the_others_fails_and_says_how_many_were_there() -> None:
    async def play(rollouts: Sequence[Rollout]) -> list[dict[str, Any]]:
        raise AssertionError("a part of a group was played")

    body = asyncio.run(Groups(play, size_of, at_once=1, wait_s=0).play(rollout_of(7, 0)))
    assert body["error"] == {
        "kind": "infrastructure",
        "error": "IncompleteGroup",
        "message": "group 7 has 2 members, and only 1 were leased together",
    }


def test_a_member_that_is_cancelled_leaves_the_others_and_the_last_one_stops_the_group() -> None:
    stopped = []

    async def run() -> None:
        started, finish = asyncio.Event(), asyncio.Event()

        async def play(rollouts: Sequence[Rollout]) -> list[dict[str, Any]]:
            started.set()
            try:
                await finish.wait()
            except asyncio.CancelledError:
                stopped.append(rollouts[0].group)
                raise
            return [{"answer": rollout.rollout_id} for rollout in rollouts]

        groups = Groups(play, size_of, at_once=4)
        first, second = (asyncio.create_task(groups.play(rollout_of(0, slot))) for slot in range(2))
        await started.wait()
        first.cancel()
        await asyncio.wait({first})
        finish.set()
        assert await second == {"answer": "ro_0_1"}

        started.clear()
        finish.clear()
        both = [asyncio.create_task(groups.play(rollout_of(1, slot))) for slot in range(2)]
        await started.wait()
        for task in both:
            task.cancel()
        await asyncio.wait(both)
        await asyncio.sleep(0)

    asyncio.run(run())
    assert stopped == [1]
