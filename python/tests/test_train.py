"""`rollcall train`: its arguments, and what it says of a training run. `test_commands.py` has whole trainings."""

from __future__ import annotations

import json
from typing import Any

import httpx
import pytest

from rollcall.cli import main
from rollcall.client import Client
from rollcall.errors import ConfigError
from rollcall.train import TrainingProgress, introduce_trainer, report_of, trainer_of

REWARD = "train/agg/all/reward/mean"


def test_a_trainer_pulls_or_is_pushed_to() -> None:
    assert trainer_of("pull") == {"delivery": "pull"}
    assert trainer_of("push:https://trainer.example/rl") == {"delivery": "push", "url": "https://trainer.example/rl"}
    for wrong in ("push", "push:trainer.example", "embedded", ""):
        with pytest.raises(ConfigError, match="is not pull or push:URL"):
            trainer_of(wrong)


def test_a_training_of_the_platforms_own_environment_plays_all_tasks(capsys: pytest.CaptureFixture[str]) -> None:
    flags = ["-m", "m", "--endpoint", "e", "--max-steps", "2", "-n", "5", "--api-key", "rk_test"]
    assert main(["train", "calculator", *flags]) == 2
    assert "num-examples: needs --python" in capsys.readouterr().err


def run_at(step: int, **changes: Any) -> Any:
    training = {"steps_trained": step, "max_steps": 1_500, "policy_version": step, "published": step}
    counts: dict[str, Any] = {"planned": 8, "dispatched": 8, "in_flight": 0, "scored": 8 * step}
    run = {"id": "run_1", "status": "running", "training": training, "status_reason": None}
    return run | {"counts": {**counts, "unscored": {}, "failed": {}, "cancelled": {}}} | changes


def test_every_step_has_one_line_also_if_many_were_trained_since_the_last_look(
    capsys: pytest.CaptureFixture[str],
) -> None:
    asked: list[str] = []

    def answer(request: httpx.Request) -> httpx.Response:
        after, limit = int(request.url.params["after_step"]), int(request.url.params["limit"])
        asked.append(request.url.params["after_step"])
        steps = range(after + 1, min(after + limit, 1_203) + 1)
        data = [{"step": step, "values": {REWARD: step / 10_000}} for step in steps]
        last = str(steps[-1]) if steps else None
        return httpx.Response(200, json={"data": data, "last_id": last, "has_more": after + limit < 1_203})

    http = httpx.Client(transport=httpx.MockTransport(answer))
    with Client("http://platform.test", "rk_test", http=http) as client:
        progress = TrainingProgress(client)
        for step in (0, 1, 1, 1_202):
            progress.show(run_at(step))
    http.close()
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 1_202
    assert lines[0] == "step 1 of 1500, weights v1, reward 0.000, 8 rollouts scored"
    assert lines[-1] == "step 1202 of 1500, weights v1202, reward 0.120, 9616 rollouts scored"
    assert asked == ["0", "1", "1001"]
    ended = run_at(1_202, status="completed")
    assert report_of(ended, progress.rewards).splitlines()[1:4] == [
        "steps     1202 of 1500 trained",
        "weights   v1202",
        "reward    0.0001 at step 1, 0.1202 at step 1202",
    ]


def test_a_reason_to_wait_is_said_once(capsys: pytest.CaptureFixture[str]) -> None:
    waiting = {"state": "waiting_for_trainer", "reason": "no trainer has registered"}
    with Client("http://platform.test", "rk_test") as client:
        progress = TrainingProgress(client)
        for reason in (waiting, None, waiting):
            progress.show(run_at(0, status_reason=reason))
    assert capsys.readouterr().err == "running, waiting_for_trainer: no trainer has registered\n"


def test_a_trainer_that_is_pushed_to_gets_its_secret_too(capsys: pytest.CaptureFixture[str]) -> None:
    with Client("http://platform.test", "rk_test") as client:
        introduce_trainer(client, run_at(0, trainer={"token": "rct_1", "push_secret": "whsec_1"}))
    said = capsys.readouterr().err
    assert "  ROLLCALL_RUN=run_1\n  ROLLCALL_TRAINER_TOKEN=rct_1\n  ROLLCALL_PUSH_SECRET=whsec_1\n" in said
    assert json.dumps("rk_test") not in said
