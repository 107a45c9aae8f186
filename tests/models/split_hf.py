#!/usr/bin/env python3
"""split_hf.py - the pre-tokenizers of public tokenizer.json files, in PyPI's tokenizers and in ours.

    PYTHON tests/models/split_hf.py DIR NAME... [--ext ./bpe] [--texts 4000] [--seed 1]

Ids hide most wrong splits, since a vocabulary hardly has tokens across a border of pieces; so the
pieces themselves are compared: of random texts, in which every edge of every class of characters
stands beside every other, as the library splits them and as bpe_pieces does with the same file. Both
get it without its normalizer, whose tables are of another Unicode. (llama2 and gemma3 have no pieces
to compare.) PYTHON is one whose sqlite3 loads extensions and that has tokenizers. Last line: N
passed, N failed.
"""
import argparse
import json
import random
import sqlite3
import sys

from tokenizers import Tokenizer

COMMON = ["a", "Z", "é", "'s", "'LL", "'", " ", "  ", "\n", "\r\n", "\t", "1", "23", "4567", "²", ".",
          "!", "/", "_", "$", "中", "フ", "・", "ー", "゛", "\u3099", "\u3040", "\u0301", "\u200b",
          "\u3000", "\u00a0", "\U0001f600", "A"]


def edges(path):
    """Characters at both ends of every range of every class, but surrogates."""
    found = set()
    with open(path) as f:
        classes = json.load(f)
    for name, entry in classes.items():
        if name.startswith("\\"):
            for part in entry["tiktoken_wasm"].split():
                found.update(int(end, 16) for end in part.split("-"))
    return [chr(c) for c in sorted(found) if not 0xd800 <= c < 0xe000]


def texts(rng, ends, n):
    for _ in range(n):
        few = [rng.choice(COMMON) for _ in range(5)] + [rng.choice(ends) for _ in range(2)]
        yield "".join(rng.choice(few if rng.random() < 0.8 else COMMON)
                      for _ in range(rng.randint(1, 24)))


def theirs(tok, text):
    return [text[start:stop] for _, (start, stop) in tok.pre_tokenizer.pre_tokenize_str(text)]


def main():
    args = argparse.ArgumentParser()
    args.add_argument("dir")
    args.add_argument("names", nargs="+")
    args.add_argument("--ext", default="./bpe")
    args.add_argument("--texts", type=int, default=4000)
    args.add_argument("--seed", type=int, default=1)
    args = args.parse_args()
    ends = edges("tests/vectors/unicode-classes.json")
    passed = failed = 0
    for name in args.names:
        path = f"{args.dir}/{name}/tokenizer.json"
        with open(path) as f:
            model = json.load(f)
        model["normalizer"] = None
        source = json.dumps(model)
        tok = Tokenizer.from_str(source)
        db = sqlite3.connect(":memory:")
        db.enable_load_extension(True)
        db.load_extension(args.ext)
        db.execute("INSERT INTO bpe_tokenizers(name, source) VALUES('theirs', ?)", (source.encode(),))
        rng = random.Random(f"{args.seed} {name}")
        for text in texts(rng, ends, args.texts):
            want = theirs(tok, text)
            got = [row[0] for row in db.execute("SELECT text FROM bpe_pieces(?, 'theirs')", (text,))]
            if want == got:
                passed += 1
                continue
            failed += 1
            if failed <= 10:
                print(f"{name}: {text!r}: expected {want}, got {got}")
    print(f"{passed} passed, {failed} failed")
    return failed != 0


sys.exit(main())
