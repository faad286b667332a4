"""Environments as the runners of verifiers play them, against the scripted model of a `FakePlatform`."""

from __future__ import annotations

import json
import subprocess
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fake_platform import FakePlatform
from worker_process import environ, records

HERE = Path(__file__).parent
LEGACY = str(HERE / "legacy_envs")
DATA = HERE / "data"
"""Tasks of ours in place of the data sets of these names: `datasets` looks in the working folder first."""


@dataclass(frozen=True)
class Compared:
    """An environment as both run it. `args` and `env` are the members of its taskset and of its env block."""

    environment: str
    roles: tuple[str, ...] = ("agent",)
    args: dict[str, Any] = field(default_factory=dict)
    env: dict[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        judges = [each["id"] for each in self.args.get("task", {}).get("judges", [])]
        return "+".join(filter(None, [self.environment, self.env.get("id"), *judges]))


def vf_eval(
    platform: FakePlatform, python: str, compared: Compared, out: Path, *, examples: int, each: int, path: str = ""
) -> list[dict[str, Any]]:
    """The episodes that verifiers' own command writes with its null harness."""
    command = [str(Path(python).parent / "vf-eval"), compared.environment, "-m", "scripted", "-o", str(out)]
    command += ["--client.base-url", f"{platform.url}/direct/v1", "--client.api-key-var", "SCRIPTED_KEY"]
    command += ["-n", str(examples), "-r", str(each), "--no-push", "--no-rich"]
    for role in compared.roles:
        command += [f"--env.{role}.harness.id", "null", f"--env.{role}.runtime.type", "subprocess"]
    for name, value in compared.env.items():
        command += [f"--env.{name}", str(value)]
    for name, value in compared.args.get("task", {}).items():
        command += [f"--env.taskset.task.{name}", json.dumps(value).replace("DIRECT", f"{platform.url}/direct/v1")]
    variables = environ(platform, python, PYTHONPATH=path, SCRIPTED_KEY="x", HF_HOME=str(out / "hf"))
    done = subprocess.run(command, cwd=DATA, env=variables, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-4000:]
    (file,) = out.glob("*/traces.jsonl")
    return records(file)


def library_rows(platform: FakePlatform, python: str, environment: str, out: Path, each: int) -> list[dict[str, Any]]:
    """The rows of verifiers' own `evaluate` of an environment in `legacy_envs`."""
    command = [python, str(HERE / "run_legacy.py"), environment, f"{platform.url}/direct/v1", "-1", str(each)]
    variables = environ(platform, python, PYTHONPATH=LEGACY, JUDGE_URL=f"{platform.url}/direct/v1")
    done = subprocess.run(command, env=variables, cwd=out, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-4000:]
    return [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
