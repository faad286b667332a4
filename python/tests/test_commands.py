"""The commands `rollcall eval` and `rollcall train` on a real platform, from the package to the report.

Skipped unless `ROLLCALL_URL`, `ROLLCALL_API_KEY` and the Pythons of verifiers are set. `node` must be on the path.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from fake_platform import FakePlatform

from rollcall.client import Client

URL, KEY = os.environ.get("ROLLCALL_URL", ""), os.environ.get("ROLLCALL_API_KEY", "")
V1 = os.environ.get("ROLLCALL_TEST_V1_PYTHON", "")
PACKAGES = Path(__file__).parent / "packages"
REPOSITORY = Path(__file__).parents[2]
STEPS = 2
pytestmark = pytest.mark.skipif(
    not (URL and KEY and V1), reason="ROLLCALL_URL, ROLLCALL_API_KEY or ROLLCALL_TEST_V1_PYTHON is not set"
)


def start(cache: str, *arguments: str) -> subprocess.Popen[str]:
    pipe = subprocess.PIPE
    variables = {**os.environ, "ROLLCALL_CACHE": cache}
    command = [sys.executable, "-m", "rollcall.cli", *arguments]
    return subprocess.Popen(command, env=variables, stdin=subprocess.DEVNULL, stdout=pipe, stderr=pipe, text=True)


def publish(package: Path, into: Path) -> dict[str, Any]:
    """Publishes the wheel of a package at the platform, for its own project only."""
    build = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", str(into), str(package)]
    subprocess.run(build, check=True)
    (wheel,) = into.glob("*.whl")
    command = ["node", str(REPOSITORY / "bin/rollcall.mjs"), "env", "publish", str(wheel)]
    command += ["--owner", "python-tests", "--json"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    version: dict[str, Any] = json.loads(done.stdout)
    return version


def test_a_private_wheel_of_the_platforms_hub_is_installed_and_played_by_its_name(cache: str, tmp_path: Path) -> None:
    version = publish(PACKAGES / "rc-package", tmp_path)
    assert (version["kind"], version["visibility"]) == ("python", "private")
    with FakePlatform() as model:
        endpoint = f"{model.url}/direct/v1"
        for named in (version["id"], f"{version['name']}@^{version['version']}"):
            flags = ["-m", "scripted", "--endpoint", endpoint, "-n", "1", "--min-scored", "0", "--json", "--yes"]
            out, err = start(cache, "eval", "--python", f"hub:{named}", *flags).communicate()
            assert f"getting {version['id']}, {version['digest']}" in err
            assert json.loads(out)["report"]["reward"]["mean"] == 0.5
            assert KEY not in err
    refused = start(cache, "eval", "--python", f"hub:{version['name']}@9", "-m", "m", "--endpoint", endpoint, "--yes")
    _, err = refused.communicate()
    assert refused.returncode == 2
    assert f"{version['name']} has no version 9" in err


class Training:
    """`rollcall train` of the calculator, until its trainer can begin."""

    def __init__(self, cache: str, policy: str) -> None:
        sampling = '{"extra_body": {"min_tokens": 1}}'
        flags = ["-m", "rollcall-policy", "--endpoint", policy, "-t", "16", "-S", sampling, "--yes", "--json"]
        flags += ["--max-steps", str(STEPS), "--batch-size", "32", "--request", '{"lead": 0}']
        self.process = start(cache, "train", "--python", str(PACKAGES / "calculator-package"), *flags)
        self.variables: dict[str, str] = {}
        self.said = ""
        assert self.process.stderr is not None
        for line in self.process.stderr:
            self.said += line
            name, is_variable, value = line.strip().partition("=")
            if is_variable and name.startswith("ROLLCALL_"):
                self.variables[name] = value
            if name == "ROLLCALL_TRAINER_TOKEN":
                return
        raise AssertionError(self.said)

    def end(self) -> dict[str, Any]:
        """The run as the command printed it."""
        out, err = self.process.communicate()
        self.said += err
        assert "Traceback" not in self.said
        run: dict[str, Any] = json.loads(out)
        return run


def test_a_training_of_an_environment_runs_to_its_end_with_a_line_for_each_step(
    cache: str, policy: str, tmp_path: Path
) -> None:
    training = Training(cache, policy)
    command = ["node", str(REPOSITORY / "packages/trainer/main.ts"), "--url", training.variables["ROLLCALL_URL"]]
    command += ["--policy", policy, "--run", training.variables["ROLLCALL_RUN"], "--checkpoint", str(tmp_path)]
    trained = subprocess.run(
        command, env={**os.environ, **training.variables}, capture_output=True, text=True, check=False
    )
    run = training.end()
    assert trained.returncode == 0, trained.stderr[-4000:]
    assert training.process.returncode == 0, training.said
    assert (run["status"], run["training"]["steps_trained"]) == ("completed", STEPS)
    steps = [line for line in training.said.splitlines() if line.startswith("step ")]
    assert [line.split(",")[0] for line in steps] == [f"step {step} of {STEPS}" for step in range(1, STEPS + 1)]
    assert all(", reward 0." in line and "rollouts scored" in line for line in steps)


@pytest.mark.skipif(sys.platform == "win32", reason="signals")
def test_ctrl_c_cancels_a_training_and_keeps_what_was_finished(cache: str, policy: str) -> None:
    training = Training(cache, policy)
    training.process.send_signal(signal.SIGINT)
    run = training.end()
    assert training.process.returncode == 130
    assert run["status"] == "cancelled"
    assert f"cancelled {run['id']}: what was finished is kept" in training.said
    with Client() as client:
        counts = client.runs.get(run["id"])["counts"]
        rows = list(client.runs.results(run["id"]))
    assert counts["in_flight"] == 0
    assert len(rows) == counts["dispatched"]
