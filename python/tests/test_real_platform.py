"""The same package against a real platform: skipped unless `ROLLCALL_URL` and `ROLLCALL_API_KEY` are set.

The model is the scripted one of this process, on loopback: the platform must be on this machine.
"""

from __future__ import annotations

import json
import os
import secrets
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from fake_platform import FakePlatform

from rollcall.client import Client
from rollcall.trainer import Trainer

URL, KEY = os.environ.get("ROLLCALL_URL", ""), os.environ.get("ROLLCALL_API_KEY", "")
POLICY = os.environ.get("ROLLCALL_TEST_POLICY_URL", "")
V1 = os.environ.get("ROLLCALL_TEST_V1_PYTHON", "")
HERE = Path(__file__).parent
pytestmark = pytest.mark.skipif(not (URL and KEY), reason="ROLLCALL_URL and ROLLCALL_API_KEY are not set")

AGENT = """
import httpx
from rollcall.agent import RolloutFailed, agent

@agent("{name}")
async def solve(rollout):
    if rollout.task["prompt"] == "fail":
        raise RolloutFailed("as the task says", kind="tool")
    async with httpx.AsyncClient(timeout=60) as http:
        reply = await http.post(
            rollout.base_url + "/chat/completions",
            json={{"model": rollout.model, "messages": [{{"role": "user", "content": rollout.task["prompt"]}}]}},
            headers={{"authorization": "Bearer " + rollout.key}},
        )
    text = reply.raise_for_status().json()["choices"][0]["message"]["content"]
    score = None if text == "unscored" else float(text == rollout.task["prompt"])
    return {{"answer": text, "rewards": {{"echo": score}}, "metrics": {{"length": len(text)}}}}
"""


@pytest.fixture
def model() -> Iterator[str]:
    with FakePlatform() as scripted:
        yield f"{scripted.url}/direct/v1"


def request_of(name: str, model: str, rows: list[dict[str, Any]]) -> dict[str, Any]:
    return {
        "environment": "agent",
        "agent": {"name": name},
        "dataset": rows,
        "model": "scripted",
        "endpoint": {"base_url": model},
        "rollouts_per_example": 2,
        "min_scored": 0,
    }


CALCULATOR = {
    "environment": "calculator",
    "environment_args": {"steps": 1, "max": 9},
    "model": "rollcall-policy",
    "endpoint": {"base_url": POLICY},
    "sampling": {"max_tokens": 24},
}


@pytest.mark.usefixtures("policy")
def test_the_client_reads_what_the_platform_sends() -> None:
    with Client() as client:
        request = {**CALCULATOR, "num_examples": 4, "rollouts_per_example": 3, "min_scored": 0}
        first, second = (client.runs.create(request) for _ in range(2))
        ended = [client.runs.wait(run["id"]) for run in (first, second)]
        assert [run["counts"]["planned"] for run in ended] == [12, 12]
        rows = list(client.runs.results(first["id"], limit=5))
        assert len({row["rollout_id"] for row in rows}) == len(rows) == 12
        names = [event["event"] for event in client.runs.events(first["id"])]
        assert (names.count("rollout.finished"), names[-1]) == (12, "run.completed")
        assert client.runs.compare(first["id"], second["id"])["n_matched"] == 4
        rows_in_parts = [{"question": str(number), "answer": "x" * 600} for number in range(10_000)]
        dataset = client.datasets.upload(rows_in_parts)
        assert client.datasets.get(dataset["id"])["rows"] == 10_000


@pytest.mark.usefixtures("policy")
@pytest.mark.parametrize("encoding", ["jsonl", "msgpack"])
def test_a_trainer_trains_a_run_to_its_end(encoding: str) -> None:
    settings = {"group_size": 4, "batch_size": {"rollouts": 8}, "max_steps": 2, "filters": {"zero_variance": "keep"}}
    with Client() as client:
        delivery = {"delivery": "pull", "encoding": encoding}
        run: Any = client.runs.create({**CALCULATOR, **settings, "kind": "training", "seed": 7, "trainer": delivery})
        steps = []
        with Trainer(run["id"], token=run["trainer"]["token"]) as trainer:
            trainer.register()
            for batch in trainer.batches():
                steps.append(batch.step)
                if len(steps) == 1:
                    batch.give_back("oom", "for once")
                    continue
                trainer.heartbeat(batch)
                assert all(len(each.mask) == len(each.token_ids) == len(each.logprobs) for each in batch.samples)
                batch.ack(metrics={"loss": float("nan"), "train_s": 0.1})
                trainer.report(batch.version, "applied", replica="gpu-0")
        assert steps == [1, 1, 2]
        assert client.runs.wait(run["id"])["status"] == "completed"


def test_an_agent_plays_a_run_and_its_results_are_those_of_the_agent(model: str, tmp_path: Path) -> None:
    name = f"test-{secrets.token_hex(4)}"
    (tmp_path / "mine.py").write_text(AGENT.format(name=name))
    command = [sys.executable, "-m", "rollcall.agent", "mine:solve", "--max-concurrent", "4"]
    process = subprocess.Popen(command, cwd=tmp_path)
    try:
        with Client() as client:
            rows = [{"prompt": text} for text in ("hello", "unscored", "fail")]
            run = client.runs.create(request_of(name, model, rows))
            ended = client.runs.wait(run["id"])
            results = sorted(client.runs.results(run["id"]), key=lambda row: (row["group"], row["slot"]))
    finally:
        process.terminate()
        assert process.wait() == 0
    outcomes = [row["outcome"] for row in results]
    assert outcomes == ["scored", "scored", "unscored", "unscored", "failed", "failed"]
    assert [row["reward"] for row in results[:2]] == [1.0, 1.0]
    assert results[0]["metrics"]["length"] == 5.0
    assert ended["counts"]["scored"] == 2


def test_a_cancelled_run_stops_its_agent(model: str, tmp_path: Path) -> None:
    name = f"test-{secrets.token_hex(4)}"
    (tmp_path / "mine.py").write_text(
        f"import asyncio\nfrom rollcall.agent import agent\n\n@agent('{name}')\nasync def solve(rollout):\n"
        "    print('started', flush=True)\n    try:\n        await asyncio.Event().wait()\n"
        "    finally:\n        print('stopped', flush=True)\n"
    )
    command = [sys.executable, "-m", "rollcall.agent", "mine:solve"]
    process = subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        with Client() as client:
            request = request_of(name, model, [{"prompt": "wait"}])
            request |= {"rollouts_per_example": 1, "agent": {"name": name, "lease_s": 10}}
            run = client.runs.create(request)
            assert process.stdout.readline() == "started\n"
            client.runs.cancel(run["id"])
            assert process.stdout.readline() == "stopped\n"
            assert client.runs.wait(run["id"], check=False)["status"] == "cancelled"
    finally:
        process.terminate()
        process.communicate()


@pytest.mark.skipif(not V1, reason="ROLLCALL_TEST_V1_PYTHON is not set: nothing is installed")
@pytest.mark.parametrize(("package", "reward"), [("rc-package", 0.5), ("lg-package", 0.04)])
def test_an_environment_of_verifiers_plays_on_the_platform(package: str, reward: float, model: str, cache: str) -> None:
    command = [sys.executable, "-m", "rollcall.cli", "eval", "--python", str(HERE / "packages" / package), "--yes"]
    command += ["-m", "scripted", "--endpoint", model, "-n", "2", "-r", "2", "--min-scored", "0", "--json"]
    variables = {**os.environ, "ROLLCALL_CACHE": cache}
    done = subprocess.run(command, env=variables, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    run = json.loads(done.stdout)
    assert run["report"]["reward"]["mean"] == pytest.approx(reward)


def test_a_finish_that_is_repeated_is_answered_again_and_another_is_refused(model: str) -> None:
    name = f"test-{secrets.token_hex(4)}"
    with Client() as client:
        run = client.runs.create(request_of(name, model, [{"prompt": "hello"}]) | {"rollouts_per_example": 1})
        with httpx.Client(base_url=URL, headers={"authorization": f"Bearer {KEY}"}, timeout=60) as http:
            body = {"worker": "test", "max": 1, "wait_s": 20}
            (rollout,) = http.post(f"/v1/agents/{name}/lease", json=body).raise_for_status().json()["rollouts"]
            own = {"authorization": f"Bearer {rollout['key']}"}
            finish = f"/v1/rollouts/{rollout['rollout_id']}/finish"
            answers = [http.post(finish, json={"rewards": {"a": 1}}, headers=own) for _ in range(2)]
            assert [answer.status_code for answer in answers] == [200, 200], answers[1].text
            assert answers[0].json() == answers[1].json()
            assert http.post(finish, json={"rewards": {"a": 0}}, headers=own).status_code == 409
        assert client.runs.wait(run["id"])["report"]["reward"]["mean"] == 1.0
