"""Uses a generated client against a platform: python use_client.py FOLDER URL KEY MODEL_URL. Prints one JSON object.

FOLDER holds the package `rollcall_client` as openapi-python-client writes it.
"""

import importlib
import json
import pkgutil
import sys

folder, url, key, model_url = sys.argv[1:]
sys.path.insert(0, folder)

import rollcall_client

modules = [name for _, name, _ in pkgutil.walk_packages(rollcall_client.__path__, "rollcall_client.")]
for name in modules:
    importlib.import_module(name)

from rollcall_client import AuthenticatedClient
from rollcall_client.api.environments import list_environments
from rollcall_client.api.runs import create_run, get_run, list_results, list_runs, stream_events
from rollcall_client.models import Error, EvalRequest, InlineEndpoint, ResultRow, RunEndedEvent, TrainingRequest

client = AuthenticatedClient(base_url=url, token=key)
endpoint = InlineEndpoint(base_url=model_url)
request = EvalRequest(environment="calculator", model="m", endpoint=endpoint, num_examples=2)
made = create_run.sync(client=client, body=request)
http = client.get_httpx_client()

# An event of the stream consists of its fields, up to an empty line.
events, fields = [], {}
with http.stream(**stream_events._get_kwargs(made.id)) as reply:
    for line in reply.iter_lines():
        name, _, value = line.partition(": ")
        if line == "" and "event" in fields:
            events.append({"id": int(fields["id"]), "event": fields["event"], "data": json.loads(fields["data"])})
        fields = {} if line == "" else {**fields, name: value}
ended = RunEndedEvent.from_dict(events[-1])

with http.stream(**list_results._get_kwargs(made.id)) as reply:
    rows = [ResultRow.from_dict(json.loads(line)) for line in reply.iter_lines()]

run = get_run.sync(made.id, client=client)
refused = create_run.sync(client=client, body=EvalRequest(environment="nope", model="m", endpoint=endpoint))
training = TrainingRequest.from_dict(
    {"kind": "training", "environment": "calculator", "model": "m", "endpoint": {"base_url": model_url}, "max_steps": 1}
)
print(
    json.dumps(
        {
            "modules": len(modules),
            "status": run.status,
            "scored": run.counts.scored,
            "interval": run.report.reward.ci95,
            "ended": ended.data.status,
            "events": [event["event"] for event in events],
            "rows": [row.reward for row in rows],
            "listed": [one.id == made.id for one in list_runs.sync(client=client).data],
            "environments": [one.id for one in list_environments.sync(client=client).data],
            "refused": refused.error.code if isinstance(refused, Error) else None,
            "training": training.to_dict(),
        }
    )
)
