"""Plays a legacy environment with the library's own `evaluate`, and prints its rows as JSON lines.

python run_legacy.py ENVIRONMENT BASE_URL EXAMPLES ROLLOUTS
"""

import asyncio
import json
import sys

import verifiers as vf
from openai import AsyncOpenAI
from verifiers.clients import OpenAIChatCompletionsClient
from verifiers.utils.save_utils import make_serializable


async def main() -> None:
    environment, base_url, examples, rollouts = sys.argv[1:]
    env = vf.load_environment(environment)
    client = OpenAIChatCompletionsClient(AsyncOpenAI(base_url=base_url, api_key="x"))
    done = await env.evaluate(client, "scripted", num_examples=int(examples), rollouts_per_example=int(rollouts))
    for row in done["outputs"]:
        print(json.dumps(row, default=make_serializable))


asyncio.run(main())
