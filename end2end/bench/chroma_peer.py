"""The peer of P-6, run by `run`: makes vectors, loads them into a Chroma server and tells which are truly the nearest, as its
standard input says. One JSON line answers each line."""

import json
import sys
import time

import chromadb
import numpy

folder, port = sys.argv[1], int(sys.argv[2])


def make(points, queries, dimension):
    """Unit vectors around 200 centres: what embeddings look like, not noise, in which nothing is near."""
    rng = numpy.random.default_rng(7)
    centres = rng.normal(0, 1, (200, dimension))
    for name, count in (("data", points), ("asked", queries)):
        rows = centres[rng.integers(0, 200, count)] + rng.normal(0, 0.7, (count, dimension))
        rows /= numpy.linalg.norm(rows, axis=1, keepdims=True)
        rows.astype(numpy.float32).tofile(f"{folder}/{name}")
    make.dimension = dimension
    return {}


def read(name):
    return numpy.fromfile(f"{folder}/{name}", dtype=numpy.float32).reshape(-1, make.dimension)


def load():
    for _ in range(100):
        try:
            client = chromadb.HttpClient(host="127.0.0.1", port=port)
            break
        except Exception:
            time.sleep(0.2)
    load.collection = client.create_collection("bench", metadata={"hnsw:space": "cosine"})
    load.data, load.asked = read("data"), read("asked")
    for start in range(0, len(load.data), 2000):
        rows = load.data[start : start + 2000]
        numbers = range(start, start + len(rows))
        load.collection.add(ids=[str(n) for n in numbers], embeddings=rows.tolist(), metadatas=[{"number": n} for n in numbers])
    load.collection.query(query_embeddings=load.asked[:5].tolist(), n_results=10)
    return {"id": str(load.collection.id)}


def exact(first, end):
    return [[int(n) for n in numpy.argsort(-(load.data @ vector))[:10]] for vector in load.asked[first:end]]


for line in sys.stdin:
    word, *numbers = line.split()
    print(json.dumps({"make": make, "load": load, "exact": exact}[word](*map(int, numbers))), flush=True)
