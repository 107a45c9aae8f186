#!/usr/bin/env python3
"""make_corpus.py - writes the kept inputs of the fuzz targets, tests/fuzz/corpus/<target>/.

Each target's input begins with bytes that choose; the head of fuzz_<target>.c says which. What is
made here covers every choice once with texts that matter. Files named found-* are inputs that
once broke something: they are left alone.

    python3 tests/fuzz/make_corpus.py
"""
import os
import random
import struct

HERE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "corpus")

TEXTS = {
    "empty": b"",
    "hello": b"hello world",
    "case": b"I'll DON'T camelCaseHTTPServer it\xe2\x80\x99s he'\xc5\xbf",
    "digits": b"1234567 \xc2\xb2\xd9\xa3 12.50",
    "spaces": b"  a \n\n\t b\r\n   \xc2\xa0\xe3\x80\x80x  ",
    "symbols": b"!!//\n\n?.:;-- ++/\n/ <<|>>",
    "scripts": "中文字 ひらがな한국어 ไทย العربية हिन्दी \U0001f600\U0001f468\u200d\U0001f469".encode(),
    "marks": "e\u0301\u0301X\u0301 \u0301y A\u0308b".encode(),
    "malformed": b"ab\xff\xfe\xc3 \xe4\xb8 \xed\xa0\x80 \xf0\x9f\x98 \xc0\xaf c\x80",
    "nul": b"\0a\0\0b\0 \0",
    "specials": b"<|endoftext|><|endoftext|> a<|fim_prefix|>b<|endof<|endofprompt|><|reserved_200018|>",
    "run": b"a" * 300,
    "blanks": b" " * 270 + b"x",
    "period": b"abcab" * 60,
    "long": b"aVeryLongIdentifierThatGoesOnAndOn" * 9,
    "newlines": b"\n" * 130 + b"\r\n" * 40,
    "dashes": b"-" * 260,
}


def put(target, name, data):
    folder = os.path.join(HERE, target)
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, name), "wb") as f:
        f.write(data)


def encode():
    for i, (name, text) in enumerate(TEXTS.items()):
        put("encode", "text-" + name, bytes([i % 7, 0, i % 2]) + text)
    for which in range(7):
        put("encode", "encoding-%d" % which,
            bytes([which, 0, 1]) + TEXTS["specials"] + TEXTS["case"] + TEXTS["scripts"][:80])
    for pattern in range(1, 16):
        put("encode", "pattern-%02d" % pattern,
            bytes([4, pattern, 2 * (pattern % 2)]) + TEXTS["case"] + TEXTS["malformed"])


def window():
    for i, (name, text) in enumerate(TEXTS.items()):
        for cut in range(4):
            put("window", "%s-%d" % (name, cut), bytes([(i + cut) % 7, i % 2, 3 + 5 * cut, i % 3, cut]) + text)
    prose = b"One. Two 'three'!\r\n\r\n  Four\t5 " + "。六「七。」 ".encode()
    for cut in range(4):
        put("window", "prose-%d" % cut, bytes([5, 1, 12, 3, cut]) + prose * 5)


def stream():
    for i, (name, text) in enumerate(TEXTS.items()):
        sizes = bytes((i * 7 + k * 3) % 64 for k in range(8))
        put("stream", "short-" + name, bytes([i % 7, i % 2, 0]) + sizes + text)
        put("stream", "long-" + name, bytes([(i + 3) % 7, 1, 7]) + sizes + text)


def train():
    rows = [TEXTS[name] for name in ("case", "scripts", "malformed", "marks", "spaces", "nul")]
    for pattern in range(10):
        for tie in range(3):
            body = b"".join(bytes([1 + k % 3, len(r[:90])]) + r[:90] for k, r in enumerate(rows))
            head = bytes([pattern, tie, (pattern + tie) % 3, pattern % 4, tie % 2, 0, 30])
            put("train", "pattern-%d-%d" % (pattern, tie), head + b"\0" + body)
    runs = b"".join(bytes([1, n]) + b"ab"[k % 2:k % 2 + 1] * n for k, n in enumerate((4, 7, 90, 33)))
    for limit in range(9):
        put("train", "runs-%d" % limit, bytes([8, limit % 3, 0, 0, 1, limit, 40, 0]) + runs)
    specials = bytes([3, 1]) + b"ab" + bytes([3]) + b"abab" + bytes([0]) + b" "
    for place in range(3):
        put("train", "specials-%d" % place,
            bytes([0, 0, place, 1, 1, 0, 20]) + specials + bytes([1, 30]) + b"abab aab abababab c ab ba abc"
            + bytes([3, 12]) + b"cab abcd dab")


    prose = b"".join(bytes([1 + k % 2, 110]) + bytes(97 + (k * 7 + i * i) % 13 if i % 6 else 32 for i in range(110))
                     for k in range(12))
    for pattern in (0, 2, 5, 7, 8, 9):
        put("train", "threads-%d" % pattern, bytes([pattern, pattern % 2, 0, pattern == 5, 1, 0, 31, 0]) + prose)


def decode():
    def ids(*values):
        return b"".join(struct.pack("<I", v)[:3] for v in values)

    for which in range(8):
        for how in range(3):
            put("decode", "encoding-%d-%d" % (which, how),
                bytes([which, how, 0]) + ids(31373, 995, 0, 220, 50255, 50256, 255, 100257, 1, 199999))
    wrapped = ids(256, ord("a"), ord("b"), 256, ord("x"))
    put("decode", "document", bytes([7, 0, 1]) + wrapped)
    put("decode", "document-none", bytes([4, 0, 1]) + wrapped)
    put("decode", "document-short", bytes([7, 0, 1]) + ids(256))
    put("decode", "document-inside", bytes([7, 0, 1]) + ids(256, 258, 256, 256, ord("x")))
    put("decode", "bytes", bytes([7, 0, 0]) + ids(*(x for c in range(128, 256) for x in (c, c))))
    put("decode", "unknown", bytes([2, 0, 0]) + ids(5, 0xffffff))


def small(x):
    return struct.pack("<H", x)


def model():
    def token(i, text, kind=0):
        return bytes([1 + kind]) + small(i) + bytes([len(text)]) + text

    def merge(rank, left, right, i, count=None):
        head, tail = (b"\x04", b"") if count is None else (b"\x05", bytes([count]))
        return head + small(rank) + small(left) + small(right) + small(i) + tail

    def grow(left, right, i):
        return b"\x06" + small(left) + small(right) + small(i)

    every, end, gpt2 = b"\x0c", b"\x00", b"\x07\x00"

    def regex(text):
        return b"\x08" + bytes([len(text)]) + text

    ab = grow(97, 98, 256) + grow(256, 99, 257) + grow(257, 257, 258)
    rows = {
        "nothing": end,
        "no-pattern": every + end,
        "bytes": every + gpt2 + end + b"any text \xff",
        "grown": every + ab + gpt2 + end + b"abcabc ababcab" * 9,
        "specials": every + token(300, b"<1>", 1) + token(300, b"<2>", 1) + token(301, b"+", 2)
        + b"\x0a" + small(300) + b"\x0b" + small(301) + gpt2 + end + b"a+b<1>+",
        "merges": every + token(260, b"ab") + token(261, b"bc") + token(262, b"abc")
        + merge(9, 97, 98, 260) + merge(7, 98, 99, 261, 5) + merge(3, 97, 261, 262)
        + merge(3, 260, 99, 262) + gpt2 + end + b"abcbcab" * 50,
        "whole": every + token(260, b"abc") + b"\x09" + gpt2 + end + b"abc abcabc",
        "lacking": token(1, b"a") + token(2, b"b") + gpt2 + end + b"ab abc",
        "regex": every + ab + regex(b"\\w+|\\s+") + end + b"abc abc! \xffabc",
        "bad-regex": every + regex(b"(a") + end,
        "bad-twice": every + token(97, b"x") + gpt2 + end,
        "bad-empty": every + token(300, b"") + gpt2 + end,
        "bad-merge": every + token(300, b"ab") + merge(0, 97, 99, 300) + gpt2 + end,
        "bad-operand": every + grow(97, 310, 300) + gpt2 + end,
        "bad-bos": every + b"\x0a" + small(310) + gpt2 + end,
        "bad-rank": every + token(300, b"ab") + token(301, b"cd") + merge(0, 97, 98, 300)
        + merge(0, 99, 100, 301) + gpt2 + end,
        "scattered": token(5, b"a") + token(0xff81, b"b") + token(0xffff, b"c") + gpt2 + end + b"ab",
        "scattered-fine": token(0xff81, b"b") + token(5, b"a") + b"\x0b" + small(5) + gpt2 + end + b"ab",
        "none": every + ab + b"\x07\x06" + end + b"abc\xff" * 99,
    }
    for name, data in rows.items():
        put("model", name, data)


def regex():
    rows = [
        (b"\\w+|\\s+|.", TEXTS["case"]), (b"", b"abc"), (b"a*", b"baab"), (b"(?<=b)a", b"abab"),
        (b"a\\Kb", b"abab"), (b"^a|b$", b"aa\xffbb"), (b"(a+)+$", b"a" * 40 + b"!"),
        (b"(a|aa)+$", b"a" * 60 + b"!"), (b"\\X", TEXTS["marks"]), (b"\\C", TEXTS["scripts"]),
        (b"(?i)k", "kK\u212a".encode()), (b"\\p{Han}+", TEXTS["scripts"]), (b"(", b"x"),
        (b"[^\\r\\n\\pL\\pN]?\\pL+|\\pN{1,3}", TEXTS["symbols"]), (b"\\R|.", TEXTS["spaces"]),
        (b"(?=a)|b", b"aabb"), (b"(?<!x)y\\b", b"y xy y"), (b"(*LIMIT_MATCH=1)a+b", b"aaab"),
        (b"(?|(a)|(b))\\1", b"aabb"), (b"(?R)?a", b"aaa"), (b".", TEXTS["malformed"]),
        (b"(?s:.{7})", TEXTS["malformed"]), (b"\\G.", b"abc\xff"), (b"(*ACCEPT)", b"abc"),
    ]
    for i, (pattern, text) in enumerate(rows):
        put("regex", "pattern-%02d" % i, bytes([len(pattern), i % 2]) + pattern + text)


def sql():
    def text(s):
        return bytes([7, len(s)]) + s

    def blob(s):
        return bytes([6, len(s)]) + s

    def word(i):
        return bytes([4, i])

    null, one, small = b"\0", b"\1\0\0\0\1", bytes([2, 10])
    late = b"\1"  # interrupted late
    for which in range(71):
        put("sql", "statement-%02d" % which, bytes([which]) + late + text(b"the cab <s> ab. the")
            + bytes([which % 4]) + word(which % 33) + small)
    for i, value in enumerate([null, one, b"\3\0\1\2\3", blob(b"\xff\0\xfe"), text(b"a\0b\xff")]):
        put("sql", "value-%d" % i, bytes([0]) + late + value + b"\1" + null)
        put("sql", "ids-%d" % i, bytes([3]) + late + value + b"\1" + null)
        put("sql", "builtin-%d" % i, bytes([1]) + late + value + bytes([54 + i]) + word(0))


# What a library of SQL is asked by those who mean it ill, and some of what they mean well.
STATEMENTS = [
    "SELECT bpe_count('x'), bpe_encode(NULL)",
    "CREATE TABLE k AS SELECT 'a b' x; SELECT * FROM k, bpe_tokens(k.x, 'g'); DROP TABLE k;",
    "SELECT * FROM bpe_tokens; SELECT * FROM bpe_vocab('m') LIMIT 3; SELECT * FROM bpe_merges('g')",
    "CREATE TABLE k(x, n AS (bpe_count(x, 'm'))); INSERT INTO k VALUES('hi'); SELECT * FROM k",
    "CREATE INDEX i ON sqlite_master(bpe_count(name))",
    "SELECT t.id FROM bpe_tokens('a', 'g') t LEFT JOIN bpe_vocab('g') v ON v.id = t.id",
    "INSERT INTO bpe_vocab VALUES(1); DELETE FROM bpe_tokenizers WHERE name = 'm'; SELECT * FROM bpe_model",
    "SELECT * FROM bpe_tokens('a b c', 'm') ORDER BY seq DESC",
    "WITH RECURSIVE r(n) AS (VALUES(1) UNION ALL SELECT n+1 FROM r WHERE n<20) SELECT bpe_truncate(replace(hex(zeroblob(n)),'00','ab '),n,'g') FROM r",
    "SELECT group_concat(text, '|') OVER (ORDER BY seq ROWS 2 PRECEDING) FROM bpe_chunks('the cab. ab! c', 3, 'g')",
    "BEGIN; INSERT INTO bpe_tokenizers(name, source) SELECT 'n', bpe_train(b, 270) FROM t; SELECT bpe_encode('ab', 'n'); ROLLBACK; SELECT bpe_encode('ab', 'n')",
    "UPDATE bpe_model_vocab SET token = x'7a' WHERE id = 97; SELECT name, stats FROM bpe_tokenizers WHERE sealed = 0; UPDATE bpe_tokenizers SET sealed = 1 WHERE name = 'm'",
    "SELECT highlight(f, 0, '[', ']'), bm25(f) FROM f WHERE f MATCH 'cab OR the' ORDER BY rank",
    "SELECT x.id, y.id FROM bpe_stream('SELECT b FROM t', 'g') x JOIN bpe_ids(bpe_encode_blob('the', 'g')) y ON x.id = y.id",
    "SELECT * FROM bpe_trace('ababab', 'm') WHERE step = 1 AND id IN (256, 257)",
    "SELECT bpe_export(name, 'huggingface') FROM bpe_model; INSERT INTO bpe_tokenizers(name, source) SELECT 'n', bpe_export('h', 'huggingface')",
]


def query():
    for i, s in enumerate(STATEMENTS):
        put("query", "sql-%02d" % i, bytes([7, 0, 1, 0]) + s.encode())
    rng = random.Random(7)
    for i in range(60):
        head = bytes([i % 4, rng.randrange(256), 1, 1])
        put("query", "made-%02d" % i, head + bytes(rng.randrange(256) for _ in range(160)))


def tokenizer():
    rng = random.Random(8)
    for i, (name, text) in enumerate(TEXTS.items()):
        about = bytes(rng.randrange(256) for _ in range(20 + 3 * i))
        how = bytes(rng.randrange(256) for _ in range(8))
        put("tokenizer", name, bytes([len(about)]) + about + how + bytes([i % 4]) + text)


def config():
    rng = random.Random(9)
    for family in range(3):
        for i in range(12):
            put("config", "%d-%02d" % (family, i), bytes([i % 5, family])
                + bytes(rng.randrange(256) for _ in range(110)) + " <s>x </s> ab_<s> é<s>\u200c <unk>ab a  ".encode() * 2)


def normalize():
    for kind in range(7):
        strings = b"\3 ab" * 2 if kind == 4 else b"\3ab " if kind == 5 else b""
        for name in ("marks", "scripts", "malformed", "spaces"):
            put("normalize", "%d-%s" % (kind, name), bytes([4 * (kind % 4) + kind % 3, 0, kind]) + strings + TEXTS[name])
    hard = "e\u0323\u0301\u1e69\u0344 \uac01\u1100\u1161\u11a8 \ufdfa\u2126\ufb01 \u0c46\u0c56 \U0001d15f \u09c7\u09be".encode()
    for kind in range(4):
        put("normalize", "hard-%d" % kind, bytes([kind, 1, kind, (kind + 2) % 4]) + hard)


for make in (encode, window, stream, decode, model, regex, sql, query, train, tokenizer, config, normalize):
    make()
