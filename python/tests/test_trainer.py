"""The trainer's side of the contract: rows of both encodings, digests, leases, acknowledgements."""

from __future__ import annotations

import gzip
import hashlib
import json
import struct
from typing import Any

import httpx
import pytest

from rollcall.errors import ConfigError, RollcallError
from rollcall.msgpack import unpack_all
from rollcall.samples import DigestMismatch, Sample, digest_of, rows_of
from rollcall.trainer import LeaseLost, Trainer

ROW = {
    "schema": "rl.sample/1",
    "sample_id": "s_01",
    "rollout_id": "r_01",
    "group_id": "g_01",
    "token_ids": [10, 11, 12, 20, 21, 30, 22],
    "mask": [0, 0, 0, 1, 1, 0, 1],
    "logprobs": [0, 0, 0, -0.5, -0.25, 0, -1],
    "policy_version_start": 3,
}
CREDIT = {"sample_id": "s_01", "reward": 1.0, "advantage": 0.5, "outcome": "scored"}
BYTES = {
    "token_ids": ("int32", "0a0000000b0000000c00000014000000150000001e00000016000000"),
    "mask": ("uint8", "00000001010001"),
    "logprobs": ("float32", "000000000000000000000000000000bf000080be00000000000080bf"),
}


def pack(value: Any) -> bytes:
    """MessagePack of what rows have: short maps, lists, texts, bytes and small numbers."""
    if isinstance(value, dict):
        return bytes([0x80 | len(value)]) + b"".join(pack(key) + pack(each) for key, each in value.items())
    if isinstance(value, list):
        return bytes([0x90 | len(value)]) + b"".join(pack(each) for each in value)
    if isinstance(value, bytes):
        return b"\xc4" + bytes([len(value)]) + value
    if isinstance(value, str):
        return b"\xd9" + bytes([len(value.encode())]) + value.encode()
    return bytes([value])


def test_rows_of_both_encodings_are_equal() -> None:
    arrays = {name: {"dtype": kind, "shape": [7], "data": bytes.fromhex(text)} for name, (kind, text) in BYTES.items()}
    packed = gzip.compress(pack({**ROW, **arrays}))
    lines = gzip.compress(json.dumps(ROW).encode() + b"\n")
    assert rows_of(packed, "rl.sample/1+msgpack+gzip") == rows_of(lines, "rl.sample/1+jsonl+gzip") == [ROW]


def test_every_type_of_a_row_is_read_and_a_cut_is_an_error() -> None:
    data = b"\xc0\xc2\xc3\xff\xcd\x01\x00\xd1\xff\x00\xca" + struct.pack(">f", 0.5) + b"\xcb" + struct.pack(">d", 0.25)
    assert list(unpack_all(data)) == [None, False, True, -1, 256, -256, 0.5, 0.25]
    assert list(unpack_all(b"\xdc\x00\x02\x01\x02\xa1x")) == [[1, 2], "x"]
    for cut in (b"\xcd\x01", b"\xc4\x05ab", b"\x82\x01"):
        with pytest.raises(ValueError, match="cut off"):
            list(unpack_all(cut))
    with pytest.raises(ValueError, match="nested deeper"):
        list(unpack_all(b"\x91" * 100))


def test_the_digest_of_a_manifest_is_that_of_the_documentation() -> None:
    objects = [{"sha256": hashlib.sha256(each).hexdigest()} for each in (b"a", b"b")]
    assert digest_of({"objects": objects}) == "e5a01fee14e0ed5c48714f22180f25ad8365b53f9779f79dc4a3d7e93963f94a"


def test_a_sample_becomes_arrays_with_the_advantage_where_the_policy_sampled() -> None:
    numpy = pytest.importorskip("numpy")
    parts = {name: ROW[name] for name in ("sample_id", "rollout_id", "group_id", "token_ids", "mask", "logprobs")}
    arrays = Sample(**parts, reward=1.0, advantage=0.5, weight=1.5).numpy()  # type: ignore[arg-type]
    assert arrays["advantages"].tolist() == [0, 0, 0, 0.5, 0.5, 0, 0.5]
    assert arrays["weights"].tolist() == [0, 0, 0, 1.5, 1.5, 0, 1.5]
    assert {name: each.dtype for name, each in arrays.items()} == {
        "token_ids": numpy.int32,
        "mask": numpy.uint8,
        "logprobs": numpy.float32,
        "advantages": numpy.float32,
        "weights": numpy.float32,
    }
    with pytest.raises(ConfigError, match="advantage: is null"):
        Sample(**parts, reward=1.0, advantage=None).numpy()  # type: ignore[arg-type]


class Ledger:
    """The platform's side: two batches, of which each is leased until it is acknowledged."""

    def __init__(self) -> None:
        self.object = gzip.compress(json.dumps(ROW).encode())
        self.credits = json.dumps(CREDIT).encode()
        self.acked = 0
        self.calls: list[tuple[str, dict[str, Any]]] = []
        self.lost = False
        self.empty_once = True

    def manifest(self, step: int) -> dict[str, Any]:
        form = "rl.sample/1+jsonl+gzip"
        manifest: dict[str, Any] = {
            "step": step,
            "batch_id": f"bat_{step}",
            "objects": [{"sha256": hashlib.sha256(self.object).hexdigest(), "format": form}],
            "credits": {"sha256": hashlib.sha256(self.credits).hexdigest()},
        }
        return {**manifest, "sha256": digest_of(manifest)}

    def answer(self, request: httpx.Request) -> httpx.Response:
        path = request.url.path
        body = json.loads(request.content) if request.content else {}
        self.calls.append((path.rsplit("/", 1)[-1], body))
        if path.endswith("/register"):
            return httpx.Response(200, json={"epoch": 1, "next_step": self.acked + 1, "published": 0})
        if path.endswith("/lease"):
            if self.acked == 2:
                return httpx.Response(410, json={"error": {"code": "run_finished", "message": "over"}})
            if self.empty_once:
                self.empty_once = False
                return httpx.Response(204, headers={"retry-after": "0"})
            lease = {"id": "ls_1", "token": "secret", "expires_at": 0}
            return httpx.Response(200, json={"lease": lease, "manifest": self.manifest(body["want_step"])})
        if path.endswith("/ack"):
            self.acked += 1
            return httpx.Response(200, json={"next_step": self.acked + 1})
        if path.endswith("/heartbeat") and self.lost:
            return httpx.Response(409, json={"error": {"code": "lease_lost", "message": "the lease is over"}})
        if "/objects/" in path:
            return httpx.Response(200, content=self.object)
        return httpx.Response(200, content=self.credits if path.endswith("/credits") else b"{}")


def trainer_of(ledger: Ledger) -> Trainer:
    http = httpx.Client(transport=httpx.MockTransport(ledger.answer))
    return Trainer("run_1", base_url="http://platform.test", token="rct_1", http=http)


def test_batches_are_leased_read_acknowledged_and_reported_in_order_until_the_run_ends() -> None:
    ledger = Ledger()
    trainer = trainer_of(ledger)
    trainer.register()
    seen = []
    for batch in trainer.batches():
        seen.append((batch.step, batch.samples[0].advantage, batch.samples[0].rest["policy_version_start"]))
        batch.ack(metrics={"loss": float("nan")}, published={"location": "s3://weights"})
        trainer.report(batch.version, "applied", replica="gpu-0")
    assert seen == [(1, 0.5, 3), (2, 0.5, 3)]
    ack = next(body for name, body in ledger.calls if name == "ack")
    assert (ack["token"], ack["epoch"], ack["batch_id"], ack["produced_version"]) == ("secret", 1, "bat_1", 1)
    report = next(body for name, body in ledger.calls if name == "weight-versions")
    assert report == {"version": 1, "state": "applied", "epoch": 1, "replica": "gpu-0"}


def test_a_batch_that_is_given_back_is_leased_again() -> None:
    ledger = Ledger()
    trainer = trainer_of(ledger)
    trainer.register()
    steps = []
    for batch in trainer.batches():
        steps.append(batch.step)
        if len(steps) == 1:
            batch.give_back("oom", "rows of 40k tokens")
        else:
            batch.ack()
    assert steps == [1, 1, 2]


def test_a_batch_that_is_forgotten_is_an_error() -> None:
    trainer = trainer_of(Ledger())
    trainer.register()
    with pytest.raises(RollcallError, match="step 1 was neither acknowledged nor given back"):
        for _ in trainer.batches():
            pass


def test_bytes_that_are_not_those_of_their_digest_are_refused() -> None:
    ledger = Ledger()
    manifest = ledger.manifest(1)
    ledger.object += b"\0"
    with pytest.raises(DigestMismatch):
        trainer_of(ledger).read(manifest)


def test_a_lost_lease_is_raised_when_the_step_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    import threading

    ledger = Ledger()
    ledger.lost = True
    trainer = trainer_of(ledger)
    trainer.register()
    beaten = threading.Event()
    heartbeat = trainer.heartbeat

    def beat(batch: Any) -> None:
        try:
            heartbeat(batch)
        finally:
            beaten.set()

    monkeypatch.setattr(trainer, "heartbeat", beat)
    with pytest.raises(LeaseLost, match="lease_lost"):
        for _ in trainer.batches():
            beaten.wait()
