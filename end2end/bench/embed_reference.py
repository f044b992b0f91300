#!/usr/bin/env python3
"""Embeds the lines of a file with Python sentence-transformers and prints one JSON line: the peer of
`cargo run --example embed_bench`.

    pip install sentence-transformers
    embed_reference.py --model FOLDER TEXTS [--queries 200] [--fixture OUT]

FOLDER holds the official all-MiniLM-L6-v2 files (or is a model name). TEXTS has one passage a line.
With --fixture, TEXTS is a JSON list and OUT gets the texts with their vectors for the parity test.
"""
import argparse
import base64
import json
import os
import time


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("texts")
    parser.add_argument("--model", default="sentence-transformers/all-MiniLM-L6-v2")
    parser.add_argument("--queries", type=int, default=200)
    parser.add_argument("--batch", type=int, default=32, help="the library's default is 32")
    parser.add_argument("--fixture")
    args = parser.parse_args()

    import sentence_transformers

    model = sentence_transformers.SentenceTransformer(args.model, device="cpu")
    model.max_seq_length = 256
    if args.fixture:
        return fixture(model, args)

    with open(args.texts, encoding="utf-8") as source:
        texts = [line.rstrip("\n") for line in source if line.strip()]
    model.encode(texts[:8])
    start, busy = time.perf_counter(), time.process_time()
    model.encode(texts, batch_size=args.batch, normalize_embeddings=True, show_progress_bar=False)
    seconds, cpu = time.perf_counter() - start, time.process_time() - busy
    waits = []
    for place in range(args.queries):
        query = " ".join(texts[place % len(texts)].split()[:8])
        at = time.perf_counter()
        model.encode([query], normalize_embeddings=True, show_progress_bar=False)
        waits.append(1000 * (time.perf_counter() - at))
    waits.sort()
    print(json.dumps({
        "runtime": f"sentence-transformers {sentence_transformers.__version__}",
        "texts": len(texts),
        "seconds": round(seconds, 3),
        "cpu_seconds": round(cpu, 3),
        "passages_per_second": round(len(texts) / seconds, 1),
        "query_p50_ms": round(waits[len(waits) // 2], 2),
        "query_p95_ms": round(waits[len(waits) * 95 // 100], 2),
        "cores": os.cpu_count(),
    }))


def fixture(model, args):
    import numpy

    with open(args.texts, encoding="utf-8") as source:
        texts = json.load(source)
    vectors = model.encode(texts, normalize_embeddings=True)
    # 16 bits are 0.00003 of a value's range: far below what the test asks for.
    packed = [base64.b64encode(numpy.round(v * 32767).astype("<i2").tobytes()).decode() for v in vectors]
    rows = [{"text": text, "vector": vector} for text, vector in zip(texts, packed)]
    with open(args.fixture, "w", encoding="utf-8") as target:
        target.write("[\n" + ",\n".join(json.dumps(row, ensure_ascii=False) for row in rows) + "\n]\n")


if __name__ == "__main__":
    main()
