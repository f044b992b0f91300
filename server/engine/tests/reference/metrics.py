"""Makes metrics.json: random runs with what pytrec_eval says of them. Needs `pip install pytrec-eval-terrier`; the tests
need the file alone."""

import json
import pathlib
import random

import pytrec_eval

KS = [1, 3, 5, 10, 20]


def case(seed):
    chance = random.Random(seed)
    documents = [f"d{number}" for number in range(chance.randint(1, 40))]
    run = chance.sample(documents, chance.randint(1, len(documents)))
    judged = chance.sample(documents, chance.randint(1, len(documents)))
    judged += [f"unfound{number}" for number in range(chance.randint(0, 6))]
    highest = chance.choice([1, 1, 3, 5])
    lowest = chance.choice([0, 0, 0, -1])
    qrels = {document: chance.randint(lowest, highest) for document in judged}
    return run, qrels


def figures(run, qrels, k):
    ask = {f"P.{k}", f"recall.{k}", f"map_cut.{k}", f"ndcg_cut.{k}"}
    scored = lambda ranking: {"q": {document: float(1000 - place) for place, document in enumerate(ranking)}}
    at = pytrec_eval.RelevanceEvaluator({"q": qrels}, ask).evaluate(scored(run))["q"]
    # trec_eval has no cut-off for the reciprocal rank: the run is cut instead.
    first = pytrec_eval.RelevanceEvaluator({"q": qrels}, {"recip_rank"}).evaluate(scored(run[:k]))["q"]
    precision, recall = at[f"P_{k}"], at[f"recall_{k}"]
    both = precision + recall
    return {
        "precision": precision,
        "recall": recall,
        "f1": 2 * precision * recall / both if both else 0.0,
        "map": at[f"map_cut_{k}"],
        "ndcg": at[f"ndcg_cut_{k}"],
        "mrr": first["recip_rank"],
    }


cases = []
for seed in range(80):
    run, qrels = case(seed)
    cases.append({"run": run, "relevance": qrels, "at": {str(k): figures(run, qrels, k) for k in KS}})
text = "[\n" + ",\n".join(json.dumps(one, separators=(",", ":")) for one in cases) + "\n]\n"
pathlib.Path(__file__).with_name("metrics.json").write_text(text)
