"""The bundled policy learns from rollouts that an environment of verifiers plays, on a real platform.

Skipped unless `ROLLCALL_URL`, `ROLLCALL_API_KEY`, `ROLLCALL_TEST_POLICY_URL` and the Python of the legacy API are set.
`node` must be on the path: it runs the reference trainer of the repository.
"""

from __future__ import annotations

import os
import secrets
import subprocess
from pathlib import Path
from typing import Any

import pytest
from runners import LEGACY
from worker_process import SOURCES, end, records, start

from rollcall.client import Client
from rollcall.transport import Call

URL, KEY = os.environ.get("ROLLCALL_URL", ""), os.environ.get("ROLLCALL_API_KEY", "")
POLICY = os.environ.get("ROLLCALL_TEST_POLICY_URL", "")
PYTHON = os.environ.get("ROLLCALL_TEST_LEGACY_PYTHON", "")
TRAINER = Path(__file__).parents[2] / "packages/trainer/main.ts"
HELD_OUT, STEPS, SEED = 256, 10, 3


@pytest.mark.skipif(
    not (URL and KEY and POLICY and PYTHON),
    reason="ROLLCALL_URL, ROLLCALL_TEST_POLICY_URL or ROLLCALL_TEST_LEGACY_PYTHON is not set",
)
@pytest.mark.usefixtures("policy")
def test_held_out_tasks_of_an_environment_improve_and_the_ratio_is_1(tmp_path: Path) -> None:
    name = f"calculator-{secrets.token_hex(4)}"
    variables = {**os.environ, "PYTHONPATH": os.pathsep.join([SOURCES, LEGACY])}
    worker = start(PYTHON, "lg-calculator", tmp_path, variables, "--agent", name, "--max-concurrent", "64")
    try:
        rows = records(tmp_path / "rows.jsonl")
        with Client() as client:
            before = evaluate(client, name, rows[-HELD_OUT:])
            created: Any = client.runs.create(
                {
                    **play(name, rows[:-HELD_OUT]),
                    "kind": "training",
                    "max_steps": STEPS,
                    "lead": 0,
                    "group_size": 8,
                    "batch_size": {"rollouts": 64},
                }
            )
            train(created, tmp_path / "checkpoint")
            ended: Any = client.runs.wait(created["id"])
            after = evaluate(client, name, rows[-HELD_OUT:])
            ratios = ratios_of(client, created["id"])
    finally:
        end(worker)
    print(f"\nheld-out reward {before:.3f} before, {after:.3f} after {STEPS} steps; ratios {ratios}")
    assert ended["training"]["steps_trained"] == STEPS
    assert after > before + 0.2
    assert len(ratios) == STEPS
    assert ratios == pytest.approx([1.0] * STEPS, abs=1e-5)


def play(name: str, rows: list[dict[str, Any]]) -> dict[str, Any]:
    return {
        "environment": "agent",
        "agent": {"name": name, "lease_s": 600},
        "dataset": rows,
        "model": "rollcall-policy",
        "endpoint": {"base_url": POLICY},
        "sampling": {"max_tokens": 16, "extra_body": {"min_tokens": 1}, "seed": SEED},
        "seed": SEED,
    }


def evaluate(client: Client, name: str, rows: list[dict[str, Any]]) -> float:
    run = client.runs.wait(client.runs.create(play(name, rows))["id"])
    return float(run["report"]["reward"]["mean"])


def train(run: dict[str, Any], checkpoint: Path) -> None:
    """Runs the reference trainer until the run has its steps."""
    command = ["node", str(TRAINER), "--url", URL, "--policy", POLICY, "--learning-rate", "5e-4", "--seed", "1"]
    command += ["--run", run["id"], "--checkpoint", str(checkpoint)]
    variables = {**os.environ, "ROLLCALL_TRAINER_TOKEN": run["trainer"]["token"]}
    done = subprocess.run(command, env=variables, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-4000:]


def ratios_of(client: Client, run_id: str) -> list[float]:
    reply = client.transport.send(Call("GET", f"/v1/runs/{run_id}/metrics", params={"limit": 20}))
    return [point["values"]["trainer/ratio"] for point in reply.json()["data"] if "trainer/ratio" in point["values"]]
