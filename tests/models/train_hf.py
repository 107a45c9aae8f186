#!/usr/bin/env python3
"""train_hf.py - PyPI's tokenizers as judge of bpe_train: 300 small corpora, merge for merge.

    PYTHON tests/models/train_hf.py [--ext ./bpe] [--cases 300] [--seed 1]

With {"tie": "ids", "special_ids": "first", "byte_order": "gpt2", "pattern": "gpt2"} the merges and
all ids must be those of its BpeTrainer; and the huggingface export of what was trained, loaded by
tokenizers, must give the same ids for other texts. PYTHON is one whose sqlite3 loads extensions
and that has tokenizers. Last line: N passed, N failed.
"""
import argparse
import json
import random
import sqlite3
import sys

from tokenizers import Tokenizer, models, pre_tokenizers, trainers

PRINTABLE = [*range(33, 127), *range(161, 173), *range(174, 256)]
OTHERS = [b for b in range(256) if b not in PRINTABLE]
SPELLED = {b: chr(b) for b in PRINTABLE} | {b: chr(256 + i) for i, b in enumerate(OTHERS)}

ALPHABETS = ['ab', 'abc ', 'aAbB \n', 'the cat sat.', '0123 .', '中文字é x', 'ß\u0301 😀\u200d a',
             "it's we'll 'S", ' \t\n\u00a0', 'xyz!?-', 'kl\r\nm']


def spelled(token):
    return ''.join(SPELLED[b] for b in token)


def corpus(rng):
    letters = rng.choice(ALPHABETS)
    return [''.join(rng.choice(letters) for _ in range(rng.randrange(60)))
            for _ in range(rng.randrange(1, 12))]


def train_theirs(rows, size, least, specials):
    tok = Tokenizer(models.BPE())
    tok.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tok.train_from_iterator(rows, trainers.BpeTrainer(
        vocab_size=size, min_frequency=least, special_tokens=specials, show_progress=False,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet()))
    model = json.loads(tok.to_str())['model']
    merges = [tuple(m.split(' ')) if isinstance(m, str) else tuple(m) for m in model['merges']]
    return merges, model['vocab']


def train_ours(db, rows, size, least, specials):
    options = json.dumps({'tie': 'ids', 'special_ids': 'first', 'byte_order': 'gpt2',
                          'pattern': 'gpt2', 'min_frequency': least, 'special_tokens': specials})
    db.execute("DELETE FROM bpe_tokenizers WHERE name = 'mine'")
    db.execute('DELETE FROM docs')
    db.executemany('INSERT INTO docs VALUES(?)', ((r,) for r in rows))
    db.execute("INSERT INTO bpe_tokenizers(name, source) "
               "SELECT 'mine', bpe_train(body, ?, ?) FROM docs", (size, options))
    vocab = {}
    for token, id_, special in db.execute("SELECT token, id, special FROM bpe_vocab('mine')"):
        vocab[token.decode() if special else spelled(token)] = id_
    by_id = {id_: token for token, id_ in vocab.items()}
    merges = [(by_id[left], by_id[right]) for left, right in
              db.execute("SELECT left, right FROM bpe_merges('mine') ORDER BY rank")]
    return merges, vocab


def same_ids(db, rng):
    """The export of 'mine' in their hands and the tokenizer in ours, on other texts."""
    theirs = Tokenizer.from_str(
        db.execute("SELECT bpe_export('mine', 'huggingface')").fetchone()[0])
    for text in corpus(rng) + [''.join(rng.choice(''.join(ALPHABETS)) for _ in range(80))]:
        ours = json.loads(db.execute(
            "SELECT bpe_encode(?, 'mine', '{\"special\": \"allow\"}')", (text,)).fetchone()[0])
        if ours != theirs.encode(text, add_special_tokens=False).ids:
            return text
    return None


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('--ext', default='./bpe')
    parser.add_argument('--cases', type=int, default=300)
    parser.add_argument('--seed', type=int, default=1)
    args = parser.parse_args()
    db = sqlite3.connect(':memory:', isolation_level=None)
    db.enable_load_extension(True)
    db.load_extension(args.ext)
    db.execute('CREATE TABLE docs(body TEXT)')
    passed = failed = 0
    for case in range(args.cases):
        rng = random.Random(f'{args.seed} {case}')
        rows = corpus(rng)
        specials = rng.choice([[], ['<s>'], ['<|endoftext|>', '<pad>']])
        size = 256 + len(specials) + rng.randrange(80)
        least = rng.choice([0, 1, 2, 3])
        theirs = train_theirs(rows, size, least, specials)
        ours = train_ours(db, rows, size, least, specials)
        text = same_ids(db, rng)
        for good, what in ((ours[0] == theirs[0], 'merges'), (ours[1] == theirs[1], 'ids'),
                           (text is None, f'ids of {text!r}')):
            passed += good
            failed += not good
            if not good:
                print(f'train_hf: case {case}: {what} differ: {rows!r} {size} {least} {specials}')
    print(f'{passed} passed, {failed} failed')
    return failed != 0 or passed == 0


if __name__ == '__main__':
    sys.exit(main())
