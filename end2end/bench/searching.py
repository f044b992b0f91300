"""What searching costs and how good it is, through `/v1` of a whole server over texts that it has read itself."""

import concurrent.futures
import json
import pathlib
import statistics
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent), str(HERE)]
import judged  # noqa: E402
from loupe import Server  # noqa: E402

FEATURE = "loupe://text_extractor@v1/all_minilm_l6_v2_v1"
QUERY = {"query": {"type": "text", "required": True}}


def stage(name, category="filter", /, **parameters):
    return {"stage_name": name, "stage_type": category, "config": {"stage_id": name, "parameters": parameters}}


def search(most, **more):
    """A search by meaning, by keywords too with `lexical`."""
    one = {"feature_uri": FEATURE, "query": {"input_mode": "text", "value": "{{INPUT.query}}"}, "top_k": most} | more
    return stage("feature_search", searches=[one], final_top_k=most)


def retriever(server, name, stages, inputs=None):
    return server.call("POST", "/v1/retrievers", {
        "retriever_name": name, "collection_identifiers": ["texts"], "input_schema": inputs or QUERY, "stages": stages})["retriever_id"]


def read_texts(server, things, fields):
    """Reads things {id: fields with `text`} into the collection `texts`; answers the documents by those ids."""
    server.namespace = server.call("POST", "/v1/namespaces", {"namespace_name": "bench"})["namespace_id"]
    bucket = server.call("POST", "/v1/buckets", {"bucket_name": "texts", "bucket_schema": {"properties": fields}})["bucket_id"]
    collection = server.call("POST", "/v1/collections", {
        "collection_name": "texts", "source": {"type": "bucket", "bucket_ids": [bucket]},
        "feature_extractor": {"feature_extractor_name": "text_extractor", "version": "v1", "input_mappings": {"text": "text"},
                              "field_passthrough": [{"source_path": name} for name in fields if name != "text"]}})["collection_id"]

    def make(thing):
        return server.call("POST", f"/v1/buckets/{bucket}/objects", things[thing])["object_id"]

    with concurrent.futures.ThreadPoolExecutor(16) as pool:
        objects = dict(zip(pool.map(make, things), things))
    batch = server.call("POST", f"/v1/buckets/{bucket}/batches", {"object_ids": list(objects)})["batch_id"]
    path = f"/v1/buckets/{bucket}/batches/{batch}"
    server.call("POST", f"{path}/submit", {})
    while (status := server.call("GET", path)["status"]) not in {"COMPLETED", "COMPLETED_WITH_ERRORS", "FAILED"}:
        time.sleep(0.2)
    if status != "COMPLETED":
        raise SystemExit(f"the texts were not read: {status}")
    documents = server.page(f"/v1/collections/{collection}/documents/list", {})
    return {objects[one["_internal"]["lineage"]["root_object_id"]]: one["document_id"] for one in documents}


def judged_figure(show, folder):
    """nDCG@10 of a search by meaning, by keywords, and by both, as the product's own evaluations measure it."""
    name, documents, queries, right = judged.load(folder)
    texts = {one: {"text": ". ".join(part for part in (fields["title"], fields["text"]) if part) or "-"} for one, fields in documents.items()}
    with Server() as server:
        server.start()
        known = read_texts(server, texts, {"text": {"type": "string"}})
        server.call("POST", "/v1/retrievers/evaluations/datasets", {"dataset_name": "judged", "queries": [
            {"query_id": str(number), "query_input": {"query": text}, "relevant_documents": [known[one] for one in right[query]],
             "relevance_scores": {known[one]: relevance for one, relevance in right[query].items()}}
            for number, (query, text) in enumerate(queries.items())]})
        print(f"{'judged':6} {name}: {len(documents)} documents, {len(queries)} queries, {sum(map(len, right.values()))} right ones", flush=True)
        best = {}
        # A likeness of 1 leaves nothing of the search by meaning.
        for way, more in [("meaning", {}), ("keywords", {"lexical": True, "min_score": 1.0}), ("both", {"lexical": True})]:
            one = retriever(server, way, [search(100, **more)])
            best[way] = measure(server, one)
            show("judged", f"by {way}: nDCG@10", best[way]["10"]["ndcg"], "")
            show("judged", "  recall@10, recall@100", best[way]["10"]["recall"], f"{best[way]['100']['recall']:.3f}")
            show("judged", "  MRR@10", best[way]["10"]["mrr"], "")
    for other in ("meaning", "keywords"):
        show("judged", f"both against {other}", best["both"]["10"]["ndcg"], "", (other, best[other]["10"]["ndcg"]), "> 1x")


def measure(server, one):
    path = f"/v1/retrievers/{one}/evaluations"
    begun = server.call("POST", path, {"dataset_name": "judged", "evaluation_config": {"k_values": [10, 100], "metrics": ["ndcg", "recall", "mrr"]}})
    while (told := server.call("GET", f"{path}/{begun['evaluation_id']}"))["status"] not in {"completed", "failed"}:
        time.sleep(0.2)
    if told["status"] == "failed" or told["evaluated_queries"] != told["query_count"]:
        raise SystemExit(f"the evaluation failed: {json.dumps(told)[:800]}")
    return told["metrics_by_k"]


def things():
    """The demo's things as texts, each with an edge to the one before it."""
    lines = (HERE.parent.parent / "demo/objects.jsonl").read_text().splitlines()
    items = [json.loads(line) for line in lines]
    fields = {"text": {"type": "string"}, "title": {"type": "string"}, "category": {"type": "string"}, "kind": {"type": "string"},
              "tags": {"type": "array"}, "before": {"type": "string"}}
    texts = {}
    for number, item in enumerate(items):
        text = f"{item['title']}. {item['description']}"
        texts[item["id"]] = {"text": text, "title": item["title"], "category": item["category"], "kind": item["kind"],
                             "tags": item["tags"], "before": items[number - 1]["title"]}
    return texts, fields


def questions(count):
    """Queries that nobody asked yet: what is kept of searches and models does not answer them."""
    words = ["an animal that", "a thing to", "something for", "the oldest", "a place where", "a tool which"]
    ends = ["lives in cold water", "people travel with", "a kitchen", "building on a hill", "music is played", "cuts wood", "flies at night"]
    return [f"{words[n % len(words)]} {ends[n % len(ends)]}, number {n}" for n in range(count)]


def took(server, one, inputs):
    """Milliseconds of each stage, and what came out of it."""
    answer = server.call("POST", f"/v1/retrievers/{one}/execute", {"inputs": inputs, "skip_cache": True})
    if answer.get("degraded"):
        print(f"       {answer['degraded'][0]['reason']}", flush=True)
    return answer["stage_statistics"]["stages"]


def rerank_figure(show, rounds):
    """What reading one of 50 candidates once more costs, against the vector of one query."""
    texts, fields = things()
    with Server() as server:
        server.start()
        read_texts(server, texts, fields)
        plain = retriever(server, "plain", [search(50)])
        again = retriever(server, "again", [search(50), stage("rerank", "sort", max_candidates=50, document_field="text")])
        vector = [1 / 384**0.5] * 384
        asked = [{"feature_uri": FEATURE, "query": {"input_mode": "vector", "value": "{{INPUT.vector}}"}, "top_k": 50}]
        near = retriever(server, "near", [stage("feature_search", searches=asked, final_top_k=50)], {"vector": {"type": "array", "required": True}})
        for one in (plain, again):
            took(server, one, {"query": "something to warm up with"})
        embedding, candidate = [], []
        for number, question in enumerate(questions(8 * rounds)):
            with_text = took(server, plain, {"query": question})["feature_search"]["duration_ms"]
            vector[number % 384] += 0.1
            without = took(server, near, {"vector": vector})["feature_search"]["duration_ms"]
            embedding.append(with_text - without)
            told = took(server, again, {"query": f"{question}, once more"})["rerank"]
            candidate.append(told["duration_ms"] / min(50, told["input_count"]))
    show("rerank", "one query's vector, median", statistics.median(embedding), "ms")
    show("rerank", "one of 50 candidates, median", statistics.median(candidate), "ms", ("a vector", statistics.median(embedding)), "<= 10x")


def local_stages():
    """Each stage that asks no other machine, with what it does here behind a search for 100 documents."""
    inner = {"searches": [{"feature_uri": FEATURE, "query": {"input_mode": "text", "value": "{{INPUT.query}}"}, "top_k": 100}], "final_top_k": 100}
    return [
        stage("attribute_filter", field="category", operator="ne", value="Animals"),
        stage("sort_relevance", "sort"),
        stage("sort_attribute", "sort", field="title"),
        stage("rerank", "sort", document_field="text"),
        stage("maxsim_rerank", "sort", feature_uri=FEATURE, query="{{INPUT.query}}"),
        stage("mmr", "sort", top_k=25),
        stage("score_normalize", "sort"),
        stage("aggregate", "reduce", group_by=[{"field": "category"}], aggregations=[{"function": "count", "alias": "count"}]),
        stage("sample", "reduce", count=10),
        stage("cluster", "reduce", algorithm="kmeans", n_clusters=8),
        stage("group_by", "reduce", group_by_field="category"),
        stage("limit", "reduce", limit=10),
        stage("deduplicate", "reduce", fields=["kind"]),
        stage("moment_group", "reduce"),
        stage("json_transform", "apply", template='{"title": {{ DOC.title | tojson }}}'),
        stage("rag_prepare", "apply", content_field="text"),
        stage("cross_compare", "apply", reference_collection_id="texts", source_field="title", reference_field="title"),
        stage("unwind", "apply", field="tags"),
        stage("traverse_edge", "apply", source_field="before", target_field="title", max_depth=3),
        stage("document_enrich", "enrich", source_field="before", target_field="title", fields_to_merge=["kind"]),
        stage("query_expand", feature_search_config=inner),
    ]


def stages_figure(rounds):
    """Each stage's own time: what its statistics tell, medians of questions that nobody asked before."""
    texts, fields = things()
    with Server() as server:
        server.start()
        read_texts(server, texts, fields)
        wanted = [("feature_search", [search(100)]), ("feature_search, with keywords", [search(100, lexical=True)])]
        for one in local_stages():
            id = one["config"]["stage_id"]
            wanted.append((id, [one] if id == "query_expand" else [search(100), one]))
        print(f"{'stage':32} {'in':>5} {'out':>5} {'ms, median':>11} {'p90':>8}", flush=True)
        count = max(5, 5 * rounds)
        for number, (name, stages) in enumerate(wanted):
            one = retriever(server, f"stage {number}", stages)
            took(server, one, {"query": "something to warm up with"})
            told = [took(server, one, {"query": f"{name}: {question}"})[stages[-1]["stage_name"]] for question in questions(count)]
            times = sorted(each["duration_ms"] for each in told)
            print(f"{name:32} {told[0]['input_count']:>5} {told[0]['output_count']:>5} {statistics.median(times):>11.2f} "
                  f"{times[int(len(times) * 0.9)]:>8.2f}", flush=True)
