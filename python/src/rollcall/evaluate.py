"""`rollcall eval`: run an environment written in Python, or one of the platform, and print its report."""

from __future__ import annotations

import argparse
import json
import os
import secrets
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from .client import Client
from .errors import ConfigError, RollcallError
from .types import ENDED, Run
from .venvs import Source, build_wheel, package_path, prepare, release_of, source_of

INLINE_BYTES = 256 << 10
"""Rows that are larger are uploaded as a dataset: the body of a request has at most 1 MiB and 100,000 values."""
STOP_S = 20.0
MOST_WHY = 2_000
"""Characters of an error that are shown."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("environment", help="package, folder, git+… or owner/name@version; without --python: an id")
    parser.add_argument("--python", action="store_true", help="the environment is written in Python, for verifiers")
    parser.add_argument("-a", "--args", default="{}", help="arguments of the environment, as JSON")
    parser.add_argument("-m", "--model", required=True, help="the model's name at the endpoint")
    parser.add_argument("--endpoint", required=True, help="the endpoint: its URL, or its name at the platform")
    parser.add_argument("--endpoint-key", help="environment variable with the key of an endpoint given by URL")
    parser.add_argument("-n", "--num-examples", type=int, default=-1, help="tasks, -1: all (default)")
    parser.add_argument("-r", "--rollouts-per-example", type=int, default=1, help="rollouts of a task (default 1)")
    parser.add_argument("--shuffle", action="store_true", help="shuffle the tasks before taking -n of them")
    parser.add_argument("--seed", type=int, default=0, help="seed of the run (default 0)")
    parser.add_argument("-t", "--max-tokens", type=int, help="tokens of one answer")
    parser.add_argument("-T", "--temperature", type=float, help="sampling temperature")
    parser.add_argument("-S", "--sampling", default="{}", help="other sampling fields, as JSON")
    parser.add_argument("-c", "--max-concurrent", type=int, default=32, help="rollouts at once (default 32)")
    parser.add_argument("--name", help="name of the run")
    parser.add_argument("--min-scored", type=float, help="share of rollouts that must be scored (default 0.95)")
    parser.add_argument("--request", default="{}", help="other fields of the run's request, as JSON")
    parser.add_argument("--json", action="store_true", help="print the run as JSON instead of the report")
    parser.add_argument("--url", help="the platform (default: ROLLCALL_URL)")
    parser.add_argument("--api-key", help="a key of the project (default: ROLLCALL_API_KEY)")
    python = parser.add_argument_group("environments in Python")
    python.add_argument("--verifiers", help="release of verifiers; default: by the API the environment uses")
    python.add_argument("--env-name", help="the environment's name in its package; default: the package's name")
    python.add_argument("--env-config", default="{}", help="of verifiers 0.4: other members of its env block, as JSON")
    python.add_argument("--harness", help="of verifiers 0.4: the harness of every role; default: in the worker")
    python.add_argument("--runtime", help="of verifiers 0.4: subprocess, docker or another, of every role")
    python.add_argument("--max-turns", type=int, help="model turns of a rollout")
    python.add_argument("--split", default="eval", help="of the legacy API: eval (default) or train")
    python.add_argument("--out", help="folder for the records that verifiers would write")
    python.add_argument("--yes", action="store_true", help="run the environment's code without asking")


def run(arguments: argparse.Namespace) -> int:
    """0: the run completed. 1: it did not. Raises `RollcallError`."""
    request = request_of(arguments)
    with Client(arguments.url, arguments.api_key) as client:
        if not arguments.python:
            request |= {
                "environment": arguments.environment,
                "environment_args": json_object("args", arguments.args),
                "num_examples": arguments.num_examples,
                "shuffle": arguments.shuffle,
            }
            return follow(client, client.runs.create(request), arguments, None)
        return run_python(client, request, arguments)


def request_of(arguments: argparse.Namespace) -> dict[str, Any]:
    sampling = json_object("sampling", arguments.sampling)
    for name, value in (("max_tokens", arguments.max_tokens), ("temperature", arguments.temperature)):
        if value is not None:
            sampling[name] = value
    request: dict[str, Any] = {
        "model": arguments.model,
        "endpoint": endpoint_of(arguments),
        "rollouts_per_example": arguments.rollouts_per_example,
        "max_concurrent": arguments.max_concurrent,
        "seed": arguments.seed,
        "sampling": sampling,
    }
    for name, value in (("name", arguments.name), ("min_scored", arguments.min_scored)):
        if value is not None:
            request[name] = value
    return request | json_object("request", arguments.request)


def endpoint_of(arguments: argparse.Namespace) -> Any:
    if not arguments.endpoint.startswith(("http://", "https://")):
        return arguments.endpoint
    endpoint = {"base_url": arguments.endpoint}
    if arguments.endpoint_key:
        key = os.environ.get(arguments.endpoint_key)
        if not key:
            raise ConfigError(f"endpoint-key: the environment variable {arguments.endpoint_key} is not set")
        endpoint["api_key"] = key
    return endpoint


def run_python(client: Client, request: dict[str, Any], arguments: argparse.Namespace) -> int:
    source = source_of(arguments.environment)
    agree(source, arguments.yes)
    with tempfile.TemporaryDirectory(prefix="rollcall-") as folder:
        wheel = build_wheel(source, Path(folder), say)
        python = prepare(source, wheel, release_of(wheel, arguments.verifiers), say)
        name = arguments.env_name or source.name or wheel.name
        agent = f"{wheel.name}-{secrets.token_hex(4)}"
        rows = Path(folder) / "rows.jsonl"
        with worker(client, python, name, agent, rows, arguments) as process:
            content = rows.read_bytes()
            request |= {"environment": "agent", "agent": {"name": agent}, "dataset": dataset_of(client, content)}
            return follow(client, client.runs.create(request), arguments, process)


def agree(source: Source, yes: bool) -> None:
    """Asks once before foreign code runs. Raises `ConfigError` if the answer is not yes."""
    if yes:
        return
    if not sys.stdin.isatty():
        raise ConfigError(f"{source.requirement} is code that runs on this machine: add --yes to allow it")
    print(f"{source.requirement} is code that runs on this machine, with your rights.", file=sys.stderr)
    if input("Run it? [y/N] ").strip().lower() not in ("y", "yes"):
        raise ConfigError("the environment was not allowed to run")


def dataset_of(client: Client, content: bytes) -> Any:
    """Small rows go with the request, others become a dataset."""
    if len(content) <= INLINE_BYTES:
        return [json.loads(line) for line in content.decode().split("\n") if line]
    return client.datasets.upload(content, environment="agent")["id"]


@contextmanager
def worker(
    client: Client, python: str, name: str, agent: str, rows: Path, arguments: argparse.Namespace
) -> Iterator[subprocess.Popen[str]]:
    """The worker's process, ready, with its rows written. At the end it gives back what it still holds."""
    command = [python, "-m", "rollcall.verifiers", "worker", name, "--agent", agent, "--rows", str(rows)]
    command += ["--args", arguments.args, "--env-config", arguments.env_config, "--split", arguments.split]
    command += ["--num-examples", str(arguments.num_examples), "--seed", str(arguments.seed)]
    command += ["--max-concurrent", str(max(arguments.max_concurrent, arguments.rollouts_per_example))]
    command += ["--group-size", str(arguments.rollouts_per_example)]
    for flag in ("harness", "runtime", "max_turns", "out"):
        if getattr(arguments, flag) is not None:
            command += [f"--{flag.replace('_', '-')}", str(getattr(arguments, flag))]
    if arguments.shuffle:
        command.append("--shuffle")
    settings = client.transport.settings
    variables = {**os.environ, "ROLLCALL_URL": settings.base_url, "ROLLCALL_API_KEY": settings.api_key}
    variables["PATH"] = f"{Path(python).parent}{os.pathsep}{variables.get('PATH', '')}"
    variables["PYTHONPATH"] = os.pathsep.join(filter(None, [package_path(), os.environ.get("PYTHONPATH")]))
    if settings.project is not None:
        variables["ROLLCALL_PROJECT"] = settings.project
    say(f"starting {name}")
    process = subprocess.Popen(command, env=variables, stdout=subprocess.PIPE, text=True, start_new_session=True)
    try:
        wait_until_ready(process)
        yield process
    finally:
        stop(process)


def wait_until_ready(process: subprocess.Popen[str]) -> None:
    """Environments may print while they load: the line of the worker is the one with `ready`."""
    assert process.stdout is not None
    for line in process.stdout:
        if line.startswith('{"ready": true'):
            threading.Thread(target=pass_on, args=(process,), daemon=True).start()
            return
        sys.stderr.write(line)
    code = process.wait()
    raise ConfigError(f"the environment did not start: its worker ended with {code}")


def pass_on(process: subprocess.Popen[str]) -> None:
    assert process.stdout is not None
    for line in process.stdout:
        sys.stderr.write(line)


def stop(process: subprocess.Popen[str]) -> None:
    if process.poll() is None:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(STOP_S)
        except subprocess.TimeoutExpired:
            process.kill()
    process.wait()


def follow(client: Client, run: Run, arguments: argparse.Namespace, process: subprocess.Popen[str] | None) -> int:
    """Shows progress until the run has ended. The run is cancelled if the worker dies or the command is interrupted."""
    run_id = run["id"]
    say(f"run {run_id}")
    line = ProgressLine()

    def show(view: Run) -> None:
        line.show(view)
        if process is not None and process.poll() is not None and view["status"] not in ENDED:
            raise WorkerDied(f"the worker ended with {process.returncode}")

    try:
        ended = client.runs.wait(run_id, on_progress=show, check=False)
    except (KeyboardInterrupt, WorkerDied):
        line.end()
        client.runs.cancel(run_id)
        say(f"cancelled {run_id}")
        raise
    line.end()
    say_why(client, ended)
    print(json.dumps(ended, indent=2) if arguments.json else report_of(ended))
    return 0 if ended["status"] == "completed" else 1


def say_why(client: Client, run: Run) -> None:
    """Shows one error of the rollouts that failed, and one of those that are unscored."""
    for outcome in ("failed", "unscored"):
        if not run["counts"][outcome]:
            continue
        row: Any = next(client.runs.results(run["id"], outcome=outcome, limit=1), {})
        error = row.get("error")
        texts = [f"{error.get('error')}: {error.get('message')}"] if error else []
        texts += [f"{each.get('function')}: {each.get('error')}" for each in row.get("scoring_errors", [])]
        if texts:
            say(f"{outcome}, for example: {texts[0]}"[:MOST_WHY])


class WorkerDied(RollcallError):
    """The worker's process ended before its run."""


class ProgressLine:
    """One line that is written over in a terminal, and a line for each change elsewhere."""

    def __init__(self) -> None:
        self._last = ""
        self._terminal = sys.stderr.isatty()

    def show(self, run: Run) -> None:
        counts = run["counts"]
        done = counts["scored"] + sum(sum(counts[name].values()) for name in ("unscored", "failed", "cancelled"))
        mean = run.get("report", {}).get("reward", {}).get("mean")
        text = f"{run['status']}: {done} of {counts['planned']} done, {counts['in_flight']} in flight"
        text += f", reward {mean:.3f}" if mean is not None else ""
        if text == self._last:
            return
        self._last = text
        sys.stderr.write(f"\r\x1b[K{text}" if self._terminal else f"{text}\n")
        sys.stderr.flush()

    def end(self) -> None:
        if self._terminal and self._last:
            sys.stderr.write("\n")


def report_of(run: Run) -> str:
    """The report as text: status, reward, metrics, and what was not scored."""
    counts, report = run["counts"], run.get("report", {})
    reward = report.get("reward", {})
    lines = [f"{run['id']}  {run['status']}", f"reward    {number(reward)}"]
    for name, metric in sorted(report.get("metrics", {}).items()):
        lines.append(f"  {name}  {number(metric)}")
    lines.append(f"rollouts  {counts['scored']} scored of {counts['planned']}")
    for name, reasons in (("unscored", counts["unscored"]), ("failed", counts["failed"])):
        if reasons:
            lines.append(f"  {name}: " + ", ".join(f"{count} {reason}" for reason, count in reasons.items()))
    passes = {k: value for k, value in report.get("pass_at_k", {}).items() if value is not None}
    if passes:
        lines.append("pass@k    " + ", ".join(f"{k}: {value:.3f}" for k, value in passes.items()))
    stops = report.get("stop_conditions", {})
    if stops:
        lines.append("stopped   " + ", ".join(f"{name}: {count}" for name, count in stops.items()))
    error = run.get("error")
    if error:
        lines.append(f"error     {error.get('code')}: {error.get('message')}")
    return "\n".join(lines)


def number(value: Mapping[str, Any]) -> str:
    mean, se, ci = value.get("mean"), value.get("se"), value.get("ci95")
    if mean is None:
        return "not scored"
    text = f"{mean:.4f}" + (f" ± {se:.4f}" if se is not None else "")
    return text + (f"  (95%: {ci[0]:.4f} to {ci[1]:.4f})" if ci else "")


def json_object(name: str, text: str) -> dict[str, Any]:
    try:
        value = json.loads(text)
    except ValueError as error:
        raise ConfigError(f"{name}: is not JSON: {error}") from None
    if not isinstance(value, dict):
        raise ConfigError(f"{name}: must be a JSON object")
    return value


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)
