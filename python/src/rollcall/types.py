"""The shapes of replies. A newer platform may send more than these have; docs/reference/api.md lists everything.

Times are seconds since the epoch. Members that a reply may lack are not required.
"""

from __future__ import annotations

from typing import Any, Literal, TypedDict

Status = Literal["queued", "running", "paused", "completed", "failed", "cancelled"]
ENDED: frozenset[str] = frozenset({"completed", "failed", "cancelled"})


class Counts(TypedDict):
    """`planned = pending + dispatched`; the last three count by reason."""

    planned: int
    pending: int
    dispatched: int
    in_flight: int
    scored: int
    unscored: dict[str, int]
    failed: dict[str, int]
    cancelled: dict[str, int]


class Mean(TypedDict, total=False):
    """A mean of task means. None: nothing was scored. `se` is None below two tasks."""

    mean: float | None
    se: float | None
    ci95: list[float] | None
    wilson95: list[float] | None
    range: list[float] | None
    n: int
    n_tasks: int
    n_rollouts: int
    n_unscored: int
    n_error: int


class Report(TypedDict, total=False):
    reward: Mean
    metrics: dict[str, Mean]
    pass_at_k: dict[str, float | None]
    stop_conditions: dict[str, int]
    turns: int
    calls: int
    usage: dict[str, Any]


class Run(TypedDict, total=False):
    """`training` is the state of a training run. Only the reply that creates one has `trainer`, with its secrets."""

    object: Literal["run"]
    id: str
    kind: Literal["eval", "training"]
    name: str | None
    status: Status
    error: dict[str, Any] | None
    status_reason: dict[str, Any] | None
    environment: Any
    agent: dict[str, Any] | None
    model: str
    counts: Counts
    report: Report
    cost: dict[str, Any]
    training: dict[str, Any] | None
    trainer: dict[str, Any]
    metadata: dict[str, str]
    created_at: int
    finished_at: int | None
    last_event: int


class ResultRow(TypedDict, total=False):
    """One finished rollout. `reward` is None if it was not scored. Rows that count have `superseded_by` None."""

    rollout_id: str
    example_id: int
    group: int
    slot: int
    attempt: int
    superseded_by: str | None
    outcome: Literal["scored", "unscored", "failed", "cancelled"]
    reason: str | None
    reward: float | None
    metrics: dict[str, float | None]
    error: dict[str, Any] | None
    prompt: list[dict[str, Any]]
    completion: list[dict[str, Any]]
    answer: Any
    info: Any
    stop_condition: str | None
    is_truncated: bool
    timing: dict[str, Any]
    token_usage: dict[str, Any]
    task_key: str
    turns: int


class Event(TypedDict):
    """One event of a run. `id` only grows: pass the last one as `after` to continue."""

    id: int
    event: str
    data: dict[str, Any]


class Dataset(TypedDict, total=False):
    object: Literal["dataset"]
    id: str
    name: str | None
    rows: int
    bytes: int
    sha256: str


class Comparison(TypedDict, total=False):
    """Two runs by their common tasks. `difference` is run minus baseline."""

    object: Literal["comparison"]
    metric: str
    run: dict[str, Any]
    baseline: dict[str, Any]
    difference: dict[str, Any]
    n_matched: int
    n_unmatched: int
    wins: int
    losses: int
    ties: int
    tasks: list[dict[str, Any]]
    next: str | None
