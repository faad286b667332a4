"""A whole training in one file, with numpy: a policy, its server, and its trainer.

    python trainer.py URL KEY STEPS CHECKPOINT

The policy is a table: which token comes next, by the token before and the place in the reply. It is asked to say a
letter back and then to end. URL is a platform on this machine, KEY a key of it. README.md in this folder has more.
"""

import json
import os
import sys
import threading
import time
import urllib.error
import urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np

TOKENS = [".", "a", "b", "c", "d"]  # the first ends a reply
PLACES, RATE = 3, 40.0
URL, KEY, STEPS, CHECKPOINT = sys.argv[1:]

policy = {"version": 0, "table": np.zeros((PLACES, len(TOKENS), len(TOKENS))), "run": None, "last": None}


def log_softmax(logits):
    logits = logits - logits.max(-1, keepdims=True)
    return logits - np.log(np.exp(logits).sum(-1, keepdims=True))


class Server(BaseHTTPRequestHandler):
    """What training needs of an OpenAI-compatible engine: token ids, logprobs, and which weights sampled."""

    def do_GET(self):
        self.answer({"object": "list", "data": [{"id": "table", "object": "model"}]})

    def do_POST(self):
        asked = json.loads(self.rfile.read(int(self.headers["content-length"])))
        text = str(asked["messages"][-1]["content"])
        prompt = [next((TOKENS.index(letter) for letter in reversed(text) if letter in TOKENS), 0)]
        held, random = policy, np.random.default_rng()  # one version for the whole reply
        ids, logprobs = [], []
        while len(ids) < min(PLACES, asked.get("max_tokens") or PLACES) and 0 not in ids:
            scores = log_softmax(held["table"][len(ids), [*prompt, *ids][-1]] / asked.get("temperature", 1))
            ids.append(int(random.choice(len(TOKENS), p=np.exp(scores))))
            logprobs.append(float(scores[ids[-1]]))
        named = [{"token": f"token_id:{id}", "top_logprobs": []} for id in ids]
        content = [{**token, "logprob": logprob} for token, logprob in zip(named, logprobs)]
        message = {"role": "assistant", "content": "".join(TOKENS[id] for id in ids if id)}
        choice = {"index": 0, "message": message, "token_ids": ids, "logprobs": {"content": content}}
        choice["finish_reason"] = "stop" if 0 in ids else "length"
        usage = {"prompt_tokens": 1, "completion_tokens": len(ids), "total_tokens": 1 + len(ids)}
        sampled = {"prompt_token_ids": prompt, "weight_version": str(held["version"]), "choices": [choice]}
        self.answer({"id": "c", "object": "chat.completion", "model": "table", "usage": usage, **sampled})

    def answer(self, body):
        data = json.dumps(body).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_):
        pass


def ask(path, body=None):
    data = None if body is None else json.dumps(body).encode()
    headers = {"authorization": f"Bearer {KEY}", "content-type": "application/json"}
    while True:  # whatever is asked here may be asked again
        try:
            with urllib.request.urlopen(urllib.request.Request(f"{URL}/v1/{path}", data, headers), timeout=90) as reply:
                return reply.status, reply.read()
        except urllib.error.HTTPError as error:
            if error.code < 500:
                return error.code, error.read()
        except OSError:
            pass
        time.sleep(1)


def tell(path, body):
    status, reply = ask(path, body)
    if status >= 400:
        sys.exit(f"{path}: {reply.decode()}")
    return json.loads(reply)


def train(rows, table):
    """One step up the gradient of the mean of advantage * ratio; the ratio is 1 while the sampler has these weights."""
    gradient, ratios, tokens = np.zeros_like(table), [], sum(sum(row["mask"]) for row in rows)
    for row in rows:
        for at in np.flatnonzero(row["mask"]):
            place, before, said = at - 1, row["token_ids"][at - 1], row["token_ids"][at]
            scores = log_softmax(table[place, before])
            ratios.append(np.exp(scores[said] - row["logprobs"][at]))
            slope = -np.exp(scores)
            slope[said] += 1
            gradient[place, before] += row["advantage"] * ratios[-1] * slope / tokens
    kl = float(np.mean(np.array(ratios) - 1 - np.log(ratios)))  # 0 where the ratio is 1, never below
    return table + RATE * gradient, {"ratio": float(np.mean(ratios)), "kl": kl, "tokens": tokens}


def save():
    with open(CHECKPOINT + ".tmp", "w") as file:
        json.dump({**policy, "table": policy["table"].tolist()}, file)
    os.replace(CHECKPOINT + ".tmp", CHECKPOINT)


def create_run(port):
    said = {"type": "string_check", "input": "{{ sample.output_text }}", "reference": "{{ item.letter }}"}
    graders = [{**said, "name": "said", "operation": "like"}, {**said, "name": "only", "operation": "eq"}]
    return tell("runs", {
        "kind": "training", "environment": "graded-dataset", "model": "table", "max_steps": int(STEPS),
        "environment_args": {"template": "Say {{ item.letter }}", "graders": graders},
        "dataset": [{"letter": letter} for letter in TOKENS[1:]],
        "endpoint": {"base_url": f"http://127.0.0.1:{port}/v1"},
        "sampling": {"max_tokens": PLACES}, "group_size": 16, "batch_size": {"rollouts": 64},
        "filters": {"zero_variance": "keep"},
    })["id"]


if os.path.exists(CHECKPOINT):
    policy = json.load(open(CHECKPOINT))
    policy["table"] = np.array(policy["table"])
server = ThreadingHTTPServer(("127.0.0.1", policy.get("port", 0)), Server)
threading.Thread(target=server.serve_forever, daemon=True).start()
policy["port"] = server.server_port
policy["run"] = run = policy["run"] or create_run(server.server_port)
save()
me = {"trainer_id": "t0", "kind": "minimal", "protocol": "rl.batch/1"}
known = {"version": policy["version"], "last_acked": policy["last"]}
epoch = tell(f"runs/{run}/trainer/register", {**me, **known})["epoch"]


def report(version, state):
    tell(f"runs/{run}/weight-versions", {"version": version, "state": state, "epoch": epoch, "replica": "self"})


for state in ["published", "applied"] if policy["version"] else ["applied"]:
    report(policy["version"], state)
while True:
    step = policy["version"] + 1
    status, reply = ask(f"runs/{run}/trainer/lease", {"trainer_id": "t0", "epoch": epoch, "want_step": step})
    if status == 410:
        break  # trained to the end
    if status == 204:
        continue
    if status >= 400:
        sys.exit(reply.decode())
    leased = json.loads(reply)
    lease, batch = leased["lease"], leased["manifest"]
    rows = [json.loads(line) for line in ask(f"runs/{run}/batches/{step}?format=neutral")[1].splitlines()]
    table, metrics = train(rows, policy["table"])
    done = {"batch_id": batch["batch_id"], "sha256": batch["sha256"]}
    policy = {**policy, "table": table, "version": step, "last": done}  # from here on it is served
    save()  # before the ack: whoever is killed between the two acknowledges by registering
    proof = {"token": lease["token"], "epoch": epoch, "produced_version": step, "published": {}}
    tell(f"leases/{lease['id']}/ack", {**proof, **done, "metrics": metrics})
    report(step, "applied")
    reward = sum(row["reward"] for row in rows) / len(rows)
    print(json.dumps({"step": step, "rows": len(rows), "reward": round(reward, 3), **metrics}), flush=True)
