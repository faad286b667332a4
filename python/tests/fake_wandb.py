"""The server of Weights & Biases as far as its own library needs it, with the replies that it gave to wandb 0.31.

It keeps the rows of each run's history and its summary, so a run can be resumed.
"""

from __future__ import annotations

import gzip
import json
import threading
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

ENTITY = {"id": "RW50aXR5", "name": "team"}
KEY = "0123456789abcdef" * 2 + "01234567"
"""A key has 40 characters."""


@dataclass
class TrackedRun:
    history: list[str] = field(default_factory=list)
    summary: str = "{}"
    config: str = "{}"
    exit_code: int | None = None

    @property
    def rows(self) -> list[dict[str, Any]]:
        """Without W&B's own times."""
        rows = [json.loads(line) for line in self.history]
        return [{name: row[name] for name in row if name not in ("_timestamp", "_runtime")} for row in rows]


class FakeWandb:
    """`with FakeWandb() as wandb:` serves on `wandb.url` until the block ends."""

    def __init__(self) -> None:
        self.runs: dict[str, TrackedRun] = {}
        self.changed = threading.Condition()
        fake = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *arguments: object) -> None:
                """Prints nothing."""

            def reply(self) -> None:
                body = self.rfile.read(int(self.headers.get("content-length") or 0))
                if self.headers.get("content-encoding") == "gzip":
                    body = gzip.decompress(body)
                content = json.dumps(fake.answer(self.path, body)).encode()
                self.send_response(200)
                self.send_header("content-type", "application/json")
                self.send_header("content-length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

            do_GET = do_POST = do_PUT = reply

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"

    def __enter__(self) -> FakeWandb:
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    def wait_until(self, rows: int, run: str) -> None:
        """Blocks until the history of the run has so many rows."""
        with self.changed:
            self.changed.wait_for(lambda: run in self.runs and len(self.runs[run].history) >= rows)

    def answer(self, path: str, body: bytes) -> dict[str, Any]:
        with self.changed:
            if path.endswith("/graphql"):
                asked = json.loads(body)
                data = self._graphql(asked["operationName"], asked.get("variables") or {})
                return {"data": data}
            if path.endswith("/file_stream"):
                self._stream(path.split("/")[-2], json.loads(body))
                self.changed.notify_all()
            return {}

    def _graphql(self, operation: str, variables: dict[str, Any]) -> dict[str, Any]:
        if operation == "Viewer":
            user = {"id": "VXNlcg", "entity": "team", "username": "ann", "email": "ann@example.com"}
            return {"viewer": {**user, "flags": "{}", "teams": {"edges": []}}}
        project = {"id": "UHJvamVjdA", "name": variables.get("project"), "entity": ENTITY}
        if operation == "RunResumeStatus":
            return {"model": {**project, "bucket": self._resumed(variables["name"])}}
        if operation == "UpsertBucket":
            name = variables["name"]
            inserted = name not in self.runs
            run = self.runs.setdefault(name, TrackedRun())
            run.config = variables["config"] or run.config
            shown = {"id": name, "name": name, "displayName": variables["displayName"] or name, "description": None}
            bucket = {**shown, "config": run.config, "sweepName": None, "project": project}
            return {
                "upsertBucket": {
                    "bucket": {**bucket, "historyLineCount": len(run.history)},
                    "inserted": inserted,
                }
            }
        if operation == "CreateRunFiles":
            files = [{"name": name, "uploadUrl": f"{self.url}/upload/{name}"} for name in variables["files"]]
            return {"createRunFiles": {"runID": variables["run"], "uploadHeaders": [], "files": files}}
        if operation == "OrganizationCoreWeaveOrganizationID":
            return {"entity": {"organization": None}}
        raise AssertionError(f"the library sent {operation}, which was never recorded")

    def _resumed(self, name: str) -> dict[str, Any] | None:
        run = self.runs.get(name)
        if run is None:
            return None
        return {
            **{"id": name, "name": name, "displayName": name, "summaryMetrics": run.summary, "config": run.config},
            **{"logLineCount": 0, "eventsLineCount": 0, "eventsTail": "[]", "tags": [], "notes": None},
            **{"historyLineCount": len(run.history), "historyTail": json.dumps(run.history[-1:])},
            "wandbConfig": json.dumps({"t": 1}),
        }

    def _stream(self, name: str, sent: dict[str, Any]) -> None:
        run = self.runs[name]
        files = sent.get("files") or {}
        history = files.get("wandb-history.jsonl")
        if history is not None:
            run.history[history["offset"] :] = history["content"]
        summary = files.get("wandb-summary.json")
        if summary is not None:
            run.summary = summary["content"][-1]
        if sent.get("complete"):
            run.exit_code = sent.get("exitcode")
