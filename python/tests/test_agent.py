"""What a worker of an agent does: leases, heartbeats, results, failures, the end."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from fake_platform import KEY, FakePlatform

from rollcall.agent import Agent, Result, Reward, Rollout, RolloutFailed, agent
from rollcall.errors import ApiError
from rollcall.lease import Worker
from rollcall.rollout import finish_of
from rollcall.transport import AsyncTransport, Settings

ROWS = [{"prompt": f"say {number}"} for number in range(3)]


def start_run(platform: FakePlatform, rows: list[dict[str, Any]] = ROWS, **fields: Any) -> str:
    body = {"environment": "agent", "dataset": rows, "model": "scripted", "endpoint": "e", "agent": {"name": "solver"}}
    reply = httpx.post(f"{platform.url}/v1/runs", json={**body, **fields}, headers={"authorization": f"Bearer {KEY}"})
    return str(reply.raise_for_status().json()["id"])


@contextmanager
def serving(platform: FakePlatform, function: Callable[[Rollout], Any], **options: Any) -> Iterator[Worker]:
    """A worker in a thread of its own, stopped at the end of the block."""
    from rollcall.agent import serve_async

    made: list[Worker] = []
    failed: list[BaseException] = []
    ready = threading.Event()

    class Seen(Worker):
        def __init__(self, *arguments: Any, **named: Any) -> None:
            super().__init__(*arguments, **named)
            made.append(self)
            loops.append(asyncio.get_running_loop())
            ready.set()

    loops: list[asyncio.AbstractEventLoop] = []

    def run() -> None:
        try:
            asyncio.run(serve_async(Agent("solver", function), settings=Settings.of(platform.url, KEY), **options))
        except BaseException as error:
            failed.append(error)

    import rollcall.agent as module

    module.Worker = Seen  # type: ignore[misc]
    thread = threading.Thread(target=run)
    try:
        thread.start()
        ready.wait()
        yield made[0]
    finally:
        module.Worker = Worker  # type: ignore[misc]
        if not loops[0].is_closed():
            loops[0].call_soon_threadsafe(made[0].stop)
        thread.join()
    if failed:
        raise failed[0]


def all_over(platform: FakePlatform) -> bool:
    return bool(platform.rollouts) and all(each.over for each in platform.rollouts.values())


async def call_model(rollout: Rollout) -> str:
    async with httpx.AsyncClient() as http:
        reply = await http.post(
            f"{rollout.base_url}/chat/completions",
            json={"model": rollout.model, "messages": list(rollout.prompt)},
            headers={"authorization": f"Bearer {rollout.key}"},
        )
        return str(reply.raise_for_status().json()["choices"][0]["message"]["content"])


def test_every_rollout_of_a_run_is_played_once_and_its_result_arrives() -> None:
    async def solve(rollout: Rollout) -> Result:
        text = await call_model(rollout)
        return Result(answer=text, rewards={"right": 1.0, "brief": Reward(0.5, 0.2)}, metrics={"length": len(text)})

    with FakePlatform() as platform:
        run_id = start_run(platform, rollouts_per_example=2)
        with serving(platform, solve, max_concurrent=4):
            platform.wait_until(lambda: all_over(platform))
        rows = [each.row() for each in platform.of_run(run_id)]
        assert [row["answer"] for row in rows] == ["say 0", "say 0", "say 1", "say 1", "say 2", "say 2"]
        assert {row["reward"] for row in rows} == {1.1}
        assert {len(each.leases) for each in platform.of_run(run_id)} == {1}


@pytest.mark.parametrize(
    ("returned", "outcome", "reward"),
    [(0.25, "scored", 0.25), (True, "scored", 1.0), ({"rewards": {"a": 2}}, "scored", 2.0), (None, "unscored", None),
     ({"rewards": {"a": None}}, "unscored", None), (float("nan"), "unscored", None)],
)  # fmt: skip
def test_a_plain_function_may_return_a_number_a_dict_or_nothing(returned: Any, outcome: str, reward: Any) -> None:
    with FakePlatform() as platform:
        start_run(platform, ROWS[:1])
        with serving(platform, lambda rollout: returned):
            platform.wait_until(lambda: all_over(platform))
        row = platform.rollouts["ro_0"].row()
        assert (row["outcome"], row["reward"]) == (outcome, reward)


def test_an_exception_fails_its_rollout_with_a_kind_and_the_others_go_on() -> None:
    async def solve(rollout: Rollout) -> float:
        if rollout.group == 0:
            raise ZeroDivisionError("nothing to divide by")
        if rollout.group == 1:
            raise RolloutFailed("the browser is gone", kind="tool")
        return 1.0

    with FakePlatform() as platform:
        start_run(platform)
        with serving(platform, solve):
            platform.wait_until(lambda: all_over(platform))
        errors = [each.row()["error"] for each in platform.rollouts.values()]
        assert errors[0] == {"kind": "agent", "error": "ZeroDivisionError", "message": "nothing to divide by"}
        assert errors[1] == {"kind": "tool", "error": "RolloutFailed", "message": "the browser is gone"}
        assert errors[2] is None


def test_a_result_with_an_unknown_field_fails_its_rollout_and_names_the_field() -> None:
    with FakePlatform() as platform:
        start_run(platform, ROWS[:1])
        with serving(platform, lambda rollout: {"reward": 1.0}):
            platform.wait_until(lambda: all_over(platform))
        assert "unknown field 'reward'" in platform.rollouts["ro_0"].row()["error"]["message"]


def test_a_state_that_is_not_json_fails_its_rollout() -> None:
    with FakePlatform() as platform:
        start_run(platform, ROWS[:1])
        with serving(platform, lambda rollout: Result(state={"when": object()})):
            platform.wait_until(lambda: all_over(platform))
        assert platform.rollouts["ro_0"].row()["error"]["error"] == "TypeError"


def test_heartbeats_keep_the_lease_of_a_long_rollout() -> None:
    async def solve(rollout: Rollout) -> float:
        await asyncio.to_thread(platform.wait_until, lambda: len(platform.heartbeats) >= 4)
        return 1.0

    with FakePlatform() as platform:
        start_run(platform, ROWS[:1], agent={"name": "solver", "lease_s": 0.6})
        with serving(platform, solve):
            platform.wait_until(lambda: all_over(platform))
        assert platform.rollouts["ro_0"].leases == [platform.rollouts["ro_0"].worker]
        assert platform.refused_finishes == []


def test_a_rollout_past_its_deadline_is_stopped_and_left_to_the_platform() -> None:
    stopped = threading.Event()

    async def solve(rollout: Rollout) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            stopped.set()

    with FakePlatform() as platform:
        start_run(platform, ROWS[:1], agent={"name": "solver", "deadline": int((time.time() + 0.3) * 1000)})
        with serving(platform, solve):
            stopped.wait()
        assert platform.rollouts["ro_0"].finish is None
        assert platform.released == []


def test_a_lost_lease_cancels_the_rollout_which_is_then_played_again() -> None:
    seen: list[str] = []

    async def solve(rollout: Rollout) -> float:
        if rollout.lease > 1:
            return 1.0
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            seen.append("cancelled")
            raise
        return 0.0

    with FakePlatform() as platform:
        start_run(platform, ROWS[:1], agent={"name": "solver", "lease_s": 0.6})
        with serving(platform, solve, max_concurrent=2):
            platform.wait_until(lambda: platform.rollouts["ro_0"].lease == 1)
            platform.expire("ro_0")
            platform.wait_until(lambda: all_over(platform))
        assert seen == ["cancelled"]
        assert platform.rollouts["ro_0"].row()["reward"] == 1.0
        assert platform.refused_finishes == []


def test_a_cancelled_run_stops_its_rollouts_without_a_result() -> None:
    stopped = threading.Event()

    async def solve(rollout: Rollout) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            stopped.set()

    with FakePlatform() as platform:
        run_id = start_run(platform, ROWS[:1], agent={"name": "solver", "lease_s": 0.6})
        with serving(platform, solve):
            platform.wait_until(lambda: platform.rollouts["ro_0"].lease == 1)
            httpx.post(f"{platform.url}/v1/runs/{run_id}/cancel", headers={"authorization": f"Bearer {KEY}"})
            stopped.wait()
        assert platform.rollouts["ro_0"].finish is None


def test_a_result_is_sent_again_after_a_refusal_that_passes() -> None:
    with FakePlatform() as platform:
        start_run(platform, ROWS[:1])
        platform.fail_next.append(("/finish", 503, {"retry-after": "0"}))
        with serving(platform, lambda rollout: 1.0):
            platform.wait_until(lambda: all_over(platform))
        assert [path for _, path in platform.requests].count("/v1/rollouts/ro_0/finish") == 2


def test_a_stopped_worker_gives_its_leases_back() -> None:
    started = threading.Semaphore(0)

    async def solve(rollout: Rollout) -> None:
        started.release()
        await asyncio.Event().wait()

    with FakePlatform() as platform:
        start_run(platform)
        with serving(platform, solve, max_concurrent=2):
            started.acquire()
            started.acquire()
        assert [lease["rollout_id"] for lease in platform.released[0]["leases"]] == ["ro_0", "ro_1"]


def test_a_refused_key_ends_the_worker_with_the_platforms_error() -> None:
    async def run() -> None:
        transport = AsyncTransport(Settings.of(platform.url, "wrong"))
        try:
            await Worker(transport, "solver", lambda rollout: asyncio.sleep(0, {})).run()
        finally:
            await transport.close()

    with FakePlatform() as platform, pytest.raises(ApiError, match="401 unauthorized: the key is unknown"):
        asyncio.run(run())


def test_a_reward_may_not_be_a_text() -> None:
    from rollcall.errors import ConfigError

    with pytest.raises(ConfigError, match=r"rewards\.right: must be a number or None, not list"):
        finish_of({"rewards": {"right": []}})


def test_a_decorated_function_stays_callable() -> None:
    @agent("solver")
    def solve(rollout: Rollout) -> float:
        return 1.0

    assert solve.name == "solver"
    assert solve(None) == 1.0  # type: ignore[arg-type]


@pytest.mark.skipif(sys.platform == "win32", reason="signals")
def test_the_command_plays_rollouts_until_ctrl_c_and_gives_leases_back(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(
        "import asyncio\nfrom rollcall.agent import agent\n\n@agent('solver')\nasync def solve(rollout):\n"
        "    if rollout.group == 0:\n        return 1.0\n    await asyncio.Event().wait()\n"
    )
    with FakePlatform() as platform:
        start_run(platform, ROWS[:2])
        environ = {**os.environ, "ROLLCALL_URL": platform.url, "ROLLCALL_API_KEY": KEY}
        command = [sys.executable, "-m", "rollcall.agent", "mine:solve", "--max-concurrent", "2"]
        process = subprocess.Popen(command, cwd=tmp_path, env=environ, stderr=subprocess.PIPE, text=True)
        with platform.watching(process):
            platform.wait_until(lambda: platform.rollouts["ro_0"].over and platform.rollouts["ro_1"].lease == 1)
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate()
        assert process.returncode == 0, errors
        assert [lease["rollout_id"] for lease in platform.released[0]["leases"]] == ["ro_1"]
        assert json.dumps(platform.rollouts["ro_0"].finish) == '{"rewards": {"reward": 1.0}}'
