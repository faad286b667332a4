"""A rubric that compares the members of a group; for one row the comparison is broken."""

import verifiers as vf
from datasets import Dataset


def load_environment():
    rows = [{"question": f"task {name}", "answer": name} for name in ("a", "b", "broken")]

    def longest(completions, answers):
        if answers[0] == "broken":
            raise RuntimeError("the group function is broken")
        lengths = [len(completion[-1]["content"]) for completion in completions]
        return [1.0 if length == max(lengths) else 0.0 for length in lengths]

    def polite(completion):
        return 1.0 if "please" in completion[-1]["content"] else 0.0

    rubric = vf.Rubric(funcs=[longest, polite], weights=[1.0, 0.25])
    return vf.SingleTurnEnv(dataset=Dataset.from_list(rows), rubric=rubric)
