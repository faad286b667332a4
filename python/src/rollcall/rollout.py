"""A leased rollout, and the result that ends it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, Literal

from .errors import ConfigError, RollcallError

ErrorKind = Literal["agent", "model", "tool", "environment", "infrastructure", "timeout"]
ERROR_KINDS: tuple[ErrorKind, ...] = ("agent", "model", "tool", "environment", "infrastructure", "timeout")
UNTRAINED = {"X-Rollcall-Train": "false"}
"""A header of model calls that must not be trained on, such as those of a simulated user or of a judge."""
LONGEST_MESSAGE = 4_000
"""Characters of an error that are sent. The platform keeps 4,096 of each."""


@dataclass(frozen=True)
class Rollout:
    """One rollout that this worker leased. `expires_at` and `deadline` are milliseconds since the epoch.

    Model calls go to `base_url` with `key`: chat completions and Responses, streaming or not. Anthropic's messages
    go to `anthropic_base_url`. Calls are refused once the rollout has ended.
    """

    rollout_id: str
    run_id: str
    lease: int
    group: int
    slot: int
    attempt: int
    example_id: int
    task: Mapping[str, Any]
    prompt: Sequence[Mapping[str, Any]]
    model: str
    base_url: str
    anthropic_base_url: str
    key: str
    lease_s: float
    expires_at: int
    deadline: int | None

    @classmethod
    def of(cls, wire: Mapping[str, Any]) -> Rollout:
        """Reads a rollout of a lease. Members that this release does not know are ignored."""
        members: dict[str, Any] = {"deadline": None, **wire}
        try:
            return cls(**{each.name: members[each.name] for each in fields(cls)})
        except KeyError as missing:
            raise RollcallError(f"the platform leased a rollout without {missing}") from None

    def openai_kwargs(self) -> dict[str, str]:
        """Arguments for `openai.OpenAI` and `openai.AsyncOpenAI`."""
        return {"base_url": self.base_url, "api_key": self.key}

    def anthropic_kwargs(self) -> dict[str, str]:
        """Arguments for `anthropic.Anthropic` and `anthropic.AsyncAnthropic`."""
        return {"base_url": self.anthropic_base_url, "auth_token": self.key}

    def environ(self) -> dict[str, str]:
        """Environment variables for an agent that runs as a process of its own."""
        return {
            "OPENAI_BASE_URL": self.base_url,
            "OPENAI_API_KEY": self.key,
            "OPENAI_MODEL": self.model,
            "ANTHROPIC_BASE_URL": self.anthropic_base_url,
            "ANTHROPIC_AUTH_TOKEN": self.key,
            "ANTHROPIC_MODEL": self.model,
        }

    def seconds_left(self) -> float | None:
        """Seconds from the lease to the deadline, by the platform's clock; None without a deadline."""
        if self.deadline is None:
            return None
        leased_at = self.expires_at - self.lease_s * 1000
        return max(0.0, (self.deadline - leased_at) / 1000)


class RolloutFailed(RollcallError):
    """Raise it in an agent to fail the rollout with a kind. Any other exception fails it as `agent`."""

    def __init__(self, message: str, *, kind: ErrorKind = "agent", error: str | None = None) -> None:
        super().__init__(message)
        if kind not in ERROR_KINDS:
            raise ConfigError(f"kind: must be one of {', '.join(ERROR_KINDS)}")
        self.kind: ErrorKind = kind
        self.error = error or type(self).__name__


@dataclass(frozen=True)
class Reward:
    """A score with a weight. None: it could not be produced, and the rollout is unscored."""

    score: float | None
    weight: float = 1.0


@dataclass(frozen=True)
class Result:
    """What an agent returns. The reward of the rollout is the sum of score times weight.

    Without `rewards`, the rubric of the environment scores the answer, if it has one.
    """

    answer: str | None = None
    rewards: Mapping[str, float | Reward | None] = field(default_factory=dict)
    metrics: Mapping[str, float | None] = field(default_factory=dict)
    state: Mapping[str, Any] | None = None
    stop_condition: str | None = None
    is_truncated: bool | None = None


Outcome = Result | Mapping[str, Any] | float | None
"""What an agent function may return: a `Result`, its fields as a dict, the reward as a number, or None."""


def finish_of(outcome: Any) -> dict[str, Any]:
    """The body of a finish. Raises `ConfigError` that names the field at fault."""
    if outcome is None:
        return {}
    if isinstance(outcome, bool | int | float):
        outcome = Result(rewards={"reward": float(outcome)})
    elif isinstance(outcome, Mapping):
        known = [each.name for each in fields(Result)]
        unknown = [name for name in outcome if name not in known]
        if unknown:
            raise ConfigError(f"the agent returned an unknown field {unknown[0]!r}: known are {', '.join(known)}")
        outcome = Result(**outcome)
    elif not isinstance(outcome, Result):
        returned = type(outcome).__name__
        raise ConfigError(f"the agent returned {returned}: it must return a Result, a dict, a number or None")
    body: dict[str, Any] = {}
    if outcome.answer is not None:
        body["answer"] = str(outcome.answer)
    if outcome.rewards:
        body["rewards"] = {name: _reward(f"rewards.{name}", value) for name, value in outcome.rewards.items()}
    if outcome.metrics:
        body["metrics"] = {name: _number(f"metrics.{name}", value) for name, value in outcome.metrics.items()}
    if outcome.state is not None:
        body["state"] = dict(outcome.state)
    if outcome.stop_condition is not None:
        body["stop_condition"] = outcome.stop_condition
    if outcome.is_truncated is not None:
        body["is_truncated"] = bool(outcome.is_truncated)
    return body


def _reward(name: str, value: Any) -> Any:
    if not isinstance(value, Reward):
        return _number(name, value)
    weight = _number(f"{name}.weight", value.weight)
    if weight is None:
        raise ConfigError(f"{name}.weight: must be a finite number")
    return {"score": _number(f"{name}.score", value.score), "weight": weight}


def _number(name: str, value: Any) -> float | None:
    """A finite number; NaN and infinities are None, since they are not scores."""
    if value is None:
        return None
    try:
        number = float(value)
    except (TypeError, ValueError):
        raise ConfigError(f"{name}: must be a number or None, not {type(value).__name__}") from None
    return number if math.isfinite(number) else None


MODEL_LIBRARIES = frozenset({"openai", "anthropic", "litellm"})


def failure_of(error: BaseException) -> dict[str, Any]:
    """The body of a finish for an exception of the agent."""
    if isinstance(error, RolloutFailed):
        return failure(error.kind, error.error, str(error))
    kind: ErrorKind = "agent"
    if isinstance(error, TimeoutError):
        kind = "timeout"
    elif type(error).__module__.partition(".")[0] in MODEL_LIBRARIES:
        kind = "model"
    return failure(kind, type(error).__name__, str(error))


def failure(kind: ErrorKind, name: str, message: str) -> dict[str, Any]:
    text = message if len(message) <= LONGEST_MESSAGE else message[:LONGEST_MESSAGE] + "…"
    return {"error": {"kind": kind, "error": name, "message": text}}
