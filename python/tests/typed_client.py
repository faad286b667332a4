"""Checked by mypy, never run: the methods of both clients have the types of their plans."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from typing import assert_type

from rollcall.client import AsyncClient, Client
from rollcall.types import Comparison, Dataset, Event, ResultRow, Run


def use(client: Client) -> None:
    assert_type(client.runs.create({"model": "m"}, seed=1), Run)
    assert_type(client.runs.wait("run_1", timeout=1.0, check=False), Run)
    assert_type(client.runs.list(limit=2), Iterator[Run])
    assert_type(client.runs.results("run_1", outcome="failed"), Iterator[ResultRow])
    assert_type(client.runs.compare("run_1", "run_2", metric="reward"), Comparison)
    assert_type(client.runs.events("run_1", after=3), Iterator[Event])
    assert_type(client.datasets.upload([{"a": 1}], name="rows"), Dataset)
    client.runs.get()  # type: ignore[call-arg]
    client.runs.wait("run_1", tiemout=1.0)  # type: ignore[call-arg]
    client.datasets.get(5)  # type: ignore[arg-type]


async def use_async(client: AsyncClient) -> None:
    assert_type(await client.runs.create({"model": "m"}, seed=1), Run)
    assert_type(await client.runs.wait("run_1", timeout=1.0, check=False), Run)
    assert_type(client.runs.list(limit=2), AsyncIterator[Run])
    assert_type(client.runs.results("run_1", outcome="failed"), AsyncIterator[ResultRow])
    assert_type(client.runs.events("run_1", after=3), AsyncIterator[Event])
    assert_type(await client.datasets.get("rows"), Dataset)
    await client.runs.get(5)  # type: ignore[arg-type]
