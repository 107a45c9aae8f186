#!/usr/bin/env python3
"""make_corpus_formats.py - writes the kept inputs of the importers' fuzz targets. See make_corpus.py.

    python3 tests/fuzz/make_corpus_formats.py
"""
import json
import os
import struct

HERE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "corpus")


def put(target, name, data):
    folder = os.path.join(HERE, target)
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, name), "wb") as f:
        f.write(data if isinstance(data, bytes) else data.encode())


def tiktoken():
    rows = {
        "bytes": "", "merges": "YWI= 256\nYmM= 257\nYWJj 258\n", "blanks": "\r\n  YWI=\t256  \r\n\n",
        "no-form": "YmM= 256\nYWI= 257\nY2Q= 258\nYWJjZA== 259\n", "twice": "YWI= 300\nYWI= 301\n",
        "rank-twice": "YWI= 300\nY2Q= 300\n", "high": "YWI= 4294967294\n", "bad": "YWI 256\n", "run": "YWFhYWFhYWE= 256\n",
    }
    for i, (name, text) in enumerate(rows.items()):
        put("import_tiktoken", name, bytes([1, i % 16]) + text.encode())
        put("import_tiktoken", name + "-specials", bytes([1, 4]) + text.encode())
    put("import_tiktoken", "few", bytes([0, 0]) + b"YQ== 0\n")


def gpt2():
    rows = {
        "bytes": ("{\x01}", ""), "merges": ('{\x01,"ab":256,"\\u0120a":257}', "#version: 0.2\na b\n\u0120 a\n"),
        "crlf": ('{\x01,"ab":256}', "a b\r\n"), "odd": ('{\x01,"\uff5cx\uff5c":300}', ""), "few": ('{"a":0,"b":1,"ab":2}', "a b"),
        "bad-id": ('{"a":-1}', ""), "bad-merge": ('{\x01}', "a b\n"), "bad-line": ('{\x01,"ab":256}', "a  b\n"),
    }
    for name, (vocab, merges) in rows.items():
        put("import_gpt2", name, vocab.encode() + b"\0" + merges.encode())
    put("import_gpt2", "alone", '{"a":0}')


def minbpe():
    rows = {
        "bytes": "\n0\n", "specials": "\\S+|\\s+\n2\n<|a b|> 258\n<|x|> 259\n97 98\n256 99\n",
        "run": "\n0\n97 97\n256 97\n257 98\n", "forward": "\n0\n256 97\n97 98\n", "short": "\n3\n<|x|> 259\n",
        "clash": "\n1\n<|x|> 256\n97 98\n", "bad-regex": "(\n0\n", "crlf": "a\r\n0\r\n97 98\r\n",
    }
    for name, text in rows.items():
        put("import_minbpe", name, text)


def plain():
    rows = {
        "ids": {"pattern": "none", "merges": [[97, 98], [256, 99]]},
        "layout": {"pattern": "gpt2", "merges": [[97, 98]], "special_tokens": ["<s>", "</s>"], "special_ids": "first",
                   "byte_order": "gpt2", "bos": ["<s>"], "eos": ["</s>"]},
        "after": {"regex": "a|b", "merges": [[97, 98]], "special_tokens": ["<s>"], "special_ids": "after_bytes"},
        "vocab": {"pattern": "none", "vocab": {"0": "61", "1": "62", "5": "6162"}, "merges": [["61", "62"]],
                  "special_tokens": {"<s>": 9}, "whole": True},
        "chain": {"pattern": '["gpt2",{"regex":"\\\\p{N}"}]', "merges": []},
        "bad": {"pattern": "none", "merges": [[97, 999]]}, "unknown": {"merges": [], "tie": "bytes"},
    }
    for name, value in rows.items():
        put("import_plain", name, json.dumps(value))
    put("import_plain", "given", json.dumps({"merges": [[97, 98]]}) + '\0["<s>","<s><s>"]')
    put("import_plain", "given-ids", json.dumps({"merges": []}) + '\0{"<s>":300,"x":300}')
    put("import_plain", "text", "hello")


def hf():
    byte_level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}

    def file(vocab, merges, **parts):
        model = {"type": "BPE", "dropout": None, "unk_token": None, "continuing_subword_prefix": None, "end_of_word_suffix": None,
                 "fuse_unk": False, "byte_fallback": False, "ignore_merges": False, "vocab": "@", "merges": merges}
        model.update(parts.pop("model", {}))
        value = {"version": "1.0", "truncation": None, "padding": None, "added_tokens": [], "normalizer": None,
                 "pre_tokenizer": byte_level, "post_processor": None, "decoder": byte_level, "model": model}
        value.update(parts)
        return json.dumps(value).replace('"@"', "{" + vocab + "}")

    def token(i, content, **flags):
        value = {"id": i, "content": content, "single_word": False, "lstrip": False, "rstrip": False, "normalized": False,
                 "special": True}
        value.update(flags)
        return value

    def split(regex, behavior="Isolated"):
        return {"type": "Split", "pattern": {"Regex": regex}, "behavior": behavior, "invert": False}

    no_regex = dict(byte_level, use_regex=False)
    ab = '\x01,"ab":256,"abc":257'
    merges = ["a b", ["ab", "c"]]
    template = {"type": "TemplateProcessing", "single": [{"SpecialToken": {"id": "<s>", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}],
                "pair": [], "special_tokens": {"<s>": {"id": "<s>", "ids": [258], "tokens": ["<s>"]}}}
    rows = {
        "plain": file(ab, merges), "whole": file(ab, merges, model={"ignore_merges": True}),
        "nfc": file(ab, merges, normalizer={"type": "NFC"}), "nfkc": file(ab, merges, normalizer={"type": "Sequence", "normalizers": [{"type": "NFKC"}]}),
        "added": file(ab, merges, added_tokens=[token(258, "<s>", lstrip=True, rstrip=True), token(256, "ab", special=False),
                                                token(87, "x", single_word=True), token(184, "\u00fc", special=False)]),
        "role": file(ab, merges, added_tokens=[token(256, "ab"), token(66, "c", normalized=True)], normalizer={"type": "NFC"}),
        "chain": file(ab, merges, pre_tokenizer={"type": "Sequence", "pretokenizers": [{"type": "Digits", "individual_digits": True}, byte_level]}),
        "split": file(ab, merges, pre_tokenizer={"type": "Sequence", "pretokenizers": [split("a+"), split("\\s"), no_regex]}),
        "removed": file(ab, merges, pre_tokenizer={"type": "Sequence", "pretokenizers": [split("a+", "Removed"), no_regex]}),
        "prefix": file(ab, merges, pre_tokenizer=dict(byte_level, add_prefix_space=True)),
        "template": file(ab, merges, added_tokens=[token(258, "<s>")], post_processor=template),
        "replace": file(ab, merges, normalizer={"type": "Replace", "pattern": {"String": "a"}, "content": ""}),
        "odd": file(ab + ',"\u2122":300', merges), "bad": file(ab, merges, pre_tokenizer={"type": "Mystery"}),
    }
    marks = {"type": "Replace", "pattern": {"String": " "}, "content": "\u2581"}
    decoder = {"type": "Sequence", "decoders": [{"type": "Replace", "pattern": {"String": "\u2581"}, "content": " "}, {"type": "ByteFallback"},
                                                {"type": "Fuse"}, {"type": "Strip", "content": " ", "start": 1, "stop": 0}]}
    chars = '\x02,"\u2581":300,"a":301,"b":302,"ab":303,"\u2581ab":304,"\u4e2d":305'
    parts = {"decoder": decoder, "model": {"byte_fallback": True, "fuse_unk": True}}
    rows["characters"] = file(chars, ["a b", "\u2581 ab"], pre_tokenizer=None, normalizer={
        "type": "Sequence", "normalizers": [{"type": "Prepend", "prepend": "\u2581"}, marks]}, added_tokens=[token(262, "<s>"),
        token(300, "\u2581", special=False)], **{k: dict(v) for k, v in parts.items()})
    rows["metaspace"] = file(chars, ["a b", "\u2581 ab"], pre_tokenizer={"type": "Metaspace", "replacement": "\u2581",
                             "prepend_scheme": "always", "split": True}, **{k: dict(v) for k, v in parts.items()})
    for name, text in rows.items():
        for mark in ("\x01", "\x02"):
            text = text.replace("\\u%04x" % ord(mark), mark)
        put("import_hf", name, text)


def blob():
    def number(x):
        out = b""
        while x >= 0x80:
            out += bytes([x & 0x7F | 0x80])
            x >>= 7
        return out + bytes([x])

    def string(s):
        return number(len(s)) + s

    def file(settings, pattern, entries, merges, counts=None, stats=b""):
        out = b"bpemodel" + number(1) + string(settings) + string(pattern) + string(stats) + number(len(entries))
        before = 0
        for i, kind, s in entries:
            out += number(i - before) + number(kind) + string(s)
            before = i
        out += number(len(merges)) + number(counts is not None)
        before = 0
        for rank, left, right, i in merges:
            out += number(rank - before) + number(left) + number(right) + number(i)
            before = rank
        return out + b"".join(number(c) for c in counts or [])

    letters = [(97, 0, b"a"), (98, 0, b"b"), (256, 0, b"ab"), (300, 1, b"<s>"), (301, 2, b"+")]
    merge = [(0, 97, 98, 256)]
    rows = {
        "bytes": file(b'{"format":1}', b"gpt2", [(i, 0, bytes([i])) for i in range(256)] + letters[2:], merge),
        "plain": file(b'{"format":1}', b"gpt2", letters, merge),
        "counts": file(b'{"format":1,"whole":true,"bos":[300]}', b"none", letters, merge, [77], b'{"rows":1}'),
        "chars": file(b'{"format":1,"characters":true,"fallback":[3],"normalizer":["nfc",{"prepend":" "}],"strip":1,'
                      b'"merging":[300],"lstrip":[301],"names":[[301,"x"]]}', b"none", [(3, 0, b"a")] + letters[1:],
                      []),
        "regex": file(b'{"format":1,"regex":true}', b"a+|b", letters, merge),
        "bad-kind": file(b'{"format":1}', b"gpt2", [(0, 3, b"a")], []),
        "bad-merge": file(b'{"format":1}', b"gpt2", letters, [(0, 97, 97, 256)]),
        "bad-settings": file(b'{"format":2}', b"gpt2", letters, merge),
        "version": b"bpemodel\x02" + struct.pack("<I", 0),
    }
    for name, data in rows.items():
        put("blob", name, b"\x01" + data)
        put("blob", name + "-unsigned", b"\x00" + data)


for make in (tiktoken, gpt2, minbpe, plain, hf, blob):
    make()
