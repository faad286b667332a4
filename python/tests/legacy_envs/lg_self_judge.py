"""A reward function that asks the model of the rollout, through the rollout's own client."""

import verifiers as vf
from datasets import Dataset


async def judged(completion, state):
    prompt = [{"role": "user", "content": f"judge: {completion[-1]['content']}"}]
    reply = await state["client"].get_response(
        prompt=[vf.UserMessage(**each) for each in prompt], model=state["model"], sampling_args={}, tools=None
    )
    return float(reply.message.content == "judge: hello")


def load_environment():
    rows = [{"question": "hello", "answer": "hello"}]
    return vf.SingleTurnEnv(dataset=Dataset.from_list(rows), rubric=vf.Rubric(funcs=[judged]))
