"""Plays environments of verifiers 0.4 and later (`verifiers.v1`).

Only names are used that 0.4.0 and its successors have. What an environment returns is passed on as it is: a reward
that raised is null, and an error of the game fails the rollout.
"""

from __future__ import annotations

import importlib
import logging
import os
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from typing import Any

from ..errors import ConfigError
from ..rollout import Rollout, failure
from .names import bare_name, release
from .results import Records, Setup, finite, kind_of, plain_row
from .router import Router

log = logging.getLogger("rollcall.verifiers")

INLINE = "rollcall-inline"
KEY_VARIABLE = "ROLLCALL_ROUTER_KEY"
NEEDED = (
    "resolve_env_config",
    "load_environment",
    "SelectConfig",
    "ModelContext",
    "EvalClientConfig",
    "SamplingConfig",
)


class V1Player:
    by_group = False

    def __init__(self, setup: Setup) -> None:
        self.release, _ = release()
        self._vf = importlib.import_module("verifiers.v1")
        missing = [name for name in NEEDED if not hasattr(self._vf, name)]
        if missing:
            raise ConfigError(f"verifiers {self.release} has no {missing[0]}: this worker supports 0.4")
        self._env = self._vf.load_environment(self._configure(setup))
        config = self._env.config
        self._task_type = type(self._env.taskset).task_type()
        self._task_config = config.taskset.task
        self._records = Records(setup.out, "traces.jsonl")
        self._contexts: dict[str, Any] = {}
        self._stack = AsyncExitStack()

    def _configure(self, setup: Setup) -> Any:
        """The environment's own configuration, with a harness and a runtime for each role."""
        taskset = {"id": bare_name(setup.environment), **setup.args}
        if "id" in setup.args:
            raise ConfigError("args: id: is the environment's own, set another field")
        raw = {**setup.env_config, "taskset": taskset}
        plain = self._vf.resolve_env_config(dict(raw))
        harnesses = plain.agent_harnesses()
        for role, harness in harnesses.items():
            given = raw.get(role)
            spec = dict(given) if isinstance(given, Mapping) else {}
            spec.update(self._seat(role, getattr(plain, role), harness.id, setup))
            raw[role] = spec
        return self._vf.resolve_env_config(raw)

    def _seat(self, role: str, declared: Any, harness: str, setup: Setup) -> dict[str, Any]:
        """A role that names no harness, or null, plays in this process. One that names another keeps it."""
        runtime = setup.runtime
        seat: dict[str, Any] = {} if setup.max_turns is None else {"max_turns": setup.max_turns}
        unpinned = harness == "null" or (declared.harness is None and harness == "bash")
        if setup.harness is not None:
            seat["harness"] = {"id": setup.harness}
            seat["runtime"] = {"type": runtime or "subprocess"}
            return seat
        if unpinned:
            inline = runtime in (None, "subprocess") and _has_inline()
            seat["harness"] = {"id": INLINE if inline else "null"}
            seat["runtime"] = {"type": runtime or "subprocess"}
            return seat
        if runtime is None:
            raise ConfigError(f"{role} is played by the harness {harness}, which runs programs: set --runtime")
        seat["runtime"] = {"type": runtime}
        return seat

    def rows(self, n: int, *, shuffle: bool, seed: int) -> list[dict[str, Any]]:
        """The tasks as rows: the environment's fields, and those of the framework that are not at their default."""
        taskset = self._env.taskset
        if n == -1 and getattr(type(taskset), "INFINITE", False):
            raise ConfigError("num_examples: the taskset is endless: set -n")
        select: dict[str, Any] = {"shuffle": shuffle, "seed": seed} if shuffle else {}
        if n != -1:
            select["limit"] = n
        rows = [self._row(task, number) for number, task in enumerate(taskset.select(self._vf.SelectConfig(**select)))]
        if not rows:
            raise ConfigError(f"{self._env.config.taskset.id} has no tasks")
        self._task(rows[0])
        return rows

    def _row(self, task: Any, number: int) -> dict[str, Any]:
        whole = task.data.model_dump(mode="json")
        changed = task.data.model_dump(mode="json", exclude_defaults=True)
        framework = self._vf.TaskData.model_fields
        return plain_row(
            {name: value for name, value in whole.items() if name in changed or name not in framework}, number
        )

    def _task(self, row: Mapping[str, Any]) -> Any:
        data_type = self._task_type.data_type()
        extra = data_type.model_config.get("extra") == "allow"
        fields = {name: value for name, value in row.items() if extra or name in data_type.model_fields}
        return self._task_type(data_type.model_validate(fields), self._task_config)

    async def __aenter__(self) -> V1Player:
        self._router = await self._stack.enter_async_context(Router())
        os.environ[KEY_VARIABLE] = self._router.key
        await self._stack.enter_async_context(self._env.serving())
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._stack.aclose()
        self._records.close()

    def _context(self, model: str) -> Any:
        """One for each model: verifiers keeps a client for each address, and all have the router's."""
        if model not in self._contexts:
            client = self._vf.EvalClientConfig(base_url=self._router.base_url, api_key_var=KEY_VARIABLE)
            self._contexts[model] = self._vf.ModelContext(
                model=model, client=client, sampling=self._vf.SamplingConfig()
            )
        return self._contexts[model]

    async def play(self, rollout: Rollout) -> dict[str, Any]:
        try:
            task = self._task(rollout.task)
        except ValueError as error:
            return failure("environment", type(error).__name__, f"the row is not a task of the environment: {error}")
        (slot,) = self._env.slots(task)
        sessions: list[str] = []

        def minted(trace: Any) -> None:
            sessions.append(trace.id)
            self._router.register(trace.id, rollout, trained=trace.agent is None or bool(trace.agent.trainable))

        try:
            episode = await self._env.run_slot(slot, self._context(rollout.model), on_trace=minted)
        except Exception as error:
            log.exception("%s: the environment raised", rollout.rollout_id)
            return failure("environment", type(error).__name__, str(error))
        finally:
            for session in sessions:
                self._router.unregister(session)
        self._records.write({**episode.to_record(), "group": {"id": f"{rollout.run_id}/{rollout.group}"}})
        return finish_of(episode, accepted=bool(self._env.complete(episode)))

    async def play_group(self, rollouts: Sequence[Rollout]) -> list[dict[str, Any]]:
        raise NotImplementedError("verifiers 0.4 scores each rollout alone")


def _has_inline() -> bool:
    try:
        importlib.import_module("rollcall_inline")
    except ImportError as error:
        log.warning("the stock harness plays, because this release of verifiers differs: %s", error)
        return False
    return True


def finish_of(episode: Any, *, accepted: bool) -> dict[str, Any]:
    """The result of an episode. `accepted`: the environment calls it valid, also with failed participants.

    The reward is the mean over the traces that train, as verifiers reports it. With several traces, names begin with
    the seat: `player0/payoff`.
    """
    traces = list(episode.traces)
    if not accepted:
        failed = _failure_of(episode)
        if failed is not None:
            return failed
    trained = [trace for trace in traces if trace.agent.trainable] or traces
    names = _seat_names(traces)
    rewards: dict[str, Any] = {}
    metrics: dict[str, Any] = {}
    for trace in traces:
        alone = len(trained) == 1 and trace is trained[0]
        prefix = "" if alone else f"{names[trace.id]}/"
        metrics.update({prefix + name: finite(value) for name, value in trace.metrics.items()})
        scores = {prefix + name: _reward(reward, len(trained)) for name, reward in trace.rewards.items()}
        if any(trace is each for each in trained):
            rewards.update(scores)
            if not trace.ok and not accepted and None not in scores.values():
                rewards[f"{prefix}scoring"] = None
        else:
            metrics.update({name: None if value is None else value["score"] for name, value in scores.items()})
    main = trained[-1]
    return {
        "answer": _answer(main),
        "rewards": rewards,
        "metrics": metrics,
        "stop_condition": main.stop_condition,
        "is_truncated": any(bool(trace.is_truncated) for trace in trained),
        "state": {
            "episode": episode.id,
            "traces": [
                {"id": trace.id, "agent": names[trace.id], "ok": trace.ok, "stop_condition": trace.stop_condition}
                for trace in traces
            ],
        },
    }


def _failure_of(episode: Any) -> dict[str, Any] | None:
    """The error that ended the game, or None. An error while scoring leaves the rollout unscored instead."""
    for trace in episode.traces:
        if not trace.ok and not trace.timing.scoring.start:
            return _failure(trace.errors, trace.stop_condition)
    if not episode.ok and all(trace.ok for trace in episode.traces):
        return _failure(episode.errors, None)
    return None


def _failure(errors: Sequence[Any], stop_condition: str | None) -> dict[str, Any]:
    if not errors:
        return failure("environment", "Error", f"the rollout did not complete: {stop_condition or 'without a reason'}")
    last = errors[-1]
    return failure(kind_of(last.type), last.type, last.message)


def _seat_names(traces: Sequence[Any]) -> dict[str, str]:
    """A seat that has several traces numbers them from 0."""
    totals = Counter(trace.agent.name or "agent" for trace in traces)
    seen: Counter[str] = Counter()
    names: dict[str, str] = {}
    for trace in traces:
        seat = trace.agent.name or "agent"
        names[trace.id] = seat if totals[seat] == 1 else f"{seat}[{seen[seat]}]"
        seen[seat] += 1
    return names


def _reward(reward: Any, shares: int) -> dict[str, float] | None:
    if reward is None:
        return None
    score, weight = finite(reward.score), finite(reward.weight)
    return None if score is None or weight is None else {"score": score, "weight": weight / shares}


def _answer(trace: Any) -> str | None:
    if trace.root_reply is not None:
        return str(trace.root_reply)
    messages = trace.assistant_messages
    content = messages[-1].content if messages else None
    if content is None or isinstance(content, str):
        return content
    return "".join(getattr(part, "text", "") or "" for part in content)


PLAYER = V1Player
