"""The trainer of a training run: lease batches, read them, acknowledge them, report weights (docs/training.md).

    trainer = Trainer(run_id, token=os.environ["ROLLCALL_TRAINER_TOKEN"])
    trainer.register(version=checkpoint.version, last_acked=checkpoint.last_acked)
    for batch in trainer.batches():
        loss = step([sample.numpy() for sample in batch.samples])
        checkpoint.save(batch.version, batch.proof)
        batch.ack(metrics={"loss": loss})
        engine.load(batch.version)
        trainer.report(batch.version, "applied", replica="gpu-0")

Every request may be repeated, and is, as by the client. A heartbeat in a thread keeps the lease of the batch.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Literal

import httpx

from .calls import json_of, path
from .errors import ApiError, RollcallError, retry_after_of
from .samples import Sample, check_digest, digest_of, rows_of, samples_of
from .transport import Call, Settings, Transport

__all__ = ["Batch", "LeaseLost", "Sample", "Trainer"]

LEASE_WAIT_S = 30
HEARTBEATS_A_LEASE = 3
LONGEST_BEAT_S = 60.0
LONGEST_PAUSE_S = 5.0
DOWNLOAD_S = 600.0
State = Literal["pending", "published", "applied", "failed"]


class LeaseLost(RollcallError):
    """The lease of a batch ended, and another trainer may have it: do not acknowledge the batch."""


@dataclass(frozen=True)
class Batch:
    """A leased batch. Training it makes weights of `version`, which is its step."""

    trainer: Trainer
    step: int
    manifest: Mapping[str, Any]
    lease: Mapping[str, Any]
    samples: list[Sample]

    @property
    def version(self) -> int:
        return self.step

    @property
    def proof(self) -> dict[str, str]:
        """What a checkpoint keeps: pass it to `register` as `last_acked`."""
        return {"batch_id": self.manifest["batch_id"], "sha256": self.manifest["sha256"]}

    def ack(self, *, metrics: Mapping[str, float] | None = None, published: Mapping[str, Any] | None = None) -> None:
        """Reports the batch as trained, after the checkpoint, and its weights as published: `{"location": …}`."""
        self.trainer.acknowledge(self, metrics or {}, published or {})

    def give_back(self, reason: str, message: str = "", *, retryable: bool = True) -> None:
        """Offers the batch again. Reasons: `oom`, `decode`, `stale`, `shutdown`, `invalid`."""
        self.trainer.give_back(self, reason, message, retryable=retryable)


class Trainer:
    """One trainer of one run. `token` is the run's trainer token, or a key of the project."""

    def __init__(
        self,
        run_id: str,
        *,
        base_url: str | None = None,
        token: str | None = None,
        trainer_id: str = "t0",
        kind: str = "rollcall-python",
        http: httpx.Client | None = None,
    ) -> None:
        self._transport = Transport(Settings.of(base_url, token, max_retries=5), http)
        self._run = run_id
        self._trainer_id = trainer_id
        self._kind = kind
        self.epoch = 0
        self.next_step = 1
        self._leased: Batch | None = None

    def __enter__(self) -> Trainer:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._transport.close()

    def register(
        self, *, version: int = 0, last_acked: Mapping[str, str] | None = None, reset_to: int | None = None
    ) -> dict[str, Any]:
        """Takes the run over with weights of `version`. An earlier trainer is refused from now on."""
        body: dict[str, Any] = {"kind": self._kind, "protocol": "rl.batch/1", "version": version}
        for name, value in (("last_acked", last_acked), ("reset_to", reset_to)):
            if value is not None:
                body[name] = value
        reply: dict[str, Any] = json_of(self._post("register", {"trainer_id": self._trainer_id, **body}))
        self.epoch, self.next_step = reply["epoch"], reply["next_step"]
        return reply

    def batches(self) -> Iterator[Batch]:
        """The batches in the order of their steps, until the run has ended. Each is leased, read and kept alive.

        Raises `LeaseLost` if a lease ended while its batch was trained. A batch that is not acknowledged when the loop
        asks for the next one is an error.
        """
        while True:
            batch = self.lease()
            if batch is None:
                return
            with self._kept(batch):
                yield batch
            if self._leased is batch:
                raise RollcallError(f"the batch of step {batch.step} was neither acknowledged nor given back")

    def lease(self) -> Batch | None:
        """Waits for the next batch, and reads it. None: the run has ended. The caller keeps its lease alive."""
        while True:
            body = {"trainer_id": self._trainer_id, "want_step": self.next_step, "max_wait_s": LEASE_WAIT_S}
            try:
                reply = self._post("lease", body, timeout=LEASE_WAIT_S + 60.0)
            except ApiError as error:
                if error.status == 410:
                    return None
                raise
            if reply.status_code == 204:
                time.sleep(min(retry_after_of(reply) or 0.0, LONGEST_PAUSE_S))
                continue
            leased = json_of(reply)
            manifest = leased["manifest"]
            self._leased = Batch(self, manifest["step"], manifest, leased["lease"], self.read(manifest))
            return self._leased

    def read(self, manifest: Mapping[str, Any]) -> list[Sample]:
        """The samples of a batch, leased or not. Raises `DigestMismatch` if what came is not what the manifest says."""
        if digest_of(manifest) != manifest["sha256"]:
            raise RollcallError(f"the manifest of step {manifest['step']} is not what its digest says")
        batch = ("batches", str(manifest["step"]))
        rows = []
        for each in manifest["objects"]:
            data = self._get(*batch, "objects", each["sha256"])
            rows += rows_of(check_digest(data, each["sha256"]), each["format"])
        credits = check_digest(self._get(*batch, "credits"), manifest["credits"]["sha256"])
        return samples_of(rows, [json.loads(line) for line in credits.splitlines() if line])

    def acknowledge(self, batch: Batch, metrics: Mapping[str, float], published: Mapping[str, Any]) -> None:
        body = {
            **self._proof(batch),
            **batch.proof,
            "produced_version": batch.version,
            "metrics": dict(metrics),
            "published": dict(published),
        }
        reply = json_of(self._transport.send(self._json(path("leases", batch.lease["id"], "ack"), body)))
        self.next_step, self._leased = reply["next_step"], None

    def give_back(self, batch: Batch, reason: str, message: str, *, retryable: bool) -> None:
        body = {**self._proof(batch), "reason": reason, "retryable": retryable, "message": message}
        self._transport.send(self._json(path("leases", batch.lease["id"], "nack"), body))
        self._leased = None

    def heartbeat(self, batch: Batch) -> None:
        """Keeps the lease. Raises `ApiError` with the code `lease_lost` if it is over."""
        self._transport.send(self._json(path("leases", batch.lease["id"], "heartbeat"), self._proof(batch)))

    def report(self, version: int, state: State, *, replica: str | None = None, label: str | None = None) -> None:
        """Reports weights: `published` once engines can load them, `applied` once a replica samples with them."""
        body: dict[str, Any] = {"version": version, "state": state, "epoch": self.epoch}
        for name, value in (("replica", replica), ("label", label)):
            if value is not None:
                body[name] = value
        self._transport.send(self._json(path("runs", self._run, "weight-versions"), body))

    def _proof(self, batch: Batch) -> dict[str, Any]:
        return {"token": batch.lease["token"], "epoch": self.epoch}

    def _post(self, action: str, body: Mapping[str, Any], timeout: float | None = None) -> httpx.Response:
        given = body if action == "register" else {"epoch": self.epoch, **body}
        return self._transport.send(self._json(path("runs", self._run, "trainer", action), given, timeout))

    @staticmethod
    def _json(address: str, body: Mapping[str, Any], timeout: float | None = None) -> Call:
        """Metrics may be NaN or infinite here, as Python's json writes them."""
        content = json.dumps(body).encode()
        return Call("POST", address, content=content, headers={"content-type": "application/json"}, timeout=timeout)

    def _get(self, *parts: str) -> bytes:
        return self._transport.send(Call("GET", path("runs", self._run, *parts), timeout=DOWNLOAD_S)).content

    @contextmanager
    def _kept(self, batch: Batch) -> Iterator[None]:
        """Heartbeats in a thread while the block runs. Raises `LeaseLost` at its end if the lease was lost."""
        over = threading.Event()
        lost: list[ApiError] = []

        def beat() -> None:
            left = float(batch.lease["expires_at"]) - time.time()
            while not over.wait(min(max(left / HEARTBEATS_A_LEASE, 1.0), LONGEST_BEAT_S)):
                try:
                    self.heartbeat(batch)
                except ApiError as error:
                    if error.status < 500 and error.status != 429:
                        lost.append(error)
                        return
                except httpx.TransportError:
                    continue  # The next heartbeat may arrive; the lease lasts for three.

        thread = threading.Thread(target=beat, name="rollcall-heartbeat", daemon=True)
        thread.start()
        try:
            yield
        finally:
            over.set()
            thread.join()
        if lost and self._leased is batch:
            raise LeaseLost(str(lost[0]))
