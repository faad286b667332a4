"""Environments of the legacy API, played by our worker and by the library's own `evaluate`.

`ROLLCALL_TEST_LEGACY_PYTHON` is a Python with verifiers 0.3.1 and this package; without it the tests are skipped.
The two differ only where a failure is not a score of 0: such rollouts are unscored or failed.
"""

from __future__ import annotations

import json
import os
import re
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest
from fake_platform import FakePlatform, FakeRollout, echo
from runners import library_rows
from worker_process import play, records, worker

PYTHON = os.environ.get("ROLLCALL_TEST_LEGACY_PYTHON", "")
HERE = Path(__file__).parent
ENVIRONMENTS = str(HERE / "legacy_envs")
pytestmark = pytest.mark.skipif(not PYTHON, reason="ROLLCALL_TEST_LEGACY_PYTHON is not set")

EACH = 2
SAME = ("reward", "metrics", "stop_condition", "is_truncated", "is_completed", "completion", "answer")


def model(body: dict[str, Any]) -> Any:
    """The scripted model: the same answer to the same messages."""
    messages = body["messages"]
    last, text = messages[-1], echo(body)
    if text == "400":
        return 400, "scripted"
    if body["model"] == "judge":
        return (500, "no judge today") if "nojudge" in text else "yes"
    if last["role"] == "tool":
        return last["content"]
    used = re.match(r"use (double|explode)", text)
    if used:
        return _call(used.group(1), {"number": 3})
    word = re.match(r"remember (\w+)", text)
    if word:
        return _call("remember", {"word": word.group(1)})
    if messages[0]["role"] == "system":
        return f"<reversed_text>{text[::-1]}</reversed_text>"
    if messages[0]["content"] == "stuck":
        return "the same"
    return text


def _call(name: str, arguments: dict[str, Any]) -> dict[str, Any]:
    function = {"name": name, "arguments": json.dumps(arguments)}
    return {"content": None, "tool_calls": [{"id": "call_0", "type": "function", "function": function}]}


def by_task(rows: list[dict[str, Any]]) -> dict[int, list[str]]:
    grouped: dict[int, list[str]] = defaultdict(list)
    for row in rows:
        same = {name: row.get(name) for name in SAME}
        same["error"] = (row.get("error") or {}).get("error")
        grouped[row["example_id"]].append(json.dumps(same, sort_keys=True))
    return {task: sorted(each) for task, each in grouped.items()}


def both(environment: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *flags: str) -> list[FakeRollout]:
    """Plays with both, compares the library's rows, and returns the rollouts at the platform."""
    with FakePlatform(model) as platform:
        monkeypatch.setenv("JUDGE_URL", f"{platform.url}/direct/v1")
        with worker(platform, PYTHON, environment, tmp_path, *flags, path=ENVIRONMENTS) as rows:
            rollouts = play(platform, rows, rollouts_per_example=EACH)
        theirs = library_rows(platform, PYTHON, environment, tmp_path, EACH)
    ours = records(tmp_path / "results.jsonl")
    assert by_task(ours) == by_task(theirs)
    reward_of = {row["rollout_id"]: row["reward"] for row in ours}
    for rollout in rollouts:
        row = rollout.row()
        if row["outcome"] == "scored":
            assert row["reward"] == pytest.approx(reward_of[rollout.rollout_id])
    return rollouts


def outcomes(rollouts: list[FakeRollout]) -> list[str]:
    return [rollout.row()["outcome"] for rollout in rollouts if rollout.slot == 0]


def test_one_turn_keeps_rewards_weights_and_metrics(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rollouts = both("lg-single", tmp_path, monkeypatch)
    assert outcomes(rollouts) == ["scored", "scored", "unscored", "unscored", "failed"]
    first, raised, failed = rollouts[0].row(), rollouts[4].row(), rollouts[8].row()
    assert first["reward"] == pytest.approx(1.2)
    assert first["metrics"] == {"exact": 1.0, "format_reward_func": 1.0, "length": 34.0, "num_turns": 1.0}
    assert rollouts[0].finish is not None
    assert rollouts[0].finish["rewards"]["format_reward_func"] == {"score": 1.0, "weight": 0.2}
    assert (raised["metrics"]["exact"], raised["metrics"]["format_reward_func"]) == (None, 1.0)
    assert failed["error"]["kind"] == "model"


def test_tools_play_as_in_the_library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rollouts = both("lg-tool", tmp_path, monkeypatch)
    assert outcomes(rollouts) == ["scored", "scored", "scored"]
    assert [rollout.row()["reward"] for rollout in rollouts[::2]] == [1.0, 0.0, 0.0]
    assert [len(rollout.calls) for rollout in rollouts[::2]] == [2, 2, 1]


def test_hidden_arguments_of_a_tool_come_from_the_state_of_its_own_rollout(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rollouts = both("lg-stateful", tmp_path, monkeypatch)
    assert {rollout.row()["reward"] for rollout in rollouts} == {1.0}


def test_several_turns_keep_stop_conditions_and_two_rubrics(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rollouts = both("lg-game", tmp_path, monkeypatch)
    stops = [rollout.row()["stop_condition"] for rollout in rollouts[::2]]
    assert stops == ["has_final_env_response", "repeated", "max_turns_reached"]
    assert [rollout.row()["reward"] for rollout in rollouts[::2]] == [1.0, 2.0, 1.5]


def test_a_group_function_sees_all_members_and_a_broken_one_leaves_all_of_them_unscored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rollouts = both("lg-group", tmp_path, monkeypatch, "--max-concurrent", "2")
    assert outcomes(rollouts) == ["scored", "scored", "unscored"]
    assert [rollout.row()["reward"] for rollout in rollouts[:4]] == [1.0] * 4
    assert [len(rollout.calls) for rollout in rollouts] == [1] * 6


def test_a_judge_that_does_not_answer_leaves_its_rollout_unscored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rollouts = both("lg-judge", tmp_path, monkeypatch)
    assert outcomes(rollouts) == ["scored", "unscored"]


def test_a_group_of_environments_keeps_each_reward(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rollouts = both("lg-mixture", tmp_path, monkeypatch)
    assert outcomes(rollouts) == ["scored", "unscored", "scored", "scored", "scored"]
    assert [rollout.row()["reward"] for rollout in rollouts[::2]] == [pytest.approx(1.2), None, 1.0, 0.0, 0.0]


def test_only_a_call_that_a_reward_function_makes_says_that_it_is_not_trained(tmp_path: Path) -> None:
    with (
        FakePlatform(model) as platform,
        worker(platform, PYTHON, "lg-self-judge", tmp_path, path=ENVIRONMENTS) as rows,
    ):
        (rollout,) = play(platform, rows)
    assert rollout.row()["reward"] == 1.0
    assert [echo(body) for body in rollout.calls] == ["hello", "judge: hello"]
    assert rollout.untrained == [False, True]
