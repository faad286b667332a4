"""Environments of verifiers 0.4, played by our worker and by verifiers' own runner against the same scripted model.

`ROLLCALL_TEST_V1_PYTHON` is a Python with verifiers 0.4, this package, uv and pillow; `ROLLCALL_TEST_ENVIRONMENTS` is
the folder `environments` of PrimeIntellect-ai/verifiers. Without them the tests are skipped.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest
import script
from fake_platform import FakePlatform
from runners import DATA, Compared, vf_eval
from worker_process import SOURCES, play, records, worker

PYTHON = os.environ.get("ROLLCALL_TEST_V1_PYTHON", "")
ENVIRONMENTS = os.environ.get("ROLLCALL_TEST_ENVIRONMENTS", "")
HERE = Path(__file__).parent

needs_v1 = pytest.mark.skipif(not PYTHON, reason="ROLLCALL_TEST_V1_PYTHON is not set")
needs_environments = pytest.mark.skipif(
    not (PYTHON and ENVIRONMENTS), reason="ROLLCALL_TEST_V1_PYTHON or ROLLCALL_TEST_ENVIRONMENTS is not set"
)


def judged(environment: str, judge: str, **more: Any) -> Compared:
    """`DIRECT` in an argument stands for the address of the scripted model."""
    at = {"id": judge, "base_url": "DIRECT", "api_key_var": "SCRIPTED_KEY", "model": "judge"}
    return Compared(environment, args={"task": {"judges": [at | more]}})


COMPARED = [
    Compared("color-codeword"),
    Compared("code-golf", ("golfer",)),
    Compared("glossary"),
    Compared("scratchpad"),
    Compared("kuhn-poker", ("player0", "player1")),
    Compared("interception"),
    Compared("proposer-solver", ("proposer", "solver")),
    Compared("gsm8k"),
    Compared("reverse-text"),
    Compared("alphabet-sort"),
    Compared("scratchpad", env={"id": "best-of-n", "n": 3}),
    Compared("reverse-text", env={"id": "best-of-n", "n": 2, "threshold": 0.5}),
    Compared("glossary", ("assistant", "user"), env={"id": "user-sim"}),
    judged("glossary", "reference", weight=0.5),
    judged("interception", "rubric", path=str(HERE / "rubric.toml")),
]
TIMED = {"latency", "fastest"}
"""Scores of code-golf that depend on the time that a program took."""
EXAMPLES, EACH = 3, 2


def summary(episode: dict[str, Any]) -> str:
    """What two plays of the same task must have in common, as a text that can be sorted."""
    traces = [
        {
            "agent": trace["agent"].get("name"),
            "ok": trace["ok"],
            "rewards": {name: value for name, value in trace["rewards"].items() if name not in TIMED},
            "metrics": {name: value for name, value in trace["metrics"].items() if name not in TIMED},
            "stop_condition": trace["stop_condition"],
            "messages": [node["message"] for node in trace["nodes"]],
            "calls": len(trace["calls"]),
            "errors": [(error["type"], error.get("status_code")) for error in trace["errors"]],
        }
        for trace in episode["traces"]
    ]
    errors = [error["type"] for error in episode["errors"]]
    return json.dumps({"ok": episode["ok"], "errors": errors, "traces": traces}, sort_keys=True)


def by_task(episodes: list[dict[str, Any]]) -> dict[int, list[str]]:
    grouped: dict[int, list[str]] = defaultdict(list)
    for episode in episodes:
        grouped[episode["task"]["data"]["idx"]].append(summary(episode))
    return {task: sorted(each) for task, each in grouped.items()}


@needs_environments
@pytest.mark.parametrize("compared", COMPARED, ids=str)
def test_an_environment_gives_the_same_records_as_in_verifiers_own_runner(
    compared: Compared, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SCRIPTED_KEY", "x")
    monkeypatch.setenv("HF_HOME", str(tmp_path / "hf"))
    with FakePlatform(script.reply) as platform:
        args = json.dumps(compared.args).replace("DIRECT", f"{platform.url}/direct/v1")
        flags = ["-n", str(EXAMPLES), "--args", args, "--env-config", json.dumps(compared.env)]
        with worker(platform, PYTHON, compared.environment, tmp_path, *flags, cwd=DATA) as rows:
            rollouts = play(platform, rows, rollouts_per_example=EACH)
        theirs = vf_eval(platform, PYTHON, compared, tmp_path / "vf-eval", examples=EXAMPLES, each=EACH)
    ours = records(tmp_path / "traces.jsonl")
    assert len(ours) == len(theirs) == len(rollouts) == EXAMPLES * EACH
    assert by_task(ours) == by_task(theirs)
    rewards = {trace["id"]: trace for episode in ours for trace in episode["traces"]}
    for rollout in rollouts:
        row = rollout.row()
        assert row["state"] is not None or row["outcome"] == "failed"
        if row["outcome"] != "scored":
            continue
        traces = [rewards[each["id"]] for each in row["state"]["traces"]]
        trained = [trace for trace in traces if trace["agent"].get("trainable", True)]
        total = sum(each["score"] * each["weight"] for trace in trained for each in trace["rewards"].values())
        assert row["reward"] == pytest.approx(total / len(trained))
    print(f"\n{compared}: {len(ours)} episodes, outcomes {sorted(each.row()['outcome'] for each in rollouts)}")


def cases(body: dict[str, Any]) -> Any:
    """Errors by the name of the case; `flaky` fails once."""
    case = body["messages"][-1]["content"].removeprefix("case ")
    if case in ("400", "500"):
        return int(case), f"scripted {case}"
    if case == "flaky" and case not in FAILED_ONCE:
        FAILED_ONCE.add(case)
        return 500, "scripted once"
    return f"answer to {case}"


FAILED_ONCE: set[str] = set()


@needs_v1
def test_each_way_to_end_gives_its_outcome_and_a_score_that_failed_is_never_0(tmp_path: Path) -> None:
    FAILED_ONCE.clear()
    with (
        FakePlatform(cases) as platform,
        worker(platform, PYTHON, "rc-cases", tmp_path, path=str(HERE / "v1_envs")) as rows,
    ):
        rollouts = play(platform, rows)
    found = {rollout.task["case"]: rollout for rollout in rollouts}
    outcomes = {case: rollout.row()["outcome"] for case, rollout in found.items()}
    assert outcomes == {
        "good": "scored",
        "raise": "unscored",
        "metric": "unscored",
        "nan": "unscored",
        "400": "failed",
        "500": "failed",
        "flaky": "scored",
        "setup": "failed",
    }
    good = found["good"].row()
    assert (good["reward"], good["answer"], good["stop_condition"]) == (0.5, "answer to good", "agent_completed")
    assert good["metrics"] == {"right": 1.0, "length": 1.0}
    assert found["400"].row()["error"]["kind"] == "model"
    assert found["500"].row()["error"]["kind"] == "model"
    assert found["setup"].row()["error"]["kind"] == "environment"
    assert [len(found[case].calls) for case in ("400", "500", "flaky", "setup")] == [1, 3, 2, 0]
    assert found["good"].calls[0]["messages"][0] == {"role": "system", "content": "Answer."}
    assert found["good"].calls[0]["stream"] is True


@needs_v1
def test_a_call_reaches_the_address_of_its_own_rollout_with_one_session_each(tmp_path: Path) -> None:
    with (
        FakePlatform(cases) as platform,
        worker(platform, PYTHON, "rc-cases", tmp_path, "-n", "1", path=str(HERE / "v1_envs")) as rows,
    ):
        rollouts = play(platform, rows, rollouts_per_example=12)
    assert [len(rollout.calls) for rollout in rollouts] == [1] * 12
    assert len(set(platform.sessions)) == 12


@needs_v1
def test_arguments_choose_tasks_and_a_wrong_one_is_named(tmp_path: Path) -> None:
    command = [PYTHON, "-m", "rollcall.verifiers", "tasks", "rc-cases"]
    variables = {**os.environ, "PYTHONPATH": os.pathsep.join([SOURCES, str(HERE / "v1_envs")])}
    done = subprocess.run(
        [*command, "-a", '{"cases": ["x"]}'], env=variables, capture_output=True, text=True, check=True
    )
    assert json.loads(done.stdout) == {"idx": 0, "prompt": "case x", "system_prompt": "Answer.", "case": "x"}
    wrong = subprocess.run(
        [*command, "-a", '{"caess": []}'], env=variables, capture_output=True, text=True, check=False
    )
    assert wrong.returncode == 2
    assert "caess" in wrong.stderr
    assert "Traceback" not in wrong.stderr


@needs_v1
def test_a_model_that_stays_away_is_a_failure_of_the_model_and_a_cancelled_run_leaves_no_result(tmp_path: Path) -> None:
    with (
        FakePlatform(lambda body: (503, "scripted")) as platform,
        worker(platform, PYTHON, "rc-cases", tmp_path, "-n", "1", path=str(HERE / "v1_envs")) as rows,
    ):
        (rollout,) = play(platform, rows)
    assert rollout.row()["error"]["kind"] == "model"
    assert rollout.row()["error"]["error"] == "ProviderError"


def conversation(body: dict[str, Any]) -> str:
    """A user that says what it wants and is content with any answer, and an assistant that answers."""
    if body["messages"][0]["content"].startswith("You are role-playing a USER"):
        return "###DONE###" if len(body["messages"]) > 2 else "help me"
    return "here you are"


@needs_v1
def test_only_the_calls_of_a_role_that_is_not_trained_say_so(tmp_path: Path) -> None:
    args = json.dumps({"cases": ["good", "metric"]})
    flags = ["--args", args, "--env-config", '{"id": "user-sim"}']
    with (
        FakePlatform(conversation) as platform,
        worker(platform, PYTHON, "rc-cases", tmp_path, *flags, path=str(HERE / "v1_envs")) as rows,
    ):
        rollouts = play(platform, rows, rollouts_per_example=2)
    assert len(rollouts) == 4
    for rollout in rollouts:
        spoken = [conversation(body) for body in rollout.calls]
        assert spoken == ["help me", "here you are", "###DONE###"]
        assert rollout.untrained == [True, False, True]
