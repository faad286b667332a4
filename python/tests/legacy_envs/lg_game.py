"""Several turns, a stop condition of its own, two rubrics, and a last word of the environment."""

import verifiers as vf
from datasets import Dataset


class CountEnv(vf.MultiTurnEnv):
    async def setup_state(self, state, **kwargs):
        state["seen"] = []
        return state

    async def env_response(self, messages, state, **kwargs):
        state["seen"].append(messages[-1]["content"])
        if len(state["seen"]) == int(state["answer"]):
            state["final_env_response"] = [{"role": "user", "content": "Enough."}]
        return [{"role": "user", "content": f"again {len(state['seen'])}"}]

    @vf.stop(priority=10)
    async def repeated(self, state):
        return len(state["seen"]) > len(set(state["seen"]))


def turns(state):
    return float(len(state["seen"]))


def stopped(state):
    return 1.0 if state.get("stop_condition") == "repeated" else 0.0


def load_environment():
    rows = [
        {"question": "count", "answer": "2"},
        {"question": "stuck", "answer": "5"},
        {"question": "long", "answer": "9"},
    ]
    rubric = vf.RubricGroup([vf.Rubric(funcs=[turns], weights=[0.5]), vf.Rubric(funcs=[stopped])])
    return CountEnv(dataset=Dataset.from_list(rows), rubric=rubric, max_turns=4)
