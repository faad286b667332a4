"""Scores generated answers with the reference code of each benchmark.

Reads {"benchmark": name, "answers": [{"kind", "row", "reply"}]} from stdin; prints {"packages": {...}, "scores": {name:
"0110..."}}. The packages are those of requirements.txt.
"""

import json
import sys
from importlib.metadata import version


def gsm8k(answers):
    from pathlib import Path

    import lm_eval
    import yaml
    from lm_eval.api.metrics import exact_match_fn
    from lm_eval.filters.extraction import RegexFilter

    task = yaml.safe_load((Path(lm_eval.__file__).parent / "tasks/gsm8k/gsm8k.yaml").read_text())
    [metric] = task["metric_list"]
    options = {key: metric[key] for key in ("ignore_case", "ignore_punctuation", "regexes_to_ignore")}
    scores = {}
    for entry in task["filter_list"]:
        settings = {key: value for key, value in entry["filter"][0].items() if key != "function"}
        found = RegexFilter(**settings).apply([[answer["reply"]] for answer in answers], [])
        scores[entry["name"].replace("-", "_")] = [
            exact_match_fn(predictions=[first], references=[answer["row"]["answer"]], **options)["exact_match"] == 1
            for [first, *_], answer in zip(found, answers)
        ]
    return scores | {"final_number": scores["flexible_extract"]}, ["lm_eval"]


def math_500(answers):
    from math_verify import parse, verify

    def score(answer):
        # The way that the package's README evaluates MATH-500: the gold answer is LaTeX between dollars.
        gold = parse(f"${answer['row']['answer']}$")
        return bool(verify(gold, parse(answer["reply"])))

    return {"correct_answer": [score(answer) for answer in answers]}, ["math-verify", "latex2sympy2_extended", "sympy"]


BENCHMARKS = {"gsm8k": gsm8k, "math-500": math_500}


def main():
    asked = json.load(sys.stdin)
    scores, packages = BENCHMARKS[asked["benchmark"]](asked["answers"])
    written = {name: "".join("1" if score else "0" for score in of) for name, of in scores.items()}
    json.dump({"packages": {name: version(name) for name in packages}, "scores": written}, sys.stdout)


if __name__ == "__main__":
    main()
