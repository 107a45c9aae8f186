#!/usr/bin/env python3
"""train.py - bpe_train and the trainers of PyPI on the same text, each in a process of its own.

    build/venv/bin/python tests/bench/train.py [--ext ./bpe] [--corpora build/corpora]
                                               [--rounds 3] [--scale] [--json FILE]

Every trainer gets the text as a list of the same ~4 KB rows and one thread. Seconds are CPU time of
the training alone, user and system, of all threads; MB is the growth of the process's peak memory
while it trains. bpe_train runs as SQL over a table in memory. Where a trainer can split as GPT-2
does, it does, and then so does bpe_train; sentencepiece splits at white space and works on
characters, so its figure is for the same text, not for the same work.

--scale instead trains on 1, 10, 100 and 1000 MB (prose.txt repeated, row by row), one thread and
two, and prints time and memory of bpe_train alone.
"""
import argparse
import json
import os
import resource
import sqlite3
import statistics
import subprocess
import sys
import time

SIZES = [10000, 32000]
GPT2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"


def rows_of(path):
    with open(path, encoding='utf-8') as f:
        text = f.read()
    rows, at = [], 0
    while at < len(text):
        end = min(at + 4096, len(text))
        cut = text.rfind('\n', at, end) + 1 if end < len(text) else end
        end = cut if cut > at else end
        rows.append(text[at:end])
        at = end
    return rows


def database(args):
    db = sqlite3.connect(':memory:')
    db.enable_load_extension(True)
    db.load_extension(args.ext)
    return db


def run_bpe(args, rows, threads=1, repeat=1):
    db = database(args)
    db.execute('CREATE TABLE docs(body TEXT)')
    db.executemany('INSERT INTO docs VALUES(?)', ((r,) for r in rows))
    db.commit()
    options = json.dumps({'pattern': args.pattern, 'threads': threads})
    times = ('(WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n '
             f'WHERE i < {repeat}) SELECT i FROM n)')
    sql = f'SELECT bpe_train(body, ?, ?) FROM {times}, docs' if repeat > 1 else \
        'SELECT bpe_train(body, ?, ?) FROM docs'
    return lambda: db.execute(sql, (args.size, options)).fetchone()


def run_tokenizers(args, rows):
    from tokenizers import Tokenizer, models, pre_tokenizers, trainers
    os.environ['RAYON_NUM_THREADS'] = '1'
    os.environ['TOKENIZERS_PARALLELISM'] = 'false'
    tok = Tokenizer(models.BPE())
    tok.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    trainer = trainers.BpeTrainer(vocab_size=args.size, show_progress=False,
                                  initial_alphabet=pre_tokenizers.ByteLevel.alphabet())
    return lambda: tok.train_from_iterator(rows, trainer)


def run_rustbpe(args, rows):
    import rustbpe
    os.environ['RAYON_NUM_THREADS'] = '1'
    tok = rustbpe.Tokenizer()
    return lambda: tok.train_from_iterator(iter(rows), args.size, pattern=GPT2)


def run_sentencepiece(args, rows):
    import io
    import sentencepiece
    return lambda: sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(rows), model_writer=io.BytesIO(), model_type='bpe',
        vocab_size=args.size, byte_fallback=True, num_threads=1, max_sentence_length=1 << 20,
        minloglevel=2)


TRAINERS = {'bpe_train': run_bpe, 'tokenizers': run_tokenizers, 'rustbpe': run_rustbpe,
            'sentencepiece': run_sentencepiece}


def status(key):
    with open('/proc/self/status', encoding='ascii') as f:
        return next(int(line.split()[1]) for line in f if line.startswith(key)) / 1024


def child(args):
    """One training; its figures as a line of JSON."""
    rows = rows_of(args.text)
    if args.megabytes:
        size = sum(len(r.encode()) for r in rows) / 1e6
        repeat = max(1, round(args.megabytes / size))
        if args.megabytes < size:
            rows = rows[:max(1, int(len(rows) * args.megabytes / size))]
        train = run_bpe(args, rows, args.threads, repeat)
    else:
        train = TRAINERS[args.trainer](args, rows)
    with open('/proc/self/clear_refs', 'w', encoding='ascii') as f:
        f.write('5')  # the peak is from now on
    memory = status('VmRSS')
    before = resource.getrusage(resource.RUSAGE_SELF)
    start = time.perf_counter()
    train()
    wall = time.perf_counter() - start
    after = resource.getrusage(resource.RUSAGE_SELF)
    print(json.dumps({
        'cpu': after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime,
        'wall': wall, 'mb': status('VmHWM') - memory}))


def measure(args, **what):
    command = [sys.executable, os.path.abspath(__file__), '--ext', args.ext]
    for key, value in what.items():
        command += [f'--{key}', str(value)]
    environment = dict(os.environ, RAYON_NUM_THREADS='1', TOKENIZERS_PARALLELISM='false')
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    if done.returncode != 0:
        sys.exit(f'train: {what}: {done.stderr.strip()[-400:]}')
    return json.loads(done.stdout.strip().splitlines()[-1])


def compare(args):
    text = os.path.join(args.corpora, 'prose.txt')
    figures = []
    print('training on prose.txt, 16.8 MB, one thread')
    print(f'{"":14} {"vocabulary":>10} {"CPU s":>8} {"MB/s":>8} {"memory MB":>10} {"slower":>7}')
    for size in SIZES:
        runs = {name: [] for name in TRAINERS}
        for _ in range(args.rounds):
            for name in TRAINERS:
                runs[name].append(measure(args, trainer=name, size=size, text=text))
        ours = statistics.median(r['cpu'] for r in runs['bpe_train'])
        for name, list_ in runs.items():
            cpu = statistics.median(r['cpu'] for r in list_)
            mb = statistics.median(r['mb'] for r in list_)
            figures.append({'trainer': name, 'vocab_size': size, 'cpu': cpu, 'mb': mb})
            print(f'{name:14} {size:10} {cpu:8.3f} {16.77 / cpu:8.1f} {mb:10.1f} '
                  f'{cpu / ours:6.1f}x')
    return figures


def scale(args):
    text = os.path.join(args.corpora, 'prose.txt')
    figures = []
    print('bpe_train of 32000 on prose.txt, repeated')
    print(f'{"MB":>6} {"threads":>8} {"wall s":>8} {"CPU s":>8} {"memory MB":>10}')
    for megabytes in (1, 10, 100, 1000):
        for threads in (1, 2):
            r = measure(args, megabytes=megabytes, threads=threads, size=32000, text=text)
            figures.append(dict(r, megabytes=megabytes, threads=threads))
            print(f'{megabytes:6} {threads:8} {r["wall"]:8.3f} {r["cpu"]:8.3f} {r["mb"]:10.1f}')
    return figures


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('--ext', default='./bpe')
    parser.add_argument('--corpora', default='build/corpora')
    parser.add_argument('--rounds', type=int, default=3)
    parser.add_argument('--json')
    parser.add_argument('--scale', action='store_true')
    parser.add_argument('--pattern', default='gpt2')
    parser.add_argument('--trainer')
    parser.add_argument('--megabytes', type=int)
    parser.add_argument('--threads', type=int, default=1)
    parser.add_argument('--size', type=int)
    parser.add_argument('--text')
    args = parser.parse_args()
    if args.trainer or args.megabytes:
        return child(args)
    figures = scale(args) if args.scale else compare(args)
    if args.json:
        with open(args.json, 'w', encoding='utf-8') as f:
            json.dump(figures, f, indent=1)


if __name__ == '__main__':
    main()
