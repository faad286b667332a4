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


def ifeval(answers):
    import langdetect
    from lm_eval.tasks.ifeval.utils import process_results

    # Without a seed it detects another language of a short text each time.
    langdetect.DetectorFactory.seed = 0
    results = [process_results(answer["row"], [answer["reply"]]) for answer in answers]
    scores = {
        "prompt_strict": [result["prompt_level_strict_acc"] for result in results],
        "prompt_loose": [result["prompt_level_loose_acc"] for result in results],
    }
    return scores, ["lm_eval", "langdetect", "nltk"]


def letters(answers, found, target, packages):
    """The score of lm-eval's `exact_match` without case and punctuation, of letters that its filters found."""
    from lm_eval.api.metrics import exact_match_fn

    options = {"ignore_case": True, "ignore_punctuation": True}
    scores = [
        exact_match_fn(predictions=[first], references=[target(answer["row"])], **options)["exact_match"] == 1
        for [first, *_], answer in zip(found, answers)
    ]
    return {"correct_answer": scores, "reference_match": scores}, packages


def task_filter(path, name):
    """The settings of the first filter of this name in a task of lm-eval."""
    from pathlib import Path

    import lm_eval
    import yaml

    class Loader(yaml.SafeLoader):
        pass

    Loader.add_constructor("!function", lambda loader, node: node.value)
    task = yaml.load((Path(lm_eval.__file__).parent / "tasks" / path).read_text(), Loader)
    [entry] = [entry for entry in task["filter_list"] if entry["name"] == name]
    return {key: value for key, value in entry["filter"][0].items() if key != "function"}


def mmlu_pro(answers):
    from lm_eval.filters.extraction import RegexFilter

    settings = task_filter("mmlu_pro/_default_template_yaml", "custom-extract")
    found = RegexFilter(**settings).apply([[answer["reply"]] for answer in answers], [])
    return letters(answers, found, lambda row: row["answer"], ["lm_eval"])


def gpqa(answers):
    from lm_eval.filters.extraction import MultiChoiceRegexFilter

    settings = task_filter("gpqa/cot_zeroshot/_gpqa_cot_zeroshot_yaml", "flexible-extract")
    docs = [{"choices": answer["row"]["options"]} for answer in answers]
    found = MultiChoiceRegexFilter(**settings).apply([[answer["reply"]] for answer in answers], docs)
    return letters(answers, found, lambda row: f"({row['answer']})", ["lm_eval"])


BENCHMARKS = {"gsm8k": gsm8k, "math-500": math_500, "ifeval": ifeval, "mmlu-pro": mmlu_pro, "gpqa": gpqa}


def main():
    asked = json.load(sys.stdin)
    scores, packages = BENCHMARKS[asked["benchmark"]](asked["answers"])
    written = {name: "".join("1" if score else "0" for score in of) for name, of in scores.items()}
    json.dump({"packages": {name: version(name) for name in packages}, "scores": written}, sys.stdout)


if __name__ == "__main__":
    main()
