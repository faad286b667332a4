"""A judge with a client of its own."""

import os

import verifiers as vf
from datasets import Dataset
from openai import AsyncOpenAI


def load_environment():
    rows = [{"question": "What is 1 + 1?", "answer": "2"}, {"question": "What is 2 + 2? nojudge", "answer": "4"}]
    client = AsyncOpenAI(base_url=os.environ["JUDGE_URL"], api_key="x", max_retries=0)
    rubric = vf.JudgeRubric(judge_client=client, judge_model="judge")

    async def judged(judge, prompt, completion, answer, state):
        return 1.0 if "yes" in (await judge(prompt, completion, answer, state)).lower() else 0.0

    rubric.add_reward_func(judged)
    return vf.SingleTurnEnv(dataset=Dataset.from_list(rows), rubric=rubric)
