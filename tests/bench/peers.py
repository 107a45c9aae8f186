#!/usr/bin/env python3
"""peers.py - bpe and other tokenizers over the same rows, in one process, on one thread, by turns.

    build/venv/bin/python tests/bench/peers.py [--ext ./bpe] [--db build/corpora/corpora.db]
                                               [--rounds 7] [--json FILE] [--only cl100k_base]

bpe runs as its users run it: `SELECT sum(bpe_count(body, ...)) FROM docs` over a table in memory,
`bpe_encode_blob` and `bpe_encode` likewise. A peer runs in the fastest way that its package offers
for a list of rows on one thread; the rows are there, as str or bytes, before the clock starts.
Every figure is MB/s, 10^6 bytes of UTF-8 text per second of this process's CPU time:

    warm    the rows have been seen before
    first   the first time that a fresh connection, or a fresh object of the peer, sees them; its
            vocabulary is loaded, and it has counted one word

Slow peers get every 8th row, or every 64th; where they are compared with bpe, so is it, by rate. A
round measures all sides of one corpus, and the ratio is the median of the rounds' ratios, so a slow
minute of the machine falls on both.

Before anything is timed, each peer's ids are compared with bpe's row by row. Their vocabularies are
bpe's own exports, whose SHA-256 tiktoken checks for itself. tiktoken, tokenizers and gigatoken must
be there; another that cannot be imported or made to run is left out with the reason. Ids that
differ end the program with exit code 1, and so does a peer that must run and does not.
"""
import argparse
import json
import os
import sqlite3
import statistics
import sys
import time
from array import array

os.environ['RAYON_NUM_THREADS'] = '1'  # read by several peers when they are imported
os.environ['TOKENIZERS_PARALLELISM'] = 'false'

ENCODINGS = ['cl100k_base', 'o200k_base']
CORPORA = ['prose', 'code', 'multi']
OURS = {
    'count': 'SELECT sum(bpe_count(body, ?)) FROM docs',
    'blob': 'SELECT sum(length(bpe_encode_blob(body, ?))) / 4 FROM docs',
    'json': 'SELECT sum(json_array_length(bpe_encode(body, ?))) FROM docs',
}
# json_array_length parses the text again, so what is timed is its length.
TIMED = {**OURS, 'json': 'SELECT sum(length(bpe_encode(body, ?))) FROM docs'}


# ---- Peers ------------------------------------------------------------------------------------

class Tiktoken:
    """openai/tiktoken, a row at a time."""
    package, needed, step, first = 'tiktoken', True, 8, False

    def __init__(self, name, files):
        import tiktoken
        import tiktoken_ext.openai_public as public
        from tiktoken.load import load_tiktoken_bpe
        public.load_tiktoken_bpe = lambda _address, expected_hash: load_tiktoken_bpe(
            files['tiktoken'], expected_hash)
        self.encoding = tiktoken.Encoding(**public.ENCODING_CONSTRUCTORS[name]())

    def ids(self, rows):
        return [self.encoding.encode_ordinary(row) for row in rows]

    def run(self, rows):
        return sum(len(self.encoding.encode_ordinary(row)) for row in rows)


class Tokenizers:
    """Hugging Face tokenizers, a row at a time."""
    package, needed, step, first = 'tokenizers', True, 64, False

    def __init__(self, _name, files):
        from tokenizers import Tokenizer
        self.tokenizer = Tokenizer.from_file(files['huggingface'])

    def ids(self, rows):
        return [self.tokenizer.encode(row, add_special_tokens=False).ids for row in rows]

    def run(self, rows):
        encode = self.tokenizer.encode
        return sum(len(encode(row, add_special_tokens=False).ids) for row in rows)


class Gigatoken:
    """gigatoken, all rows in one call that gives one flat array."""
    package, needed, step, first = 'gigatoken', True, 1, True

    def __init__(self, _name, files):
        import gigatoken
        self.tokenizer = gigatoken.Tokenizer.from_tiktoken(files['tiktoken'])
        self.bytes = None

    def prepare(self, rows):
        self.bytes = [row.encode() for row in rows]

    def ids(self, rows):
        return self.tokenizer.encode_batch_list([row.encode() for row in rows], parallel=False)

    def run(self, _rows):
        return self.tokenizer.encode_batch(self.bytes, parallel=False)


class Toktok:
    """toktok-rs, which only counts: all rows in one call."""
    package, needed, step, first = 'toktok-rs', False, 1, False

    def __init__(self, name, _files):
        import toktok
        self.count = lambda rows: toktok.batch_count(rows, name, threads=1)

    def ids(self, rows):
        return [range(n) for n in self.count(rows)]

    def run(self, rows):
        return sum(self.count(rows))


class Fastokens:
    """fastokens, all rows in one call that gives one flat array."""
    package, needed, step, first = 'fastokens', False, 1, False

    def __init__(self, name, files):
        import fastokens
        self.tokenizer = fastokens.Tokenizer.from_tiktoken(files['tiktoken'], encoding=name)

    def ids(self, rows):
        return [self.tokenizer.encode_ordinary(row).ids for row in rows]

    def run(self, rows):
        return len(self.tokenizer.encode_batch_flat(rows)[0]) // 4


class Tokie:
    """tokie, counting row by row."""
    package, needed, step, first = 'tokie', False, 8, False

    def __init__(self, _name, files):
        import tokie
        self.tokenizer = tokie.Tokenizer.from_json(files['huggingface'])

    def ids(self, rows):
        return [list(self.tokenizer.encode(row, add_special_tokens=False).ids) for row in rows]

    def run(self, rows):
        return sum(self.tokenizer.count_tokens(row) for row in rows)


PEERS = [Gigatoken, Tiktoken, Tokenizers, Toktok, Fastokens, Tokie]


def version(package):
    from importlib.metadata import version as of
    return of(package)


# ---- Both sides -------------------------------------------------------------------------------

def connect(ext, path=None, corpus=None):
    db = sqlite3.connect(':memory:')
    db.enable_load_extension(True)
    db.load_extension(ext)
    if corpus:
        db.execute('ATTACH ? AS corpora', (path,))
        db.execute(f'CREATE TABLE docs AS SELECT body FROM corpora."{corpus}"')
        db.commit()
        db.execute('DETACH corpora')
    return db


def write_files(ext, folder, name):
    """The encoding in the formats that peers read."""
    os.makedirs(folder, exist_ok=True)
    db, files = connect(ext), {}
    for form, suffix in (('tiktoken', '.tiktoken'), ('huggingface', '.json')):
        files[form] = os.path.join(folder, name + suffix)
        content = db.execute('SELECT bpe_export(?, ?)', (name, form)).fetchone()[0]
        with open(files[form], 'wb') as file:
            file.write(content if isinstance(content, bytes) else content.encode())
    db.close()
    return files


def our_ids(ext, path, name, corpus):
    rows = []
    for (blob,) in connect(ext, path, corpus).execute(
            'SELECT bpe_encode_blob(body, ?) FROM docs ORDER BY rowid', (name,)):
        ids = array('I', blob)
        if sys.byteorder == 'big':
            ids.byteswap()
        rows.append(ids)
    return rows


def make_peers(name, files, rows, ids):
    """The peers that run and give our ids, and for the others the reason."""
    peers = {}
    for kind in PEERS:
        try:
            peer = kind(name, files)
            for corpus, texts in rows.items():
                some = texts[::kind.step]
                for k, theirs in enumerate(peer.ids(some)):
                    ours = ids[corpus][k * kind.step]
                    same = len(theirs) == len(ours) and (isinstance(theirs, range)
                                                         or list(theirs) == ours.tolist())
                    if not same:
                        raise ValueError(f'{corpus}, row {k * kind.step}: other ids than bpe')
            peers[kind.package] = peer
        except Exception as problem:  # whatever a peer's package may throw
            if kind.needed:
                sys.exit(f'peers: {kind.package}: {problem!r}')
            print(f'without {kind.package}: {name}: {str(problem)[:100]}')
    return peers


def timed(work):
    start = time.process_time()
    result = work()
    return time.process_time() - start, result


def measure_ours(ext, path, name, corpus, expected):
    """Seconds per pass."""
    times = {}
    for what, sql in TIMED.items():
        db = connect(ext, path, corpus)
        db.execute('SELECT bpe_count(?, ?)', ('hi', name)).fetchone()
        first, row = timed(lambda: db.execute(sql, (name,)).fetchone())
        warm, again = timed(lambda: db.execute(sql, (name,)).fetchone())
        if row != again or (what != 'json' and row[0] != expected):
            sys.exit(f'peers: {name}, {corpus}, {what}: passes differ')
        times[f'{what} first'], times[f'{what} warm'] = first, warm
        db.close()
    return times


def measure_theirs(peer, kind, name, files, rows):
    times = {}
    if hasattr(peer, 'prepare'):
        peer.prepare(rows)
    peer.run(rows)
    times[f'{kind.package} warm'] = timed(lambda: peer.run(rows))[0]
    if kind.first:
        fresh = kind(name, files)
        fresh.prepare(['hi'])
        fresh.run(None)
        fresh.prepare(rows)
        times[f'{kind.package} first'] = timed(lambda: fresh.run(rows))[0]
    return times


# ---- Report -----------------------------------------------------------------------------------

# (what of ours, what of theirs, the least ratio that this project set out to reach, by corpus)
GOALS = [
    ('count warm', 'gigatoken warm', {'prose': 1.1, 'code': 1.1, 'multi': 1.1}),
    ('blob warm', 'gigatoken warm', {'prose': 1.0, 'code': 1.0, 'multi': 1.0}),
    ('count first', 'gigatoken first', {'prose': 1.5, 'code': 1.5, 'multi': 1.8}),
]


def spread(values):
    return f'{statistics.median(values):.0f} ({min(values):.0f}-{max(values):.0f})'


def report(figures, rounds):
    names = []
    for figure in figures.values():
        names += [n for n in figure if n not in names]
    for name in dict.fromkeys(key[0] for key in figures):
        print(f'\n{name:16}' + ''.join(f'{c + " MB/s":>22} {"bpe count is":>14}' for c in CORPORA))
        for what in names:
            line = f'{what:16}'
            for corpus in CORPORA:
                figure = figures[name, corpus]
                if what not in figure:
                    line += ' ' * 37
                    continue
                ours = figure['count first' if what.endswith('first') else 'count warm']
                ratio = statistics.median(a / b for a, b in zip(ours, figure[what]))
                line += f'{spread(figure[what]):>22} {ratio:>13.2f}x'
            print(line)
    met = missed = 0
    for (name, corpus), figure in figures.items():
        for ours, theirs, bounds in GOALS:
            ratio = statistics.median(a / b for a, b in zip(figure[ours], figure[theirs]))
            met += ratio >= bounds[corpus]
            if ratio < bounds[corpus]:
                missed += 1
                print(f'missed: {name} {corpus}: {ours} is {ratio:.2f} times {theirs}, goal '
                      f'{bounds[corpus]}')
    print(f'{met} of {met + missed} goals met; {rounds} rounds, medians (lowest-highest)')


def main():
    options = argparse.ArgumentParser(description='bpe and other tokenizers side by side.')
    options.add_argument('--ext', default='./bpe')
    options.add_argument('--db', default='build/corpora/corpora.db')
    options.add_argument('--files', default='build/peers')
    options.add_argument('--rounds', type=int, default=7)
    options.add_argument('--only', choices=ENCODINGS)
    options.add_argument('--json')
    options = options.parse_args()
    corpora = sqlite3.connect(options.db)
    rows = {c: [r[0] for r in corpora.execute(f'SELECT body FROM "{c}" ORDER BY rowid')]
            for c in CORPORA}
    corpora.close()
    figures, versions, compared = {}, {}, 0
    for name in [options.only] if options.only else ENCODINGS:
        files = write_files(options.ext, options.files, name)
        ids = {c: our_ids(options.ext, options.db, name, c) for c in CORPORA}
        peers = make_peers(name, files, rows, ids)
        compared += sum(len(i) for c in CORPORA for i in ids[c])
        versions.update({package: version(package) for package in peers})
        for _ in range(options.rounds):
            for corpus in CORPORA:
                figure = figures.setdefault((name, corpus), {})
                texts = rows[corpus]
                size = sum(len(row.encode()) for row in texts)
                expected = sum(len(i) for i in ids[corpus])
                measured = measure_ours(options.ext, options.db, name, corpus, expected)
                for what, seconds in measured.items():
                    figure.setdefault(what, []).append(size * 1e-6 / seconds)
                for kind in PEERS:
                    if kind.package not in peers:
                        continue
                    some = texts[::kind.step]
                    part = sum(len(row.encode()) for row in some)
                    for what, seconds in measure_theirs(peers[kind.package], kind, name, files,
                                                        some).items():
                        figure.setdefault(what, []).append(part * 1e-6 / seconds)
    print(f'\n{compared} ids compared one by one with gigatoken\'s, and every 8th or 64th row\'s '
          f'with the others\': all equal')
    print('versions: ' + ', '.join(f'{p} {v}' for p, v in versions.items()) +
          f'; SQLite {sqlite3.sqlite_version}')
    report(figures, options.rounds)
    if options.json:
        out = [{'encoding': name, 'corpus': corpus, 'what': what, 'n': len(values),
                'median': statistics.median(values), 'min': min(values), 'max': max(values)}
               for (name, corpus), figure in figures.items() for what, values in figure.items()]
        with open(options.json, 'w', encoding='utf-8') as file:
            json.dump({'versions': versions, 'figures': out}, file, indent=1)


if __name__ == '__main__':
    main()
