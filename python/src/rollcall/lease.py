"""The loop of a worker: lease rollouts, keep their leases, play them, finish them, give back the rest."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import socket
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

import httpx

from .calls import json_of
from .errors import ApiError, ConfigError
from .rollout import Rollout, failure, failure_of
from .transport import AsyncTransport, Call

log = logging.getLogger("rollcall.worker")

Play = Callable[[Rollout], Awaitable[dict[str, Any]]]
"""Plays a rollout and returns the body of its finish. An exception fails the rollout."""

WAIT_S = 20.0
"""Seconds that one lease request waits at the platform for a rollout."""
QUICK_S = 1.0
"""An empty reply that comes sooner is followed by a pause of this length."""
LONGEST_PAUSE_S = 30.0
"""Seconds between lease requests while the platform cannot be reached."""
MAX_LEASES = 1_000
FINISH_RETRIES = 8
REFUSED = "RefusedResult"
FATAL_STATUS = frozenset({400, 401, 403, 404, 422})


def _encode(body: Mapping[str, Any]) -> bytes:
    """JSON. Raises TypeError or ValueError for what JSON cannot hold."""
    return json.dumps(body, allow_nan=False).encode()


@dataclass
class Held:
    """A leased rollout. `over`: its lease was lost or it ended, so it must not be finished."""

    rollout: Rollout
    task: asyncio.Task[None] | None = None
    over: bool = False
    finishing: bool = False


class Worker:
    """Plays rollouts of one agent until `stop` is called.

    `max_concurrent` rollouts are played at once. `max_held` may be larger, if some of them only wait for others.
    """

    def __init__(
        self,
        transport: AsyncTransport,
        agent: str,
        play: Play,
        *,
        max_concurrent: int = 8,
        max_held: int | None = None,
        name: str | None = None,
    ) -> None:
        if max_concurrent < 1:
            raise ConfigError("max_concurrent: must be at least 1")
        self.name = name or f"{socket.gethostname()}-{os.getpid()}"
        self._max_held = min(max_held or max_concurrent, MAX_LEASES)
        self._transport = transport
        self._path = f"/v1/agents/{quote(agent, safe='')}"
        self._play = play
        self._playing = asyncio.Semaphore(max_concurrent)
        self._held: dict[str, Held] = {}
        self._stopping = asyncio.Event()
        self._leased = asyncio.Event()
        self._freed = asyncio.Event()

    @property
    def stopping(self) -> bool:
        return self._stopping.is_set()

    def stop(self) -> None:
        """Ends `run` soon: finishes that are being sent are sent, the other leases are given back."""
        self._stopping.set()

    async def run(self) -> None:
        """Raises `ApiError` if the platform refuses the key or the agent."""
        beats = asyncio.create_task(self._keep_leases())
        stopped = asyncio.create_task(self._stopping.wait())
        try:
            pause = 1.0
            while not self._stopping.is_set():
                room = self._max_held - len(self._held)
                self._freed.clear()
                step = self._lease(room) if room > 0 else self._wait_for_room()
                work = asyncio.create_task(step)
                await asyncio.wait({work, stopped, beats}, return_when=asyncio.FIRST_COMPLETED)
                if beats.done():
                    work.cancel()
                    beats.result()
                if not work.done():
                    work.cancel()
                    await asyncio.wait({work})
                    break
                if work.result():
                    pause = 1.0
                    continue
                log.warning("leasing again in %.0f s", pause)
                await asyncio.wait({stopped}, timeout=pause)
                pause = min(pause * 2, LONGEST_PAUSE_S)
        finally:
            await self._end()
            for each in (beats, stopped):
                each.cancel()
            await asyncio.gather(beats, stopped, return_exceptions=True)

    async def _wait_for_room(self) -> bool:
        await self._freed.wait()
        return True

    async def _lease(self, most: int) -> bool:
        """Leases and starts up to `most` rollouts. False: the platform did not answer."""
        body = {"worker": self.name, "max": most, "wait_s": WAIT_S}
        try:
            reply = await self._transport.send(
                Call("POST", f"{self._path}/lease", json=body, timeout=WAIT_S + 30, retries=0)
            )
            rollouts = json_of(reply)["rollouts"]
        except httpx.TransportError as error:
            log.warning("the platform cannot be reached: %s", error or type(error).__name__)
            return False
        except ApiError as error:
            if error.status in FATAL_STATUS:
                raise
            log.warning("the lease was refused: %s", error)
            return False
        for wire in rollouts:
            self._start(Rollout.of(wire))
        if not rollouts and reply.elapsed.total_seconds() < QUICK_S:
            await asyncio.sleep(QUICK_S)  # The platform did not wait for a rollout, so this worker does.
        return True

    def _start(self, rollout: Rollout) -> None:
        before = self._held.get(rollout.rollout_id)
        if before is not None:
            self._drop(before, "it was leased again")
        held = Held(rollout)
        held.task = asyncio.create_task(self._hold(held, before.task if before else None))
        self._held[rollout.rollout_id] = held
        self._leased.set()

    def _drop(self, held: Held, why: str) -> None:
        if held.over or held.finishing or held.task is None:
            return
        log.info("%s: stopped: %s", held.rollout.rollout_id, why)
        held.over = True
        held.task.cancel()

    async def _hold(self, held: Held, before: asyncio.Task[None] | None) -> None:
        try:
            if before is not None:
                await asyncio.wait({before})
            body = await self._body(held.rollout)
            held.finishing = True
            if body is not None:
                await self._finish(held.rollout, body)
        except asyncio.CancelledError:
            if not held.over and not self._stopping.is_set():
                raise
        finally:
            if self._held.get(held.rollout.rollout_id) is held:
                del self._held[held.rollout.rollout_id]
            self._freed.set()

    async def _body(self, rollout: Rollout) -> bytes | None:
        """The result, or None at the deadline: the platform ends such a rollout, and scores it as it is."""
        limit = asyncio.timeout(rollout.seconds_left())
        try:
            async with limit, self._playing:
                return _encode(await self._play(rollout))
        except Exception as error:
            if limit.expired():
                log.info("%s: stopped: its deadline has passed", rollout.rollout_id)
                return None
            log.warning("%s: %s: %s", rollout.rollout_id, type(error).__name__, error)
            return _encode(failure_of(error))

    async def _finish(self, rollout: Rollout, body: bytes) -> None:
        try:
            await self._transport.send(self._finish_call(rollout, body))
        except ApiError as error:
            if error.status == 409:
                log.info("%s: not finished here: %s", rollout.rollout_id, error.message)
            else:
                log.error("%s: its result was refused: %s", rollout.rollout_id, error)
                await self._report_refusal(rollout, error)
        except httpx.TransportError as error:
            log.error("%s: its result could not be sent: %s", rollout.rollout_id, error or type(error).__name__)

    def _finish_call(self, rollout: Rollout, body: bytes) -> Call:
        path = f"/v1/rollouts/{quote(rollout.rollout_id, safe='')}/finish"
        headers = {"content-type": "application/json"}
        return Call("POST", path, content=body, headers=headers, key=rollout.key, retries=FINISH_RETRIES)

    async def _report_refusal(self, rollout: Rollout, refused: ApiError) -> None:
        """A result that the platform refuses fails its rollout, with the refusal as its error."""
        if refused.status not in (400, 413, 422) or refused.param == "error":
            return
        error = failure("agent", REFUSED, refused.message)
        call = self._finish_call(rollout, _encode(error))
        try:
            await self._transport.send(call)
        except (ApiError, httpx.TransportError) as again:
            log.error("%s: its failure was refused too: %s", rollout.rollout_id, again)

    async def _keep_leases(self) -> None:
        """Beats every third of the shortest lease."""
        loop = asyncio.get_running_loop()
        last = loop.time()
        while True:
            if not self._held:
                self._leased.clear()
                await self._leased.wait()
                last = loop.time()
            interval = min((held.rollout.lease_s for held in self._held.values()), default=60.0) / 3
            rest = last + interval - loop.time()
            if rest > 0:
                self._leased.clear()
                try:
                    async with asyncio.timeout(rest):
                        await self._leased.wait()
                except TimeoutError:
                    pass  # It is time for the next heartbeat.
                continue
            last = loop.time()
            await self._beat(interval)

    async def _beat(self, interval: float) -> None:
        held = [each for each in self._held.values() if not each.over]
        if not held:
            return
        call = Call("POST", f"{self._path}/heartbeat", json=self._leases(held), timeout=max(interval, 5.0), retries=1)
        try:
            reply = json_of(await self._transport.send(call))
        except (ApiError, httpx.TransportError) as error:
            log.warning("a heartbeat failed: %s", error or type(error).__name__)
            return
        states = {(each["rollout_id"], each["lease"]): each["state"] for each in reply["data"]}
        for each in held:
            state = states.get((each.rollout.rollout_id, each.rollout.lease), "held")
            if state != "held":
                self._drop(each, "its lease was lost" if state == "lost" else "it has ended")

    def _leases(self, held: Sequence[Held]) -> dict[str, Any]:
        leases = [{"rollout_id": each.rollout.rollout_id, "lease": each.rollout.lease} for each in held]
        return {"worker": self.name, "leases": leases}

    async def _end(self) -> None:
        """Stops what is being played, waits for results that are being sent, gives the other leases back."""
        self._stopping.set()
        held = list(self._held.values())
        for each in held:
            if not each.finishing and each.task is not None:
                each.task.cancel()
        await asyncio.gather(*(each.task for each in held if each.task), return_exceptions=True)
        rest = [each for each in held if not each.finishing and not each.over]
        self._held.clear()
        if not rest:
            return
        log.info("giving back %d leases", len(rest))
        try:
            await self._transport.send(Call("POST", f"{self._path}/release", json=self._leases(rest), timeout=10.0))
        except (ApiError, httpx.TransportError) as error:
            log.warning("the leases were not given back and will expire: %s", error or type(error).__name__)
