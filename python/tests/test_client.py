"""What scripts and notebooks get: runs, results, events, datasets, and repeated calls."""

from __future__ import annotations

import asyncio
import inspect
import sys
from typing import Any

import httpx
import pytest
from fake_platform import KEY, FakePlatform

from rollcall.client import AsyncClient, Client
from rollcall.errors import ApiError, ConfigError, RunFailed

REQUEST = {"environment": "agent", "model": "scripted", "endpoint": "e", "agent": {"name": "solver"}}
ROWS = [{"prompt": f"say {number}"} for number in range(5)]


def finish_all(platform: FakePlatform, run_id: str) -> None:
    for rollout in platform.of_run(run_id):
        rollout.finish = {"rewards": {"right": 1.0}, "metrics": {"length": 3.0}}


def client_of(platform: FakePlatform, **options: Any) -> Client:
    return Client(platform.url, KEY, **options)


def test_a_run_is_created_read_listed_and_waited_for() -> None:
    with FakePlatform() as platform, client_of(platform) as client:
        run = client.runs.create(REQUEST, dataset=ROWS, name="first")
        assert client.runs.get(run["id"])["status"] == "running"
        finish_all(platform, run["id"])
        seen: list[str] = []
        ended = client.runs.wait(run["id"], on_progress=lambda view: seen.append(view["status"]))
        assert ended["report"]["reward"]["mean"] == 1.0
        assert seen == ["completed"]
        for _ in range(2):
            client.runs.create(REQUEST, dataset=ROWS)
        assert [each["id"] for each in client.runs.list(limit=2)] == ["run_2", "run_1", "run_0"]


def test_a_run_that_was_cancelled_raises_unless_it_is_not_checked() -> None:
    with FakePlatform() as platform, client_of(platform) as client:
        run = client.runs.create(REQUEST, dataset=ROWS)
        client.runs.cancel(run["id"])
        with pytest.raises(RunFailed, match="run_0: cancelled"):
            client.runs.wait(run["id"])
        assert client.runs.wait(run["id"], check=False)["status"] == "cancelled"


def test_results_come_page_after_page() -> None:
    with FakePlatform() as platform, client_of(platform) as client:
        run = client.runs.create(REQUEST, dataset=ROWS)
        finish_all(platform, run["id"])
        rows = list(client.runs.results(run["id"], limit=2))
        assert [row["example_id"] for row in rows] == [0, 1, 2, 3, 4]
        assert rows[0]["metrics"] == {"right": 1.0, "length": 3.0}
        assert sum(1 for method, path in platform.requests if path.endswith("/results")) == 3


def test_events_come_once_and_in_order_although_the_connection_breaks_off() -> None:
    with FakePlatform() as platform, client_of(platform) as client:
        run = client.runs.create(REQUEST, dataset=ROWS[:2])
        finish_all(platform, run["id"])
        events = list(client.runs.events(run["id"]))
        assert [(event["id"], event["event"]) for event in events] == [
            (1, "rollout.finished"),
            (2, "rollout.finished"),
            (3, "run.completed"),
        ]


def test_a_dataset_is_uploaded_as_lines_and_a_row_that_is_not_json_is_named() -> None:
    with FakePlatform() as platform, client_of(platform) as client:
        dataset = client.datasets.upload(ROWS, name="rows", environment="agent")
        assert platform.datasets[dataset["id"]] == ROWS
        with pytest.raises(ConfigError, match=r"rows\[1\]: is not JSON"):
            client.datasets.upload([{"a": 1}, {"a": float("nan")}])


def test_a_call_is_repeated_after_429_and_503_with_the_same_idempotency_key() -> None:
    keys: list[str] = []

    def answer(request: httpx.Request) -> httpx.Response:
        keys.append(request.headers["idempotency-key"])
        if len(keys) < 3:
            return httpx.Response(503 if len(keys) == 1 else 429, headers={"retry-after": "0"})
        return httpx.Response(202, json={"id": "run_0", "status": "queued"})

    http = httpx.Client(transport=httpx.MockTransport(answer))
    with Client("http://platform.test", KEY, http=http) as client:
        assert client.runs.create(REQUEST)["id"] == "run_0"
    http.close()
    assert len(keys) == 3
    assert len(set(keys)) == 1


def test_a_refusal_has_its_code_and_field_and_is_not_repeated() -> None:
    with FakePlatform() as platform, client_of(platform) as client:
        with pytest.raises(ApiError, match="dataset: is required") as refused:
            client.runs.create(REQUEST)
        assert (refused.value.status, refused.value.code, refused.value.param) == (400, "invalid_request", "dataset")
        assert len(platform.requests) == 1


def test_a_request_that_is_not_json_is_refused_and_odd_texts_arrive_unchanged() -> None:
    with FakePlatform() as platform, client_of(platform) as client:
        with pytest.raises(ConfigError, match="cannot be written as JSON"):
            client.runs.create(REQUEST, dataset=[{"score": float("inf")}])
        run = client.runs.create(REQUEST, dataset=[{"prompt": "\ud800 é"}])
        assert platform.of_run(run["id"])[0].task == {"prompt": "\ud800 é"}


def test_a_long_retry_after_is_an_error_with_its_time() -> None:
    with FakePlatform() as platform, client_of(platform) as client:
        platform.fail_next.append(("/v1/runs", 429, {"retry-after": "3600"}))
        with pytest.raises(ApiError) as refused:
            client.runs.get("run_0")
        assert refused.value.retry_after == 3600


def test_a_reply_that_is_not_from_rollcall_is_unreadable() -> None:
    http = httpx.Client(transport=httpx.MockTransport(lambda request: httpx.Response(404, text="<html>")))
    with Client("http://platform.test", KEY, http=http) as client, pytest.raises(ApiError, match="404 unreadable"):
        client.runs.get("run_0")
    http.close()


@pytest.mark.parametrize(
    ("reply", "message"),
    [
        (httpx.Response(200, text="<html>"), "200 unreadable: the reply is not JSON"),
        (
            httpx.Response(308, headers={"location": "https://platform.test/v1/runs/run_0"}),
            "308 unreadable: the address redirects; use the address it redirects to: https://platform.test",
        ),
    ],
)
def test_a_page_and_a_redirect_are_errors_that_say_what_they_are(reply: httpx.Response, message: str) -> None:
    http = httpx.Client(transport=httpx.MockTransport(lambda request: reply))
    with Client("http://platform.test", KEY, http=http) as client, pytest.raises(ApiError, match=message):
        client.runs.get("run_0")
    http.close()


def test_help_shows_the_parameters_and_the_text_of_a_method() -> None:
    for runs in (Client("http://platform.test", KEY).runs, AsyncClient("http://platform.test", KEY).runs):
        assert list(inspect.signature(runs.wait).parameters) == ["run_id", "timeout", "on_progress", "check"]
        assert (runs.wait.__doc__ or "").startswith("Waits until the run has ended.")


def test_a_client_without_a_key_says_what_to_set(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ROLLCALL_API_KEY", raising=False)
    with pytest.raises(ConfigError, match="api_key: is required: pass it, or set ROLLCALL_API_KEY"):
        Client("http://platform.test")


def test_the_async_client_does_the_same() -> None:
    async def use(platform: FakePlatform) -> None:
        async with AsyncClient(platform.url, KEY) as client:
            run = await client.runs.create(REQUEST, dataset=ROWS)
            finish_all(platform, run["id"])
            assert (await client.runs.wait(run["id"]))["status"] == "completed"
            assert len([row async for row in client.runs.results(run["id"], limit=2)]) == 5
            assert [event["id"] async for event in client.runs.events(run["id"])] == [1, 2, 3, 4, 5, 6]
            assert [each["id"] async for each in client.runs.list()] == ["run_0"]

    with FakePlatform() as platform:
        asyncio.run(use(platform))


def test_a_frame_without_pandas_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pandas", None)
    with FakePlatform() as platform, client_of(platform) as client:
        run = client.runs.create(REQUEST, dataset=ROWS)
        with pytest.raises(ConfigError, match="pip install pandas"):
            client.runs.frame(run["id"])
