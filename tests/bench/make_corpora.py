#!/usr/bin/env python3
"""make_corpora.py - the texts that `make bench` measures, made from packages instead of kept.

    tests/bench/make_corpora.py [--install] [--force] [FOLDER]        default: build/corpora

writes three corpora and nine pathological texts as plain files, then the same as one database:

    prose.txt   English: An Anarchist FAQ, the King James Bible, Debian's handbook
    code.txt    Python's library, C and C++ headers, TypeScript's compiler (from npm)
    multi.txt   the handbook in eleven languages, CLDR's names of characters in fourteen
    a1m.txt ... one megabyte each of what tokenizers are slow on (see LONG_TEXTS)
    corpora.db  tables prose, code, multi (id, body) of rows of about 4 KB; table long (name, body)

A row ends after the last newline within 4096 bytes, so no row cuts a line that is shorter.

Invariant: the same package versions give the same bytes. The checksums of one Debian 12 are in
REFERENCE; code.txt also follows whatever headers are installed, so differences are printed, not
refused. What is refused: a missing package (they are named; --install gets them), and an input
that came out empty. A folder whose files still match its SHA256SUMS is left as it is.
"""
import argparse
import glob
import gzip
import hashlib
import html
import os
import random
import re
import shutil
import sqlite3
import subprocess
import sys
import tarfile
from html.parser import HTMLParser

TYPESCRIPT = 'typescript@5.6.3'
HANDBOOK = '/usr/share/doc/debian-handbook/html'
CLDR = '/usr/share/unicode/cldr/common/annotations'
ROW_BYTES = 4096

# Package, and a file whose presence shows that it is installed with its documentation.
PACKAGES = [
    ('anarchism', '/usr/share/doc/anarchism/html/index.html*'),
    ('bible-kjv', '/usr/bin/bible'),
    ('bible-kjv-text', '/usr/lib/bible.data'),
    ('debian-handbook', HANDBOOK + '/en-US/*.html'),
    ('unicode-cldr-core', CLDR + '/ja.xml'),
    ('libpython3-stdlib', '/usr/lib/python3.*/argparse.py'),
    ('libc6-dev', '/usr/include/stdio.h'),
    ('linux-libc-dev', '/usr/include/linux/types.h'),
    ('g++', '/usr/include/c++/*/vector'),
]

# Size, and first and last digits of the SHA-256, of the texts that published figures are for.
REFERENCE = {
    'prose.txt': (16772959, '6d4d13e4', 'd7888'),
    'code.txt': (13000000, 'e6202bdd', '76992'),
    'multi.txt': (9332790, '6379d108', '56624'),
}

LANGUAGES = ['ja-JP', 'zh-CN', 'zh-TW', 'ko-KR', 'ru-RU', 'ar-MA', 'el-GR', 'de-DE', 'fr-FR',
             'vi-VN', 'fa-IR']
ANNOTATIONS = ['ja', 'zh', 'zh_Hant', 'ko', 'ru', 'ar', 'hi', 'th', 'he', 'el', 'uk', 'ta', 'bn',
               'ka']


class TextOfHtml(HTMLParser):
    """Text as a reader sees it: white space folded except in <pre>, a line per block."""
    BLOCKS = frozenset('p div br li tr h1 h2 h3 h4 h5 h6 pre blockquote ul ol table dd dt dl hr '
                       'title'.split())

    def __init__(self):
        super().__init__(convert_charrefs=True)
        self.parts, self.hidden, self.preformatted = [], 0, 0

    def handle_starttag(self, tag, attrs):
        self.hidden += tag in ('script', 'style')
        self.preformatted += tag == 'pre'
        if tag in self.BLOCKS:
            self.parts.append('\n')

    def handle_endtag(self, tag):
        if tag in ('script', 'style') and self.hidden:
            self.hidden -= 1
        if tag == 'pre' and self.preformatted:
            self.preformatted -= 1
        if tag in self.BLOCKS:
            self.parts.append('\n')

    def handle_data(self, data):
        if not self.hidden:
            self.parts.append(data if self.preformatted else re.sub(r'[ \t\r\n]+', ' ', data))


def text_of_html(path):
    opener = gzip.open if path.endswith('.gz') else open
    with opener(path, 'rb') as file:
        source = file.read().decode('utf-8', 'replace')
    parser = TextOfHtml()
    parser.feed(source)
    parser.close()
    text = ''.join(parser.parts)
    text = re.sub(r'[ \t]+\n', '\n', text)
    text = re.sub(r'\n[ \t]+', '\n', text)
    return re.sub(r'\n{3,}', '\n\n', text).strip() + '\n\n'


def cut(data, limit):
    """At most `limit` bytes, ending on a character."""
    return data[:limit].decode('utf-8', 'ignore').encode()


def handbook(language):
    return sorted(glob.glob(f'{HANDBOOK}/{language}/*.html'))


def files_of_package(package):
    listing = subprocess.run(['dpkg', '-L', package], capture_output=True, text=True, check=True)
    return sorted(path for path in listing.stdout.split('\n')
                  if os.path.isfile(path) and not os.path.islink(path))


def make_prose():
    faq = [path for path in files_of_package('anarchism')
           if re.search(r'/html/.*\.html(\.gz)?$', path)]
    verses = subprocess.run(['bible', '-f', 'Gen1:1-Rev22:21'], capture_output=True, check=True)
    # Without the "Gen1:1 " before each verse it is running prose.
    bible = re.sub(r'(?m)^\S+\d+:\d+ ', '', verses.stdout.decode('utf-8', 'replace'))
    return ''.join([text_of_html(path) for path in faq] + [bible] +
                   [text_of_html(path) for path in handbook('en-US')]).encode()


def first_bytes(paths, limit):
    """The files one after the other, those that are no UTF-8 left out, up to `limit` bytes."""
    parts, left = [], limit
    for path in paths:
        if left <= 0:
            break
        with open(path, 'rb') as file:
            data = file.read()
        try:
            data.decode('utf-8')
        except UnicodeDecodeError:
            continue
        data = cut(data, left)
        parts.append(data)
        left -= len(data)
    return b''.join(parts)


def newest(pattern):
    """Of folders that differ in a version number, the highest."""
    found = glob.glob(pattern)
    return max(found, key=lambda path: [int(n) for n in re.findall(r'\d+', path)])


def regular_files(pattern):
    return sorted(path for path in glob.glob(pattern, recursive=True) if os.path.isfile(path))


def typescript(folder):
    """typescript.js as published; npm checks the archive against the registry's own checksum."""
    target = os.path.join(folder, 'typescript.js')
    if not os.path.exists(target):
        packed = subprocess.run(['npm', 'pack', '--silent', TYPESCRIPT], cwd=folder, check=True,
                                stdout=subprocess.PIPE, text=True).stdout.split()[-1]
        archive = os.path.join(folder, packed)
        with tarfile.open(archive) as tar:
            member = tar.extractfile('package/lib/typescript.js')
            with open(target + '.new', 'wb') as out:
                shutil.copyfileobj(member, out)
        os.replace(target + '.new', target)
        os.remove(archive)
    return target


def make_code(folder):
    python = regular_files(newest('/usr/lib/python3.*') + '/**/*.py')
    c_headers = regular_files('/usr/include/**/*.h')
    cxx_headers = regular_files(newest('/usr/include/c++/[0-9]*') + '/**/*')
    return (first_bytes(python, 5_000_000) + first_bytes(c_headers, 3_500_000) +
            first_bytes(cxx_headers, 1_500_000) + first_bytes([typescript(folder)], 3_000_000))


def make_multi():
    parts = []
    for language in LANGUAGES:
        text, limit = b'', 700_000
        for path in handbook(language):
            text += text_of_html(path).encode()
            if len(text) >= limit:
                break
        parts.append(cut(text, limit))
    for language in ANNOTATIONS:
        with open(f'{CLDR}/{language}.xml', encoding='utf-8') as file:
            pairs = re.findall(r'<annotation cp="([^"]+)"[^>]*>([^<]+)<', file.read())
        lines = ''.join(f'{html.unescape(c)} {html.unescape(name)}\n' for c, name in pairs)
        parts.append(cut(lines.encode(), 120_000))
    return b''.join(parts)


def make_long_texts():
    """What tokenizers are slow on: one piece of a megabyte, or nothing that was seen before."""
    size = 1_000_000
    noise = random.Random(12345)
    bad_utf8 = bytes(noise.randrange(256) for _ in range(600_000)).decode('utf-8', 'replace')
    draw = random.Random(777)
    letters = bytes(draw.choice(b'abcdefghijklmnopqrstuvwxyz') for _ in range(size))
    digits = bytes(draw.choice(b'0123456789') for _ in range(size))
    return {
        'a1m': b'a' * size,
        'sp1m': b' ' * size,
        'nl1m': b'\n' * size,
        'punct1m': b'-' * size,
        'randlet1m': letters,
        'rand1m': cut(bad_utf8.encode(), size),
        'ab1m': b'ab' * (size // 2),
        'cjk1m': '的'.encode() * 333_334,
        'digits1m': digits,
    }


def rows(data):
    start = 0
    while start < len(data):
        stop = min(start + ROW_BYTES, len(data))
        newline = data.rfind(b'\n', start, stop)
        if newline >= 0 and stop < len(data):
            stop = newline + 1
        while stop < len(data) and data[stop] & 0xC0 == 0x80:
            stop -= 1
        yield data[start:stop].decode()
        start = stop


def write_database(path, corpora, long_texts):
    if os.path.exists(path):
        os.remove(path)
    db = sqlite3.connect(path)
    for name, data in corpora.items():
        db.execute(f'CREATE TABLE "{name}"(id INTEGER PRIMARY KEY, body TEXT NOT NULL)')
        db.executemany(f'INSERT INTO "{name}"(body) VALUES(?)', ((row,) for row in rows(data)))
    db.execute('CREATE TABLE long(name TEXT PRIMARY KEY, body TEXT NOT NULL)')
    db.executemany('INSERT INTO long VALUES(?, ?)',
                   ((name, data.decode()) for name, data in long_texts.items()))
    db.commit()
    for name in corpora:
        print(f'{name:12}{db.execute(f"SELECT count(*) FROM {name}").fetchone()[0]:>6} rows')
    db.close()


def sha256(path):
    with open(path, 'rb') as file:
        return hashlib.sha256(file.read()).hexdigest()


def up_to_date(folder):
    try:
        with open(os.path.join(folder, 'SHA256SUMS'), encoding='ascii') as file:
            lines = [line.split() for line in file]
        return len(lines) == 13 and all(sha256(os.path.join(folder, name)) == digest
                                        for digest, name in lines)
    except OSError:
        return False


def remark(name, size, digest):
    if name not in REFERENCE:
        return ''
    want_size, head, tail = REFERENCE[name]
    if size == want_size and digest.startswith(head) and digest.endswith(tail):
        return '  = reference'
    return f'  differs from the reference ({want_size} bytes, {head}...{tail}): other versions'


def missing_packages():
    missing = [name for name, sign in PACKAGES if not glob.glob(sign)]
    return missing + ([] if shutil.which('npm') else ['npm'])


def require_packages(install):
    missing = missing_packages()
    if missing and install:
        subprocess.run(['apt-get', 'install', '-y', '--no-install-recommends'] + missing,
                       check=True)
        missing = missing_packages()
    if missing:
        sys.exit('make_corpora: missing: ' + ' '.join(missing) +
                 '\n  apt-get install -y --no-install-recommends ' + ' '.join(missing))


def main():
    options = argparse.ArgumentParser(description='Makes the texts that the benchmark measures.')
    options.add_argument('folder', nargs='?', default='build/corpora')
    options.add_argument('--install', action='store_true', help='apt-get what is missing')
    options.add_argument('--force', action='store_true', help='make again what is there')
    options = options.parse_args()
    folder = options.folder
    if not options.force and up_to_date(folder):
        print(f'make_corpora: {folder} is up to date')
        return
    require_packages(options.install)
    os.makedirs(folder, exist_ok=True)
    corpora = {'prose': make_prose(), 'code': make_code(folder), 'multi': make_multi()}
    long_texts = make_long_texts()
    for name, data in {**corpora, **long_texts}.items():
        if not data:
            sys.exit(f'make_corpora: {name} came out empty')
        with open(os.path.join(folder, name + '.txt'), 'wb') as file:
            file.write(data)
    write_database(os.path.join(folder, 'corpora.db'), corpora, long_texts)
    names = [name + '.txt' for name in {**corpora, **long_texts}] + ['corpora.db']
    sums = {name: sha256(os.path.join(folder, name)) for name in names}
    for name, digest in sums.items():
        size = os.path.getsize(os.path.join(folder, name))
        print(f'{name:14}{size:>10} bytes  {digest}{remark(name, size, digest)}')
    with open(os.path.join(folder, 'SHA256SUMS'), 'w', encoding='ascii') as file:
        file.writelines(f'{digest}  {name}\n' for name, digest in sums.items())


if __name__ == '__main__':
    main()
