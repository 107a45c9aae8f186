#!/usr/bin/env python3
"""Turns public rank files into the compact merge lists of data/encodings/.

    python3 data/make_encodings.py DIR            # DIR/cl100k_base.tiktoken ... -> *.merges
    python3 data/make_encodings.py --check DIR    # verify, and compare with the files in place

A rank file lists `base64 rank` per line. Everything in it but the 256 single bytes follows from
pairs: a token is what two lower-ranked tokens become when they are merged, and which two is
found by merging the token's own bytes with all lower ranks until two parts are left. So a list
of pairs in order of id is the same vocabulary in a quarter of the size:

    "BPEM"                       4 bytes
    n                            varint, the highest id + 1
    for every id 256 .. n-1:
      left + 1                   varint; 0 says that there is no such token, and no right follows
      right                      varint

varint is LEB128: 7 bits a byte, low bits first, the top bit set on all but the last. Ids 0..255
are the single bytes in GPT-2's order, printable ones first, and are not written.

Nothing is taken on trust: each rank file must have the published SHA-256, each token must end in
exactly two parts, and the written list, expanded again, must give the rank file byte for byte.
The output depends on the input alone.
"""

import base64
import hashlib
import os
import sys

PUBLISHED = {
    "r50k_base": "306cd27f03c1a714eca7108e03d66b7dc042abe8c258b44c199a7ed9838dd930",
    "p50k_base": "94b5ca7dff4d00767bc256fdd1b27e5b17361d7b8a5f968547f9f23eb70d2069",
    "cl100k_base": "223921b76ee99bde995b7ff738513eef100fb51d18c93597a113bcffe865b2a7",
    "o200k_base": "446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d",
}
MAGIC = b"BPEM"


def byte_order():
    """The bytes in the order of their ids: those that GPT-2 calls printable, then the rest."""
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    rest = [b for b in range(256) if b not in printable]
    return [bytes([b]) for b in printable + rest]


def read_ranks(path, name):
    with open(path, "rb") as f:
        raw = f.read()
    digest = hashlib.sha256(raw).hexdigest()
    if digest != PUBLISHED[name]:
        sys.exit(f"{path}: sha256 {digest}, published is {PUBLISHED[name]}")
    ranks = {}
    for number, line in enumerate(raw.splitlines(), 1):
        token, rank = line.split(b" ")
        token, rank = base64.b64decode(token, validate=True), int(rank)
        if token in ranks:
            sys.exit(f"{path}:{number}: token twice")
        ranks[token] = rank
    if len(set(ranks.values())) != len(ranks):
        sys.exit(f"{path}: rank twice")
    for i, b in enumerate(byte_order()):
        if ranks.get(b) != i:
            sys.exit(f"{path}: byte {b.hex()} is not id {i}")
    return raw, ranks


def split_in_two(ranks, token, rank):
    """The parts that are left of the token when every merge of a lower rank is done."""
    parts = [token[i : i + 1] for i in range(len(token))]
    while True:
        best, at = rank, -1
        for i in range(len(parts) - 1):
            r = ranks.get(parts[i] + parts[i + 1], rank)
            if r < best:
                best, at = r, i
        if at < 0:
            break
        parts[at : at + 2] = [parts[at] + parts[at + 1]]
    if len(parts) != 2:
        sys.exit(f"token {rank} ({token!r}) ends in {len(parts)} parts")
    return ranks[parts[0]], ranks[parts[1]]


def varint(n):
    out = bytearray()
    while n > 0x7F:
        out.append(n & 0x7F | 0x80)
        n >>= 7
    out.append(n)
    return bytes(out)


def pack(ranks):
    by_id = {rank: token for token, rank in ranks.items()}
    n = max(by_id) + 1
    out = [MAGIC, varint(n)]
    for i in range(256, n):
        if i in by_id:
            left, right = split_in_two(ranks, by_id[i], i)
            out += [varint(left + 1), varint(right)]
        else:
            out.append(varint(0))
    return b"".join(out)


def unpack(packed):
    """{id: bytes} of a packed list, read independently of pack."""
    if packed[:4] != MAGIC:
        sys.exit("no magic")
    at = 4

    def number():
        nonlocal at
        value = shift = 0
        while True:
            b = packed[at]
            at += 1
            value |= (b & 0x7F) << shift
            shift += 7
            if b < 0x80:
                return value

    n = number()
    tokens = dict(enumerate(byte_order()))
    for i in range(256, n):
        left = number()
        if left:
            tokens[i] = tokens[left - 1] + tokens[number()]
    if at != len(packed):
        sys.exit("bytes left over")
    return tokens


def main():
    args = sys.argv[1:]
    check = args[:1] == ["--check"]
    if len(args) != 1 + check:
        sys.exit(__doc__)
    out_dir = os.path.join(os.path.dirname(os.path.abspath(__file__)), "encodings")
    for name in PUBLISHED:
        raw, ranks = read_ranks(os.path.join(args[-1], name + ".tiktoken"), name)
        packed = pack(ranks)
        again = b"".join(
            base64.b64encode(token) + b" %d\n" % i for i, token in sorted(unpack(packed).items())
        )
        if again != raw:
            sys.exit(f"{name}: the packed list expands to something else")
        path = os.path.join(out_dir, name + ".merges")
        if check:
            with open(path, "rb") as f:
                if f.read() != packed:
                    sys.exit(f"{path} is not what the rank file gives")
        else:
            with open(path, "wb") as f:
                f.write(packed)
        print(f"{hashlib.sha256(packed).hexdigest()}  {name}.merges  {len(packed)} bytes")


if __name__ == "__main__":
    main()
