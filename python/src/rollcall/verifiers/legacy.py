"""Plays environments of the legacy API of verifiers (`load_environment`, releases up to 0.3.1).

The environment and its rubric run as they are. Two failures that the library turns into a score of 0 are kept apart:
a reward function that raises leaves its score null, and a rollout with an error is failed.
"""

from __future__ import annotations

import copy
import functools
import importlib
import inspect
import logging
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextvars import ContextVar
from typing import Any

import httpx

from ..errors import ConfigError
from ..rollout import UNTRAINED, ErrorKind, Rollout, failure
from .names import bare_name, release
from .results import KINDS, Records, Setup, finite, kind_of, plain_row

log = logging.getLogger("rollcall.verifiers")

CONNECT_S = 30.0
PLACEHOLDER = "http://rollout.invalid/v1"

_playing: ContextVar[Rollout | None] = ContextVar("playing", default=None)
"""The rollout whose task runs. The client reads its address and key from it."""
_scoring: ContextVar[set[str] | None] = ContextVar("scoring", default=None)
"""Where the failure of the reward function that runs is recorded."""


class LegacyPlayer:
    def __init__(self, setup: Setup) -> None:
        self.release, _ = release()
        self._vf = importlib.import_module("verifiers")
        if setup.harness or setup.runtime or setup.env_config:
            raise ConfigError(
                "harness, runtime and env-config are for verifiers 0.4: the environment uses the legacy API"
            )
        self._env = self._vf.load_environment(bare_name(setup.environment), **setup.args)
        missing = [name for name in ("run_rollout", "run_group", "rollout", "rubric") if not hasattr(self._env, name)]
        if missing:
            raise ConfigError(f"verifiers {self.release}: the environment has no {missing[0]}: use 0.3.1")
        if setup.max_turns is not None:
            if not hasattr(self._env, "max_turns"):
                raise ConfigError("max_turns: the environment has none")
            self._env.max_turns = setup.max_turns
        if setup.split not in ("train", "eval"):
            raise ConfigError("split: must be train or eval")
        self._split = setup.split
        self.by_group = bool(self._env.requires_group_rollouts)
        self._sampling = copy.deepcopy(dict(getattr(self._env, "sampling_args", None) or {}))
        self._failures = ScoreFailures(self._env.rubric)
        self._records = Records(setup.out, "results.jsonl")
        self._rows: dict[int, tuple[Any, Rollout]] = {}
        self._follow(self._env)

    def _follow(self, env: Any) -> None:
        """Makes the task of each member of a group carry its own rollout: the library plays them at once.

        A group of environments gives its members copies of the rows, which are followed too.
        """
        rollout_of = env.rollout

        @functools.wraps(rollout_of)
        async def rollout(input: Any, *arguments: Any, **named: Any) -> Any:
            _playing.set(self._rows[id(input)][1])
            return await rollout_of(input, *arguments, **named)

        env.rollout = rollout
        if not hasattr(env, "_route_child_input"):
            return
        route_of = env._route_child_input

        @functools.wraps(route_of)
        def route(input: Any) -> Any:
            routed = route_of(input)
            self._rows[id(routed[1])] = (routed[1], self._rows[id(input)][1])
            return routed

        env._route_child_input = route
        for member in env.envs:
            self._follow(member)

    def rows(self, n: int, *, shuffle: bool, seed: int) -> list[dict[str, Any]]:
        source = self._env.get_dataset if self._split == "train" else self._env.get_eval_dataset
        dataset = source(n, seed if shuffle else None)
        rows = [plain_row(dict(row), number) for number, row in enumerate(dataset)]
        if not rows:
            raise ConfigError(f"{self._env.env_id} has no rows in its {self._split} dataset")
        return rows

    async def __aenter__(self) -> LegacyPlayer:
        openai = importlib.import_module("openai")
        clients = importlib.import_module("verifiers.clients")
        self._http = httpx.AsyncClient(
            limits=httpx.Limits(max_connections=None, max_keepalive_connections=64),
            timeout=httpx.Timeout(None, connect=CONNECT_S),
            event_hooks={"request": [_address]},
        )
        self._openai = openai.AsyncOpenAI(
            base_url=PLACEHOLDER, api_key="-", http_client=self._http, timeout=httpx.Timeout(None, connect=CONNECT_S)
        )
        self._client = clients.OpenAIChatCompletionsClient(self._openai)
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._env._teardown()
        await self._openai.close()
        self._records.close()

    async def play(self, rollout: Rollout) -> dict[str, Any]:
        row = self._row(rollout)
        try:
            output = await self._env.run_rollout(
                row, self._client, rollout.model, self._options(), state_columns=["trajectory_id"]
            )
        except Exception as error:
            log.exception("%s: the environment raised", rollout.rollout_id)
            return failure("environment", type(error).__name__, str(error))
        finally:
            self._forget([rollout])
        return self._finish(rollout, output)

    async def play_group(self, rollouts: Sequence[Rollout]) -> list[dict[str, Any]]:
        """Plays all members of a group in one call, so that group functions see them together."""
        rows = [self._row(rollout) for rollout in rollouts]
        try:
            outputs = await self._env.run_group(
                rows, self._client, rollouts[0].model, self._options(), state_columns=["trajectory_id"]
            )
        except Exception as error:
            log.exception("%s, group %d: the environment raised", rollouts[0].run_id, rollouts[0].group)
            return [failure("environment", type(error).__name__, str(error)) for _ in rollouts]
        finally:
            self._forget(rollouts)
        return [self._finish(rollout, output) for rollout, output in zip(rollouts, outputs, strict=True)]

    def _row(self, rollout: Rollout) -> dict[str, Any]:
        row = copy.deepcopy(dict(rollout.task))
        row.setdefault("example_id", rollout.example_id)
        self._rows[id(row)] = (row, rollout)
        return row

    def _forget(self, rollouts: Sequence[Rollout]) -> None:
        gone = {rollout.rollout_id for rollout in rollouts}
        for number in [number for number, (_, rollout) in self._rows.items() if rollout.rollout_id in gone]:
            del self._rows[number]

    def _options(self) -> dict[str, Any]:
        return copy.deepcopy(self._sampling)

    def _finish(self, rollout: Rollout, output: Mapping[str, Any]) -> dict[str, Any]:
        failed = self._failures.take(output.get("trajectory_id"))
        self._records.write({**output, "rollout_id": rollout.rollout_id, "run_id": rollout.run_id})
        error = output.get("error")
        if error:
            name = str(error.get("error", "Error"))
            text = error.get("message") or error.get("error_chain_str") or name
            return failure(self._kind(name), name, str(text))
        return {
            "answer": _last_text(output.get("completion")),
            **scores_of(output, weights_of(self._env.rubric), failed, self._failures.names),
            "stop_condition": output.get("stop_condition"),
            "is_truncated": bool(output.get("is_truncated")),
        }

    def _kind(self, name: str) -> ErrorKind:
        """By the nearest class of the library that the error's class derives from."""
        error_class = getattr(self._vf, name, None)
        if name not in KINDS and isinstance(error_class, type):
            for base in error_class.__mro__:
                if base.__name__ in KINDS:
                    return KINDS[base.__name__]
        return kind_of(name)


async def _address(request: httpx.Request) -> None:
    """Sends a model call to the address of the rollout whose task makes it. One of a reward function is a judge's."""
    rollout = _playing.get()
    if rollout is None:
        raise RuntimeError("a model call was made outside of a rollout")
    request.url = httpx.URL(rollout.base_url + str(request.url).removeprefix(PLACEHOLDER))
    request.headers["host"] = request.url.netloc.decode()
    request.headers["authorization"] = f"Bearer {rollout.key}"
    if _scoring.get() is not None:
        request.headers.update(UNTRAINED)


class ScoreFailures:
    """Records which functions of a rubric failed, by the id of the trajectory.

    The library catches what a function raises and scores 0. The functions are wrapped where the rubric keeps them;
    their names, signatures and results do not change.
    """

    def __init__(self, rubric: Any) -> None:
        self.names: set[str] = set()
        self._failed: dict[str, set[str]] = {}
        for leaf in leaves_of(rubric):
            leaf.funcs[:] = [self._watch(function) for function in leaf.funcs]
            self._wrap_calls(leaf)

    def take(self, trajectory_id: Any) -> set[str]:
        return self._failed.pop(str(trajectory_id), set())

    def _of(self, state: Mapping[str, Any]) -> set[str]:
        return self._failed.setdefault(str(state.get("trajectory_id")), set())

    def _watch(self, function: Callable[..., Any]) -> Callable[..., Any]:
        name = getattr(function, "__name__", type(function).__name__)
        self.names.add(name)

        @functools.wraps(function)
        async def watched(*arguments: Any, **named: Any) -> Any:
            failed = _scoring.get()
            try:
                result = function(*arguments, **named)
                score = await result if inspect.isawaitable(result) else result
            except Exception:
                if failed is not None:
                    failed.add(name)
                raise
            if failed is not None and not _is_score(score):
                failed.add(name)
            return score

        return watched

    def _wrap_calls(self, rubric: Any) -> None:
        call_one, call_group = rubric._call_individual_reward_func, rubric._call_group_reward_func

        async def one(func: Any, state: Any) -> Any:
            token = _scoring.set(self._of(state))
            try:
                return await call_one(func, state)
            finally:
                _scoring.reset(token)

        async def group(func: Any, states: Any) -> Any:
            failed: set[str] = set()
            token = _scoring.set(failed)
            try:
                scores = await call_group(func, states)
            finally:
                _scoring.reset(token)
            if not isinstance(scores, Sequence) or len(scores) != len(states):
                failed.add(func.__name__)
                scores = [0.0] * len(states)
            for state in states:
                self._of(state).update(failed)
            return scores

        rubric._call_individual_reward_func = one
        rubric._call_group_reward_func = group


def _is_score(score: Any) -> bool:
    """Whether the library can use it: a finite number, or one for each member of a group."""
    if isinstance(score, list | tuple):
        return all(_is_score(each) for each in score)
    try:
        return math.isfinite(float(score))
    except (TypeError, ValueError):
        return False


def leaves_of(rubric: Any) -> Iterator[Any]:
    """The rubrics that have functions: those of groups of rubrics, and of the members of a group of environments."""
    for child in getattr(rubric, "rubrics", None) or ():
        yield from leaves_of(child)
    for member in (getattr(rubric, "env_map", None) or {}).values():
        yield from leaves_of(member.rubric)
    if getattr(rubric, "funcs", None):
        yield rubric


def weights_of(rubric: Any) -> dict[str, float] | None:
    """The weight of each function, or None if the names do not say which weight applies."""
    weights: dict[str, float] = {}
    for leaf in leaves_of(rubric):
        for function, weight in zip(leaf.funcs, leaf.weights, strict=False):
            if weights.setdefault(function.__name__, float(weight)) != float(weight):
                return None
    return weights


def scores_of(
    output: Mapping[str, Any], weights: Mapping[str, float] | None, failed: set[str], names: set[str]
) -> dict[str, Any]:
    """Rewards and metrics of a row. The rewards sum to the row's own reward.

    If they do not (a rubric may compute its reward in another way), the row's reward is one reward, and all functions
    are metrics.
    """
    metrics: dict[str, Any] = {name: finite(value) for name, value in (output.get("metrics") or {}).items()}
    metrics.update(dict.fromkeys(failed, None))
    if not names:
        return {"rewards": {}, "metrics": metrics}
    total = finite(output.get("reward"))
    known = {name: weight for name, weight in (weights or {}).items() if weight != 0 and name in metrics}
    summed = sum((metrics[name] or 0.0) * weight for name, weight in known.items())
    if weights is None or total is None or not math.isclose(summed, total, rel_tol=1e-9, abs_tol=1e-9):
        counted = failed if weights is None else {name for name in failed if weights.get(name) != 0}
        return {"rewards": {"reward": None if counted else total}, "metrics": metrics}
    rewards = {name: _weighted(metrics.pop(name), weight) for name, weight in known.items()}
    return {"rewards": rewards, "metrics": metrics}


def _weighted(score: float | None, weight: float) -> dict[str, float] | None:
    return None if score is None else {"score": score, "weight": weight}


def _last_text(completion: Any) -> str | None:
    if isinstance(completion, str):
        return completion
    for message in reversed(completion or []):
        role = message.get("role") if isinstance(message, Mapping) else getattr(message, "role", None)
        if role != "assistant":
            continue
        content = message.get("content") if isinstance(message, Mapping) else getattr(message, "content", None)
        if isinstance(content, list):
            return "".join(str(part.get("text", "")) for part in content if isinstance(part, Mapping))
        return None if content is None else str(content)
    return None


PLAYER = LegacyPlayer
