"""Plays the same conversations in verifiers' own runner, in its own process: no environment server, nothing saved.

    python bench/verifiers_runner.py URL ROLLOUTS TURNS IN_FLIGHT MODEL QUESTION

Prints {"version", "seconds", "scored", "turns"} as one line of JSON. The time covers `evaluate`, without imports.
"""

import asyncio
import json
import logging
import sys
import time

import verifiers
from datasets import Dataset
from verifiers.legacy import Rubric, ToolEnv
from verifiers.legacy.types import ClientConfig


def add(a: float, b: float) -> float:
    """Add two numbers.

    Args:
        a: left operand
        b: right operand
    """
    return a + b


def subtract(a: float, b: float) -> float:
    """Subtract the second number from the first.

    Args:
        a: left operand
        b: right operand
    """
    return a - b


def multiply(a: float, b: float) -> float:
    """Multiply two numbers.

    Args:
        a: left operand
        b: right operand
    """
    return a * b


async def main(url: str, rollouts: int, turns: int, in_flight: int, model: str, question: str) -> None:
    def right(completion, answer) -> float:
        return 1.0 if answer in str(completion[-1]) else 0.0

    rows = [{"question": question, "answer": "384"} for _ in range(rollouts)]
    env = ToolEnv(
        tools=[add, subtract, multiply],
        eval_dataset=Dataset.from_list(rows),
        rubric=Rubric(funcs=[right]),
        max_turns=turns,
    )
    logging.disable(logging.CRITICAL)
    client = ClientConfig(api_base_url=url, api_key_var="ROLLCALL_BENCH_KEY")
    started = time.perf_counter()
    done = await env.evaluate(client, model, max_concurrent=in_flight, on_progress=lambda *_: None)
    seconds = time.perf_counter() - started
    outputs = done["outputs"]
    scored = sum(1 for one in outputs if one["error"] is None and one["reward"] is not None)
    played = sum(int(one["metrics"]["num_turns"]) for one in outputs)
    version = verifiers.__version__
    print(json.dumps({"version": version, "seconds": seconds, "scored": scored, "turns": played}))


if __name__ == "__main__":
    url, rollouts, turns, in_flight, model, question = sys.argv[1:]
    asyncio.run(main(url, int(rollouts), int(turns), int(in_flight), model, question))
