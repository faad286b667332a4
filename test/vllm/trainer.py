"""
A trainer with the protocol of docs/training.md that checks its batches: `python trainer.py`.

It reads an assignment from each line of stdin and writes one line for it, `{"ok": …}` or `{"error": …}`:

  {"do": "serve", "engine", "weights"}          the engine serves these weights from now on; ok is true
  {"do": "train", "engine", "weights", "url", "run", "token", "folder", "learning_rate", "reset_after"}
                                                a training run to its end; ok is a list, an entry for each batch

For each batch it recomputes every trainable token's logprob with Hugging Face's model and the weights of the version
that the batch trains, and reports how far the ratio exp(recomputed - sampled) is from 1. Then it makes a step by the
batch's advantages, writes the weights to a folder of their version, has the engine load them and reports them.

`reset_after`: the batch after which it goes back to version 0, once, and learns at half the rate from there on.
`keep_prefix_cache`: the engine's cache of what older weights computed is not reset.
"""

import copy
import gzip
import hashlib
import json
import os
import sys
import urllib.error
import urllib.parse
import urllib.request

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer
from transformers.utils import logging

ALLOWED = 1e-5
ME = {"trainer_id": "suite", "kind": "test/vllm", "protocol": "rl.batch/1"}


def request(url, body=None, token=None, timeout=120):
    """Status and bytes; throws if there is no answer."""
    data = None if body is None else json.dumps(body).encode()
    headers = {"content-type": "application/json"} | ({"authorization": f"Bearer {token}"} if token else {})
    method = "GET" if body is None else "POST"
    try:
        asked = urllib.request.Request(url, data, headers, method=method)
        with urllib.request.urlopen(asked, timeout=timeout) as reply:
            return reply.status, reply.read()
    except urllib.error.HTTPError as error:
        return error.code, error.read()


def serve(engine, weights, keep_prefix_cache=False, loaded=None, **_):
    """
    Loads other weights into the engine, between two requests, as docs/vllm.md describes. `loaded` is called before the
    engine takes requests again.
    """
    reload = {"method": "reload_weights", "kwargs": {"weights_path": weights}}
    calls = [("pause?mode=wait", {}), ("collective_rpc", reload), ("reset_prefix_cache", {}), ("resume", {})]
    if keep_prefix_cache:
        calls = [("pause?mode=wait&clear_cache=false", {}), ("collective_rpc", reload), ("resume", {})]
    for path, body in calls:
        if path == "resume" and loaded is not None:
            loaded()
        status, reply = request(f"{engine}/{path}", body)
        if status != 200:
            raise RuntimeError(f"{engine}/{path}: {status} {reply.decode()}")
    return True


class Contract:
    """A client of the run's routes in docs/training.md. Every refusal is thrown."""

    def __init__(self, url, run, token):
        self.root, self.run, self.token = f"{url}/v1", f"runs/{run}", token
        self.epoch = 0

    def say(self, path, body):
        status, reply = request(f"{self.root}/{path}", body, self.token)
        if status >= 400:
            raise RuntimeError(f"{path}: {status} {reply.decode()}")
        return json.loads(reply)

    def register(self, version, **over):
        registered = self.say(f"{self.run}/trainer/register", {**ME, "version": version, **over})
        self.epoch = registered["epoch"]

    def lease(self, step):
        """Lease and manifest of the batch of this step; None if the run has ended."""
        asked = {"trainer_id": ME["trainer_id"], "epoch": self.epoch, "want_step": step, "max_wait_s": 30}
        while True:
            status, reply = request(f"{self.root}/{self.run}/trainer/lease", asked, self.token)
            if status == 410:
                return None
            if status >= 400:
                raise RuntimeError(f"lease: {status} {reply.decode()}")
            if status != 204:
                return json.loads(reply)

    def fetch(self, step, path, sha256):
        data = request(f"{self.root}/{self.run}/batches/{step}/{path}", None, self.token)[1]
        if hashlib.sha256(data).hexdigest() != sha256:
            raise RuntimeError(f"{path} of batch {step} is not what its digest says")
        return data

    def read(self, manifest):
        """Rows, and the advantage of each by its id."""
        rows = []
        for each in manifest["objects"]:
            text = gzip.decompress(self.fetch(manifest["step"], f"objects/{each['sha256']}", each["sha256"]))
            rows += [json.loads(line) for line in text.splitlines()]
        credits = self.fetch(manifest["step"], "credits", manifest["credits"]["sha256"])
        lines = [json.loads(line) for line in credits.splitlines()]
        return rows, {line["sample_id"]: line["advantage"] for line in lines}

    def acknowledge(self, lease, manifest):
        body = {"token": lease["token"], "epoch": self.epoch, "produced_version": manifest["step"]}
        named = {"batch_id": manifest["batch_id"], "sha256": manifest["sha256"]}
        self.say(f"leases/{lease['id']}/ack", body | named)

    def report(self, version, state):
        body = {"version": version, "state": state, "epoch": self.epoch, "replica": "engine"}
        self.say(f"{self.run}/weight-versions", body)


def logprobs_of(model, row):
    """The logprobs of the row's trainable tokens, given the tokens before each, at their sampling temperature."""
    ids = torch.tensor(row["token_ids"])
    trained = torch.tensor(row["mask"]).nonzero().flatten()
    logits = model(ids[None]).logits[0, trained - 1] / row["temperature"]
    return torch.log_softmax(logits, -1).gather(1, ids[trained, None])[:, 0], trained


def turns_of(row):
    """For each turn, the ids between the tokens sampled before it and those sampled in it."""
    given = []
    for id, sampled in zip(row["token_ids"], row["mask"]):
        if sampled and given:
            yield given
        given = [] if sampled else [*given, id]


def judge(model, rows, manifest, tool):
    """
    How far the ratios are from 1, and over how many tokens; turns are spans of sampled tokens. `tool`: the ids that
    begin a tool's result. In 64-bit floats, so that all rounding is the engine's.
    """
    exact = copy.deepcopy(model).double()
    apart, turns = [], [given for row in rows for given in turns_of(row)]
    with torch.no_grad():
        for row in rows:
            recomputed, trained = logprobs_of(exact, row)
            sampled = torch.tensor(row["logprobs"], dtype=torch.float64)[trained]
            apart.append(((recomputed - sampled).exp() - 1).abs())
    apart = torch.cat(apart)
    return {
        "step": manifest["step"],
        "generation": manifest["generation"],
        "lag": manifest["train_version"] - manifest["min_policy_version"],
        "samples": len(rows),
        "turns": len(turns),
        "answered": sum(any(given[at : at + len(tool)] == tool for at in range(len(given))) for given in turns),
        "tokens": len(apart),
        "worst": apart.max().item(),
        "beyond": int((apart > ALLOWED).sum()),
    }


def step(model, rows, advantages, learning_rate):
    """Follows the policy gradient, with a step of the length `learning_rate` in the space of the weights."""
    model.zero_grad()
    for row in rows:
        (-advantages[row["sample_id"]] * logprobs_of(model, row)[0].sum()).backward()
    parameters = list(model.parameters())
    norm = torch.nn.utils.get_total_norm([each.grad for each in parameters]).item()
    if norm == 0:
        raise RuntimeError("a batch without any gradient: its weights would tell nothing")
    with torch.no_grad():
        for each in parameters:
            each -= learning_rate / norm * each.grad


def train(url, run, token, folder, learning_rate, weights, reset_after=None, **to):
    contract = Contract(url, run, token)
    contract.register(0)
    contract.report(0, "applied")
    tool = AutoTokenizer.from_pretrained(weights)("<|im_start|>tool").input_ids
    model, version, judged = load(weights), 0, []
    while (leased := contract.lease(version + 1)) is not None:
        lease, manifest = leased["lease"], leased["manifest"]
        rows, advantages = contract.read(manifest)
        judged.append(judge(model, rows, manifest, tool))
        step(model, rows, advantages, learning_rate)
        version = manifest["step"]
        written = os.path.join(folder, f"{manifest['generation']}-{version}")
        model.save_pretrained(written)
        contract.acknowledge(lease, manifest)
        contract.report(version, "published")
        serve(weights=written, loaded=lambda: contract.report(version, "applied"), **to)
        if version == reset_after:
            contract.register(0, reset_to=0)
            serve(weights=weights, loaded=lambda: contract.report(0, "applied"), **to)
            model, version, reset_after, learning_rate = load(weights), 0, None, learning_rate / 2
    return judged


def load(folder):
    return AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()


def main():
    torch.set_num_threads(1)
    logging.disable_progress_bar()
    for line in sys.stdin:
        assignment = json.loads(line)
        do = {"serve": serve, "train": train}[assignment.pop("do")]
        try:
            answer = {"ok": do(**assignment)}
        except (RuntimeError, OSError) as error:
            answer = {"error": str(error)}
        print(json.dumps(answer), flush=True)


main()
