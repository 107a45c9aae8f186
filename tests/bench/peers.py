#!/usr/bin/env python3
"""peers.py - bpe and tiktoken over the same rows, in one process, on one thread, by turns.

    build/venv/bin/python tests/bench/peers.py [--ext ./bpe] [--db build/corpora/corpora.db]
                                               [--rounds 5] [--json FILE]

tiktoken runs as its users run it, `len(encoding.encode_ordinary(row))` for every row, the rows
being str objects made before the clock starts. bpe runs as `SELECT sum(bpe_count(body, ...))` over
the same rows in a database in memory: cold, the first pass of a new connection whose model is
loaded, and warm, the pass after it; and as bpe_encode_blob. MB are 10^6 bytes of UTF-8, seconds
are this thread's CPU time. A round measures both sides of every corpus, so a slow minute of the
machine falls on both, and the ratio is the median of the rounds' ratios.

Before anything is timed, all ids of all rows are compared one by one. The rank files are not
downloaded: they are written from bpe_vocab, and must have the SHA-256 that tiktoken itself
demands of them. Any difference ends the program with exit code 1.
"""
import argparse
import base64
import hashlib
import json
import sqlite3
import statistics
import sys
import time
from array import array

import tiktoken
import tiktoken_ext.openai_public

ENCODINGS = ['cl100k_base', 'o200k_base']
CORPORA = ['prose', 'code', 'multi']
OURS = {
    'count': 'SELECT sum(bpe_count(body, ?)) FROM docs',
    'blob': 'SELECT sum(length(bpe_encode_blob(body, ?))) / 4 FROM docs',
}
GOAL = 5  # times tiktoken's speed, for counting


def connect(ext, path, corpus):
    db = sqlite3.connect(':memory:')
    db.enable_load_extension(True)
    db.load_extension(ext)
    if corpus:
        db.execute('ATTACH ? AS corpora', (path,))
        db.execute(f'CREATE TABLE docs AS SELECT body FROM corpora."{corpus}"')
        db.commit()
        db.execute('DETACH corpora')
    return db


def tiktoken_encoding(ext, name):
    """tiktoken's own definition of the encoding, its ranks taken from bpe and checked."""
    def ranks_from_bpe(_address, expected_hash):
        rows = connect(ext, None, None).execute(
            'SELECT token, id FROM bpe_vocab(?) WHERE NOT special ORDER BY id', (name,)).fetchall()
        text = b''.join(b'%s %d\n' % (base64.b64encode(token), rank) for token, rank in rows)
        if hashlib.sha256(text).hexdigest() != expected_hash:
            sys.exit(f'peers: the ranks of {name} are not the published ones')
        return dict(rows)
    module = tiktoken_ext.openai_public
    module.load_tiktoken_bpe = ranks_from_bpe
    return tiktoken.Encoding(**module.ENCODING_CONSTRUCTORS[name]())


def compare_ids(ext, path, name, encoding, corpus):
    """The number of ids, when each row's ids are the same on both sides."""
    total = 0
    rows = connect(ext, path, corpus).execute(
        'SELECT rowid, body, bpe_encode_blob(body, ?) FROM docs', (name,))
    for rowid, body, blob in rows:
        ours = array('I', blob)
        if sys.byteorder == 'big':
            ours.byteswap()
        theirs = encoding.encode_ordinary(body)
        if ours.tolist() != theirs:
            sys.exit(f'peers: {name}, {corpus}, row {rowid}: bpe and tiktoken differ')
        total += len(theirs)
    return total


def timed(work):
    start = time.thread_time()
    result = work()
    return time.thread_time() - start, result


def measure_ours(ext, path, name, corpus):
    """Seconds per pass, and the number of ids, which all passes must agree on."""
    times, totals = {}, set()
    for what, sql in OURS.items():
        db = connect(ext, path, corpus)
        db.execute('SELECT bpe_count(?, ?)', ('hi', name)).fetchone()
        for state in ('cold', 'warm'):
            times[f'{what} {state}'], row = timed(lambda: db.execute(sql, (name,)).fetchone())
            totals.add(row[0])
        db.close()
    if len(totals) != 1:
        sys.exit(f'peers: {name}, {corpus}: passes differ: {sorted(totals)}')
    return times, totals.pop()


def measure_theirs(encoding, rows):
    return timed(lambda: sum(len(encoding.encode_ordinary(row)) for row in rows))


def spread(values, digits):
    return (f'{statistics.median(values):.{digits}f} '
            f'({min(values):.{digits}f}-{max(values):.{digits}f})')


def report(figures):
    print(f'{"encoding":12} {"corpus":7} {"pass":11} {"bpe MB/s":>20} {"tiktoken MB/s":>20} '
          f'{"times as fast":>20}')
    out = []
    for (name, corpus, what), rounds in figures.items():
        ours, theirs = [r[0] for r in rounds], [r[1] for r in rounds]
        ratios = [a / b for a, b in rounds]
        print(f'{name:12} {corpus:7} {what:11} {spread(ours, 1):>20} {spread(theirs, 1):>20} '
              f'{spread(ratios, 1):>20}')
        out.append({'encoding': name, 'corpus': corpus, 'what': what, 'n': len(rounds),
                    'bpe': statistics.median(ours), 'tiktoken': statistics.median(theirs),
                    'ratio': statistics.median(ratios)})
    short = [f for f in out if f['what'].startswith('count') and f['ratio'] < GOAL]
    for f in short:
        print(f'missed: {f["encoding"]} {f["corpus"]} {f["what"]}: {f["ratio"]:.1f} times '
              f'tiktoken, goal at least {GOAL}')
    return out


def main():
    options = argparse.ArgumentParser(description='bpe and tiktoken side by side.')
    options.add_argument('--ext', default='./bpe')
    options.add_argument('--db', default='build/corpora/corpora.db')
    options.add_argument('--rounds', type=int, default=5)
    options.add_argument('--json')
    options = options.parse_args()
    print(f'\nSame rows, same run: bpe and tiktoken {tiktoken.__version__}, MB/s of CPU time, '
          f'{options.rounds} rounds: medians (lowest-highest)')
    corpora = sqlite3.connect(options.db)
    rows = {c: [r[0] for r in corpora.execute(f'SELECT body FROM "{c}"')] for c in CORPORA}
    corpora.close()
    size = {c: sum(len(row.encode()) for row in rows[c]) for c in CORPORA}
    encodings = {name: tiktoken_encoding(options.ext, name) for name in ENCODINGS}
    cases = [(name, corpus) for name in ENCODINGS for corpus in CORPORA]
    ids = {(name, corpus): compare_ids(options.ext, options.db, name, encodings[name], corpus)
           for name, corpus in cases}
    print(f'{sum(ids.values())} ids compared one by one: all equal')
    figures = {}
    for _ in range(options.rounds):
        for name, corpus in cases:
            ours, our_total = measure_ours(options.ext, options.db, name, corpus)
            theirs, their_total = measure_theirs(encodings[name], rows[corpus])
            if our_total != their_total or our_total != ids[name, corpus]:
                sys.exit(f'peers: {name}, {corpus}: {our_total} ids here, {their_total} there')
            for what, seconds in ours.items():
                figures.setdefault((name, corpus, what), []).append(
                    (size[corpus] * 1e-6 / seconds, size[corpus] * 1e-6 / theirs))
    out = report(figures)
    if options.json:
        with open(options.json, 'w', encoding='utf-8') as file:
            json.dump({'tiktoken': tiktoken.__version__, 'rounds': options.rounds,
                       'figures': out}, file, indent=1)


if __name__ == '__main__':
    main()
