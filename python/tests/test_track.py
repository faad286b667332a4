"""`rollcall track`, with the real library of Weights & Biases against a server that replies as W&B's does."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlparse

import pytest
from fake_wandb import KEY, FakeWandb

from rollcall import track
from rollcall.errors import ConfigError

RUN = "run_01ks2h9q4e7mxw3f0tbn8vc5za2k7p4mxq"
REWARD = "train/agg/all/reward/mean"
COUNTS = {"planned": 4, "pending": 0, "dispatched": 4, "in_flight": 0, "scored": 3}


class Platform:
    """The two routes that the command reads. A test changes the run and its series."""

    def __init__(self, kind: str) -> None:
        self.steps: dict[int, dict[str, Any]] = {}
        self.run: dict[str, Any] = {
            **{"object": "run", "id": RUN, "kind": kind, "name": "tracked", "status": "running", "model": "qwen3-4b"},
            "environment": {"id": "gsm8k", "version": "1.0.0"},
            "counts": {**COUNTS, "unscored": {"judge": 1}, "failed": {}, "cancelled": {}},
            "report": {
                "reward": {"mean": 0.5, "se": None, "ci95": [0.25, 0.75], "n_tasks": 4},
                "metrics": {"correct": {"mean": 0.5}, "unseen": {"mean": None}},
                "pass_at_k": {"1": 0.5, "2": None},
            },
        }
        if kind == "training":
            self.run["training"] = {"steps_trained": 0, "max_steps": 4, "group_size": 8}

    def trained(self, step: int, **values: float | None) -> None:
        self.steps[step] = {REWARD: step / 10, **values}
        self.run["training"]["steps_trained"] = step

    def end(self, status: str = "completed") -> None:
        self.run["status"] = status

    def reply(self, address: str) -> Any:
        if not address.startswith(f"/v1/runs/{RUN}/metrics"):
            return self.run
        after = int(parse_qs(urlparse(address).query).get("after_step", ["-1"])[0])
        data = [{"step": step, "at": 1, "values": self.steps[step]} for step in sorted(self.steps) if step > after]
        # Pages of two, to see that all of them are read.
        last = str(data[1]["step"]) if len(data) > 1 else None
        return {"object": "list", "data": data[:2], "last_id": last, "has_more": len(data) > 2}


@contextmanager
def served(platform: Platform) -> Iterator[str]:
    class Handler(BaseHTTPRequestHandler):
        def log_message(self, *arguments: object) -> None:
            """Prints nothing."""

        def do_GET(self) -> None:
            content = json.dumps(platform.reply(self.path)).encode()
            self.send_response(200)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()


def command(url: str, wandb: FakeWandb, folder: Path) -> subprocess.Popen[str]:
    known = {name: os.environ[name] for name in ("PATH", "HOME", "PYTHONPATH") if name in os.environ}
    variables = {**known, "WANDB_BASE_URL": wandb.url, "WANDB_API_KEY": KEY, "WANDB_DIR": str(folder)}
    return subprocess.Popen(
        [sys.executable, "-m", "rollcall.track", RUN, "--project", "models", "--url", url, "--api-key", "rk_test"],
        env=variables,
        cwd=folder,
        stderr=subprocess.PIPE,
        text=True,
    )


def ended(process: subprocess.Popen[str]) -> int:
    _, stderr = process.communicate()
    assert process.returncode in (0, 130), stderr
    return process.returncode


def rewards(wandb: FakeWandb) -> list[tuple[int, float]]:
    return [(row["_step"], row[REWARD]) for row in wandb.runs[RUN].rows if REWARD in row]


def test_the_series_of_a_training_is_sent_step_by_step_and_the_report_at_its_end(tmp_path: Path) -> None:
    platform = Platform("training")
    platform.trained(1, **{"trainer/loss": -0.5, "off_policy/max": None})
    platform.steps[2] = {REWARD: 0.9}
    with FakeWandb() as wandb, served(platform) as url:
        process = command(url, wandb, tmp_path)
        wandb.wait_until(1, RUN)
        for step in (2, 3):
            platform.trained(step)
        platform.end()
        assert ended(process) == 0
    run = wandb.runs[RUN]
    # Step 2 waited until it was trained.
    assert run.rows == [
        {"_step": 1, REWARD: 0.1, "trainer/loss": -0.5},
        {"_step": 2, REWARD: 0.2},
        {"_step": 3, REWARD: 0.3},
    ]
    assert run.exit_code == 0
    summary = json.loads(run.summary)
    assert summary["report/reward/mean"] == 0.5
    assert summary["report/rollouts/unscored"] == 1
    config = json.loads(run.config)
    assert config["model"]["value"] == "qwen3-4b"
    assert config["group_size"]["value"] == 8


@pytest.mark.parametrize("stopped_by", [signal.SIGINT, signal.SIGTERM])
def test_after_an_interruption_the_same_command_continues_without_repeating_a_step(
    tmp_path: Path, stopped_by: signal.Signals
) -> None:
    platform = Platform("training")
    for step in (1, 2):
        platform.trained(step)
    with FakeWandb() as wandb, served(platform) as url:
        process = command(url, wandb, tmp_path)
        wandb.wait_until(2, RUN)
        process.send_signal(stopped_by)
        assert ended(process) == 130
        for step in (3, 4):
            platform.trained(step)
        platform.end()
        assert ended(command(url, wandb, tmp_path)) == 0
        assert ended(command(url, wandb, tmp_path)) == 0
    assert rewards(wandb) == [(1, 0.1), (2, 0.2), (3, 0.3), (4, 0.4)]


def test_an_eval_that_ends_after_later_steps_is_sent_once_with_the_step_whose_weights_it_had(tmp_path: Path) -> None:
    platform = Platform("training")
    platform.steps[0] = {"eval/gsm8k/reward": 0.1}
    for step in (1, 2):
        platform.trained(step)
    with FakeWandb() as wandb, served(platform) as url:
        process = command(url, wandb, tmp_path)
        wandb.wait_until(2, RUN)
        process.send_signal(signal.SIGINT)
        assert ended(process) == 130
        platform.steps[2]["eval/gsm8k/reward"] = 0.2
        platform.end()
        assert ended(command(url, wandb, tmp_path)) == 0
    evals = [(row["eval/step"], row["eval/gsm8k/reward"]) for row in wandb.runs[RUN].rows if "eval/step" in row]
    assert evals == [(0, 0.1), (2, 0.2)]
    assert rewards(wandb) == [(1, 0.1), (2, 0.2)]


def test_several_evals_are_each_sent_once_though_one_ends_after_a_later_step_of_another(tmp_path: Path) -> None:
    platform = Platform("training")
    platform.steps[0] = {"eval/easy/reward": 0.1, "eval/hard/reward": 0.0}
    for step in (1, 2):
        platform.trained(step)
    platform.steps[2]["eval/easy/reward"] = 0.2
    with FakeWandb() as wandb, served(platform) as url:
        process = command(url, wandb, tmp_path)
        wandb.wait_until(2, RUN)
        process.send_signal(signal.SIGINT)
        assert ended(process) == 130
        platform.steps[1]["eval/hard/reward"] = 0.05
        platform.steps[2]["eval/hard/reward"] = 0.3
        platform.end()
        assert ended(command(url, wandb, tmp_path)) == 0
    rows = [row for row in wandb.runs[RUN].rows if "eval/step" in row]
    curves = {
        name: [(row["eval/step"], row[f"eval/{name}/reward"]) for row in rows if f"eval/{name}/reward" in row]
        for name in ("easy", "hard")
    }
    assert curves == {"easy": [(0, 0.1), (2, 0.2)], "hard": [(0, 0.0), (1, 0.05), (2, 0.3)]}


def test_the_report_of_an_eval_is_one_row_however_often_it_is_sent(tmp_path: Path) -> None:
    platform = Platform("eval")
    platform.end("failed")
    with FakeWandb() as wandb, served(platform) as url:
        for _ in range(2):
            assert ended(command(url, wandb, tmp_path)) == 0
    run = wandb.runs[RUN]
    [row] = run.rows
    assert row == {
        **{"_step": 0, "status": "failed", "report/reward/mean": 0.5, "report/reward/n_tasks": 4},
        **{"report/reward/ci95_low": 0.25, "report/reward/ci95_high": 0.75, "report/metrics/correct": 0.5},
        **{"report/pass_at_k/1": 0.5, "report/rollouts/scored": 3, "report/rollouts/unscored": 1},
        **{"report/rollouts/failed": 0, "report/rollouts/cancelled": 0},
    }
    assert run.exit_code == 1


def test_without_the_library_the_command_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(ConfigError, match="is not installed: pip install"):
        track.check_library()
