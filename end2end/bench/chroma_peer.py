"""The peer of P-6: loads vectors into a Chroma server, asks, and prints one JSON line. Run by `run`."""

import json
import sys
import time

import chromadb
import numpy

folder, port, dimension = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
data = numpy.fromfile(f"{folder}/data", dtype=numpy.float32).reshape(-1, dimension)
asked = numpy.fromfile(f"{folder}/asked", dtype=numpy.float32).reshape(-1, dimension)
for _ in range(100):
    try:
        client = chromadb.HttpClient(host="127.0.0.1", port=port)
        break
    except Exception:
        time.sleep(0.2)
collection = client.create_collection("bench", metadata={"hnsw:space": "cosine"})
for start in range(0, len(data), 2000):
    rows = data[start : start + 2000]
    collection.add(ids=[str(start + i) for i in range(len(rows))], embeddings=rows.tolist(), metadatas=[{"number": start + i} for i in range(len(rows))])
collection.query(query_embeddings=asked[:5].tolist(), n_results=10)
waits, answers = [], []
for vector in asked:
    began = time.perf_counter()
    found = collection.query(query_embeddings=[vector.tolist()], n_results=10, include=["metadatas"])
    waits.append((time.perf_counter() - began) * 1000)
    answers.append({int(number) for number in found["ids"][0]})
exact = [[int(n) for n in numpy.argsort(-(data @ vector))[:10]] for vector in asked]
recall = float(numpy.mean([len(set(true) & found) / 10 for true, found in zip(exact, answers)]))
print(json.dumps({"waits": waits, "exact": exact, "recall": recall}))
