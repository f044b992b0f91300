"""Builds the demo's data: `objects.jsonl` and `pictures/`. Not run by users; the result is committed.

Sources, both Debian packages:
  tuxpaint-stamps-default 2022.06.04-1   pictures with a sentence in many languages (GPL-2)
  wordnet-base            1:3.0-37       definitions and kinds of English nouns (WordNet licence)

    apt-get download tuxpaint-stamps-default wordnet-base
    for p in *.deb; do dpkg -x "$p" unpacked; done
    pip install pillow==12.0.0
    python3 demo/build.py unpacked demo
"""

import json
import re
import sys
from pathlib import Path

from PIL import Image

# Folder of the stamps -> the shown category and the WordNet word classes that may define what is on them
# (numbers of WordNet's lexicographer files: 5 animal, 6 artifact, 13 food, 17 object, 18 person, 19 phenomenon, 20 plant).
CATEGORIES = {
    "animals": ("Animals", [5]),
    "plants": ("Plants", [20]),
    "food": ("Food", [13, 20]),
    "vehicles": ("Vehicles", [6]),
    "space": ("Space", [17, 6, 18]),
    "seasonal": ("Seasons and feasts", [6, 13, 20, 17]),
    "naturalforces": ("Nature", [19, 17, 11]),
    "household": ("Household", [6]),
    "hobbies": ("Music and hobbies", [6]),
    "sports": ("Sports", [6]),
    "town": ("Town", [6, 17]),
    "medical": ("Medicine", [6]),
}
CANVAS, MARGIN = (480, 360), 24
LANGUAGES = {"de": "name_de", "fr": "name_fr", "es": "name_es"}
# Drawings and duplicates that do not look right beside photographs, found on the contact sheet.
LEFT_OUT = re.compile(r"cartoon|outline|silhouette|hanukkah|grave|easter/", re.I)
LEFT_OUT_TITLES = {
    "hedgehog", "quarter of pizza", "tooth", "lightning bolt", "white flag", "candy cane", "star", "big fireworks", "boom",
    "tombstone", "cemetery marker", "monument stone", "another tombstone", "headstone", "gravestone", "grave marker",
    "glass of water", "rugby goal posts", "flower", "flowers", "edward bear", "alien tree",
}
# Sentences that make no good title.
TITLES = {"Eat your broccoli": "Broccoli", "Our moon": "Moon", "Very poisonous lionfish": "Lionfish", "Very small pitcher": "Pitcher"}


class WordNet:
    """The nouns of WordNet: index, definitions and hypernyms."""

    def __init__(self, folder):
        self.data = (folder / "data.noun").read_bytes()
        self.index = {}
        for line in (folder / "index.noun").read_text().splitlines():
            if line.startswith(" "):
                continue
            parts = line.split()
            count, pointers = int(parts[2]), int(parts[3])
            self.index[parts[0]] = [int(x) for x in parts[6 + pointers :]][:count]

    def synset(self, offset):
        line = self.data[offset : self.data.index(b"\n", offset)].decode()
        head, gloss = line.split(" | ", 1)
        parts = head.split()
        words = int(parts[3], 16)
        names = [w.replace("_", " ") for w in parts[4 : 4 + 2 * words : 2]]
        rest = parts[5 + 2 * words :]
        kinds = [int(rest[i + 1]) for i in range(0, len(rest) - 3, 4) if rest[i] in ("@", "@i")]
        definition = gloss.split('; "')[0].strip().strip(";")
        return {"file": int(parts[1]), "names": names, "definition": definition, "kinds": kinds}

    def find(self, text, files):
        """The first sense, within the allowed classes, of the longest tail of `text` that is a noun."""
        words = re.sub(r"[^a-z' -]", "", text.lower()).split()
        for start in range(len(words)):
            tail = "_".join(words[start:])
            for form in (tail, re.sub(r"s$", "", tail), re.sub(r"ies$", "y", tail), re.sub(r"es$", "", tail)):
                senses = [self.synset(o) for o in self.index.get(form, [])]
                for sense in senses:
                    if sense["file"] in files:
                        return sense, form.replace("_", " "), start == 0
        return None

    def chain(self, sense):
        """Names of the kinds above a sense, nearest first, without the abstract top."""
        names, here = [], sense
        while here["kinds"] and len(names) < 9:
            here = self.synset(here["kinds"][0])
            names.append(here["names"][0])
        abstract = {"entity", "physical entity", "object", "whole", "matter", "abstraction", "causal agent", "living thing",
                    "organism", "substance", "solid", "unit", "artifact", "instrumentality", "psychological feature"}
        return [n for n in names if n not in abstract]


def read_text(path):
    lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
    other = {}
    for line in lines[1:]:
        key, _, value = line.partition("=")
        language = key.split(".")[0]
        if language in LANGUAGES and value.strip():
            other[LANGUAGES[language]] = value.strip().rstrip(".")
    return lines[0].strip(), other


def draw(source, target):
    """The stamp, cut to what is on it, centred on white; small enough for a repository."""
    stamp = Image.open(source).convert("RGBA")
    box = stamp.getchannel("A").point(lambda a: 255 if a > 12 else 0).getbbox() or (0, 0, *stamp.size)
    stamp = stamp.crop(box)
    room = (CANVAS[0] - 2 * MARGIN, CANVAS[1] - 2 * MARGIN)
    scale = min(room[0] / stamp.width, room[1] / stamp.height, 2.0)
    stamp = stamp.resize((max(1, round(stamp.width * scale)), max(1, round(stamp.height * scale))), Image.LANCZOS)
    page = Image.new("RGB", CANVAS, "white")
    page.paste(stamp, ((CANVAS[0] - stamp.width) // 2, (CANVAS[1] - stamp.height) // 2), stamp)
    page.save(target, "JPEG", quality=80, optimize=True, progressive=True)


def title_of(sentence):
    first = re.split(r"[.!?;(]|, |—| – | - ", sentence.translate(str.maketrans("", "", "“”'\"")))[0]
    first = re.sub(r"^(an?|the|some|a pair of|this is an?|these are)\s+", "", first.strip(), flags=re.I)
    first = first[:1].upper() + first[1:]
    return TITLES.get(first, first)


def main(unpacked, out):
    stamps = unpacked / "usr/share/tuxpaint/stamps"
    wordnet = WordNet(unpacked / "usr/share/wordnet")
    pictures = out / "pictures"
    pictures.mkdir(exist_ok=True)
    objects, seen, missed = [], set(), []
    for picture in sorted(stamps.rglob("*.png")):
        path = picture.relative_to(stamps).as_posix()
        text = picture.with_suffix(".txt")
        folder = path.split("/")[0]
        if folder not in CATEGORIES or not text.exists() or LEFT_OUT.search("/" + path) or picture.stem.endswith("_mirror"):
            continue
        if min(Image.open(picture).size) < 70:
            continue
        sentence, names = read_text(text)
        category, files = CATEGORIES[folder]
        title = title_of(sentence)
        found = wordnet.find(title, files)
        if not found or title.lower() in seen | LEFT_OUT_TITLES or len(title) > 44:
            missed.append(f"{path}: {sentence}")
            continue
        seen.add(title.lower())
        sense, word, exact = found
        kinds = wordnet.chain(sense)
        definition = sense["definition"]
        description = sentence if len(sentence.split()) > 4 or not exact else ""
        defined = f"{definition[:1].upper()}{definition[1:]}." if exact else f"{word[:1].upper()}{word[1:]}: {definition}."
        identifier = re.sub(r"[^a-z0-9]+", "-", title.lower()).strip("-")
        draw(picture, pictures / f"{identifier}.jpg")
        also = [n for n in sense["names"] if n.lower() != title.lower()][:4]
        objects.append({
            "id": identifier, "title": title, "description": f"{description} {defined}".strip(), "category": category,
            "kind": kinds[0] if kinds else category.lower(), "tags": kinds[:6], "also_called": also, **names,
            "picture": f"pictures/{identifier}.jpg",
        })
    with (out / "objects.jsonl").open("w", encoding="utf-8") as file:
        for item in objects:
            file.write(json.dumps(item, ensure_ascii=False) + "\n")
    wanted = {item["picture"].split("/")[1] for item in objects}
    for stale in pictures.glob("*.jpg"):
        if stale.name not in wanted:
            stale.unlink()
    print("\n".join(missed))
    print(len(objects), "objects,", sum(p.stat().st_size for p in pictures.glob("*.jpg")) // 1024, "KiB of pictures")


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
