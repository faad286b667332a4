"""One turn, an XML answer, two weighted rewards and a metric; some rows make a function fail."""

import verifiers as vf
from datasets import Dataset

SYSTEM = "Reverse the text. Put the result in <reversed_text> tags."


def load_environment(texts=("abc", "stressed", "raise", "none", "400"), **kwargs):
    rows = [{"question": text, "answer": text[::-1], "info": {"text": text}} for text in texts]
    parser = vf.XMLParser(["reversed_text"], answer_field="reversed_text")

    def exact(parser, completion, answer, info):
        if info["text"] == "raise":
            raise RuntimeError("the reward function is broken")
        if info["text"] == "none":
            return None
        return 1.0 if parser.parse_answer(completion) == answer else 0.0

    async def length(completion):
        return float(len(completion[-1]["content"]))

    rubric = vf.Rubric(funcs=[exact, parser.get_format_reward_func()], weights=[1.0, 0.2], parser=parser)
    rubric.add_metric(length)
    return vf.SingleTurnEnv(
        dataset=Dataset.from_list(rows), system_prompt=SYSTEM, parser=parser, rubric=rubric, **kwargs
    )
