"""`rollcall eval` of environments in Python: their source, their release, their process, the report."""

from __future__ import annotations

import asyncio
import io
import os
import signal
import subprocess
import sys
import threading
import zipfile
from pathlib import Path
from typing import Any

import httpx
import pytest
from fake_platform import KEY, FakePlatform

from rollcall.cli import main
from rollcall.environment_process import agree
from rollcall.errors import ConfigError
from rollcall.venvs import LEGACY, V1, read_wheel, release_of, source_of

HERE = Path(__file__).parent
NETWORK = os.environ.get("ROLLCALL_TEST_V1_PYTHON", "")
needs_network = pytest.mark.skipif(not NETWORK, reason="ROLLCALL_TEST_V1_PYTHON is not set: nothing is installed")


@pytest.mark.parametrize(
    ("given", "requirement", "name", "index"),
    [
        ("gsm8k", "gsm8k", "gsm8k", None),
        ("gsm8k==0.2", "gsm8k==0.2", "gsm8k", None),
        ("owner/word-game@1.2", "word-game==1.2", "word-game", "https://hub.primeintellect.ai/owner/simple/"),
        ("owner/word-game@latest", "word-game", "word-game", "https://hub.primeintellect.ai/owner/simple/"),
        ("git+https://example.com/x.git", "git+https://example.com/x.git", None, None),
        (str(HERE / "packages/rc-package"), str(HERE / "packages/rc-package"), None, None),
    ],
)
def test_an_environment_is_named_as_in_vf_eval(
    given: str, requirement: str, name: str | None, index: str | None
) -> None:
    source = source_of(given)
    assert (source.requirement, source.name, source.index) == (requirement, name, index)


def test_a_folder_that_is_not_there_and_an_option_of_pip_are_refused() -> None:
    for wrong in ("./nothing-here", "--index-url", "a/b/c", str(HERE)):
        with pytest.raises(ConfigError, match="environment: "):
            source_of(wrong)


@pytest.mark.parametrize(
    ("text", "release"),
    [
        ("import verifiers as vf\n\ndef load_environment(n: int = 1):\n    return vf.SingleTurnEnv()\n", LEGACY),
        ("import verifiers.v1 as vf\n\n__all__ = ['T']\n", V1),
        ("from verifiers.v1 import Taskset\n", V1),
    ],
)
def test_the_release_follows_from_the_api_that_the_source_uses(text: str, release: str, tmp_path: Path) -> None:
    wheel = read_wheel(make_wheel(tmp_path, text))
    assert (wheel.name, release_of(wheel, None)) == ("some-env", release)
    assert release_of(wheel, "0.3.0") == "verifiers==0.3.0"
    assert release_of(wheel, ">=0.3") == "verifiers>=0.3"
    with pytest.raises(ConfigError, match="verifiers: newest is not a version"):
        release_of(wheel, "newest")


def test_a_package_that_is_not_an_environment_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="is not an environment of verifiers"):
        read_wheel(make_wheel(tmp_path, "print('hello')\n"))


def make_wheel(folder: Path, text: str) -> Path:
    file = folder / "some_env-1.0-py3-none-any.whl"
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("some_env.py", text)
        archive.writestr("some_env-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: some-env\nVersion: 1.0\n")
    return file


def test_foreign_code_does_not_run_without_consent(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    with FakePlatform() as platform:
        folder = str(HERE / "packages/rc-package")
        flags = ["-m", "scripted", "--endpoint", "e", "--url", platform.url, "--api-key", KEY]
        assert main(["eval", "--python", folder, *flags]) == 2
        assert platform.requests == []
    assert "add --yes to allow it" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("answer", "allowed"), [("y\n", True), ("YES\n", True), ("n\n", False), ("\n", False), ("", False)]
)
def test_a_person_is_asked_once_and_only_yes_allows_it(
    answer: str, allowed: bool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    monkeypatch.setattr(sys, "stdin", Terminal(answer))
    if allowed:
        agree("alice/some-env@1.0.0 of http://platform.test", False)
    else:
        with pytest.raises(ConfigError, match="was not allowed to run"):
            agree("alice/some-env@1.0.0 of http://platform.test", False)
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.startswith("alice/some-env@1.0.0 of http://platform.test is code that runs on this machine")
    assert said.err.endswith("Run it? [y/N] ")


def test_a_platform_that_cannot_be_reached_is_exit_4(capsys: pytest.CaptureFixture[str]) -> None:
    flags = ["-m", "scripted", "--endpoint", "e", "--url", "http://127.0.0.1:9", "--api-key", KEY]
    assert main(["eval", "gsm8k", *flags]) == 4
    assert "the platform cannot be reached" in capsys.readouterr().err


@needs_network
@pytest.mark.parametrize(
    ("package", "expected"),
    [
        ("rc-package", ["reward 0.5000", "rollouts 2 scored of 4", "unscored: 2 scorer", "right 1.0000"]),
        ("lg-package", ["reward 0.0400", "rollouts 4 scored of 4", "exact 0.0000"]),
    ],
)
def test_one_command_installs_an_environment_plays_it_and_prints_its_report(
    package: str, expected: list[str], cache: str
) -> None:
    with FakePlatform() as platform:
        done = rollcall(platform, cache, str(HERE / "packages" / package), "-n", "2", "-r", "2", "--yes")
        assert done.returncode == 0, done.stderr
        for line in expected:
            assert line in " ".join(done.stdout.split())
        assert "completed: 4 of 4 done" in done.stderr
        agents = {run["agent"]["name"] for run in platform.runs.values()}
        again = rollcall(platform, cache, str(HERE / "packages" / package), "-n", "1", "--yes", "--json")
        assert again.returncode == 0, again.stderr
        assert '"status": "completed"' in again.stdout
        assert "making a virtual environment" not in again.stderr
        assert len(agents | {run["agent"]["name"] for run in platform.runs.values()}) == 2


def test_the_command_shows_an_error_of_the_rollouts_that_failed(capsys: pytest.CaptureFixture[str]) -> None:
    error = {"kind": "tool", "error": "FileNotFoundError", "message": "there is no task.json"}

    def fail(platform: FakePlatform) -> None:
        platform.wait_until(lambda: bool(platform.rollouts))
        with httpx.Client(base_url=platform.url) as http:
            for each in platform.rollouts.values():
                own = {"authorization": f"Bearer {each.key}"}
                http.post(f"/v1/rollouts/{each.rollout_id}/finish", json={"error": error}, headers=own)

    with FakePlatform() as platform:
        failing = threading.Thread(target=fail, args=(platform,))
        failing.start()
        request = '{"agent": {"name": "mine"}, "dataset": [{"prompt": "a"}, {"prompt": "b"}]}'
        flags = ["-m", "scripted", "--endpoint", "e", "--url", platform.url, "--api-key", KEY, "--request", request]
        main(["eval", "agent", *flags])
        failing.join()
    said = capsys.readouterr()
    assert "failed, for example: FileNotFoundError: there is no task.json" in said.err
    assert "failed: 2" in said.out


@needs_network
def test_an_environment_that_does_not_load_ends_the_command_with_its_reason(cache: str) -> None:
    with FakePlatform() as platform:
        package = str(HERE / "packages/rc-package")
        done = rollcall(platform, cache, package, "--yes", "-a", '{"cases": 5}')
        assert done.returncode == 2
        assert "rc-cases cannot be loaded: ValidationError" in done.stderr
        assert platform.runs == {}


def rollcall(platform: FakePlatform, cache: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "rollcall.cli", "eval", "--python", *arguments]
    command += ["-m", "scripted", "--endpoint", "http://127.0.0.1:9/v1"]
    variables = {**os.environ, "ROLLCALL_URL": platform.url, "ROLLCALL_API_KEY": KEY, "ROLLCALL_CACHE": cache}
    return subprocess.run(command, env=variables, capture_output=True, text=True, check=False)


def wait_for_nobody(platform: FakePlatform) -> subprocess.Popen[str]:
    """`rollcall eval` of a run that no worker plays."""
    command = [sys.executable, "-m", "rollcall.cli", "eval", "agent", "-m", "scripted", "--endpoint", "e"]
    command += ["--request", '{"agent": {"name": "nobody"}, "dataset": [{"prompt": "wait"}]}']
    variables = {**os.environ, "ROLLCALL_URL": platform.url, "ROLLCALL_API_KEY": KEY}
    return subprocess.Popen(command, env=variables, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


@pytest.mark.skipif(sys.platform == "win32", reason="signals")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_ctrl_c_cancels_the_run_prints_its_report_and_exits_130(number: signal.Signals) -> None:
    with FakePlatform() as platform:
        process = wait_for_nobody(platform)
        with platform.watching(process):
            platform.wait_until(lambda: ("GET", "/v1/runs/run_0") in platform.requests)
        process.send_signal(number)
        out, errors = process.communicate()
        assert process.returncode == 130
        assert "cancelled run_0: what was finished is kept" in errors
        assert out.startswith("run_0  cancelled\n")
        assert "Traceback" not in errors
        assert platform.runs["run_0"]["cancelled"]


@pytest.mark.skipif(sys.platform == "win32", reason="signals")
def test_a_second_ctrl_c_does_not_wait_for_the_end_of_the_run() -> None:
    with FakePlatform() as platform:
        platform.cancels = False
        process = wait_for_nobody(platform)
        with platform.watching(process):
            platform.wait_until(lambda: ("GET", "/v1/runs/run_0") in platform.requests)
            process.send_signal(signal.SIGINT)
            platform.wait_until(lambda: platform.requests[-2:] == CANCELLED)
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate()
        assert process.returncode == 130
        assert "Traceback" not in errors


CANCELLED = [("POST", "/v1/runs/run_0/cancel"), ("GET", "/v1/runs/run_0")]


def test_a_platform_that_is_away_for_a_moment_does_not_end_the_command(capsys: pytest.CaptureFixture[str]) -> None:
    with FakePlatform() as platform:
        platform.fail_next = [("/v1/runs/run_0", 500, {}), ("/v1/runs/run_0", 502, {"retry-after": "0"})]
        request = '{"agent": {"name": "mine"}, "dataset": []}'
        flags = ["-m", "scripted", "--endpoint", "e", "--url", platform.url, "--api-key", KEY, "--request", request]
        assert main(["eval", "agent", *flags]) == 0
        assert platform.fail_next == []
    assert "run_0  completed" in capsys.readouterr().out


@needs_network
@pytest.mark.skipif(sys.platform == "win32", reason="signals")
def test_the_worker_of_a_command_that_is_killed_gives_its_leases_back_and_ends(cache: str) -> None:
    asked = threading.Event()

    async def hold(body: dict[str, Any]) -> str:
        asked.set()
        await asyncio.Event().wait()
        return "never"

    with FakePlatform(hold) as platform:
        command = [sys.executable, "-m", "rollcall.cli", "eval", "--python", str(HERE / "packages/rc-package"), "--yes"]
        command += ["-n", "1", "-m", "scripted", "--endpoint", "e"]
        own = {"ROLLCALL_URL": platform.url, "ROLLCALL_API_KEY": KEY, "ROLLCALL_CACHE": cache}
        process = subprocess.Popen(command, env={**os.environ, **own}, stderr=subprocess.PIPE, text=True)
        asked.wait()
        process.kill()
        process.communicate()  # The worker has the same stderr, so this waits for its end, too.
        (released,) = platform.released
        assert [each["rollout_id"] for each in released["leases"]] == ["ro_0"]
