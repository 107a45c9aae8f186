#!/usr/bin/env python3
"""Writes src/unicode_table.c: the class of every code point, from one version of Unicode.

    python3 data/make_unicode.py                 # fetches the npm package (needs npm and node)
    python3 data/make_unicode.py DIR             # DIR is that package, unpacked (needs node)
    python3 data/make_unicode.py --check [DIR]   # compares with the file in place

The classes are what the published patterns distinguish, and no more: \\s, \\p{N}, \\p{M}, \\p{P},
\\p{S}, and \\p{L} in three parts, because o200k cuts words where upper case follows lower. They
do not overlap, so that one byte per code point says it all. Each is a list of general categories;
SPACE is the property White_Space, which takes precedence over the categories (all of its
members are separators or controls, which no other class has).

Decimal and letter numbers, which of all numbers are word characters, are listed as ranges besides.

The table has two levels: block number by the upper bits of the code point, class by block and
the lower eight bits. Equal blocks are stored once.
"""

import hashlib
import json
import os
import subprocess
import sys
import tempfile

VERSION = "16.0.0"
PACKAGE = f"@unicode/unicode-{VERSION}"
PACKAGE_VERSION = "2.0.7"
# Values are those of the enum in src/unicode.h.
CLASSES = [
    ("other", 0, []),
    ("space", 1, ["Binary_Property/White_Space"]),
    ("number", 2, ["Number"]),
    ("upper", 3, ["Uppercase_Letter", "Titlecase_Letter"]),
    ("lower", 4, ["Lowercase_Letter"]),
    ("letter", 5, ["Modifier_Letter", "Other_Letter"]),
    ("mark", 6, ["Mark"]),
    ("punct", 7, ["Punctuation"]),
    ("symbol", 8, ["Symbol"]),
]
WORD_NUMBERS = ["Decimal_Number", "Letter_Number"]
SPACE = 1
LIMIT = 0x110000
NODE_SCRIPT = """
const out = {};
for (const name of process.argv.slice(2)) {
  const { default: ranges } = await import('file://' + process.argv[1] + '/' + name + '/ranges.mjs');
  out[name] = ranges.map((r) => [r.begin, r.end]);
}
console.log(JSON.stringify(out));
"""


def fetch(into):
    subprocess.run(
        ["npm", "pack", "--silent", f"{PACKAGE}@{PACKAGE_VERSION}"],
        cwd=into, check=True, stdout=subprocess.DEVNULL,
    )
    archive = [f for f in os.listdir(into) if f.endswith(".tgz")][0]
    subprocess.run(["tar", "xzf", archive], cwd=into, check=True)
    return os.path.join(into, "package")


def read_package(folder):
    with open(os.path.join(folder, "package.json"), encoding="utf-8") as f:
        package = json.load(f)
    if (package["name"], package["version"]) != (PACKAGE, PACKAGE_VERSION):
        sys.exit(f"{folder} is {package['name']} {package['version']}")
    paths = [
        p if "/" in p else "General_Category/" + p for _, _, sources in CLASSES for p in sources
    ] + ["General_Category/" + p for p in WORD_NUMBERS]
    done = subprocess.run(
        ["node", "--input-type=module", "-e", NODE_SCRIPT, os.path.abspath(folder), *paths],
        check=True, capture_output=True, text=True,
    )
    return json.loads(done.stdout)


def classify(ranges):
    table = bytearray(LIMIT)
    for _, value, sources in CLASSES:
        for p in sources:
            for begin, end in ranges[p if "/" in p else "General_Category/" + p]:
                for cp in range(begin, end):
                    if table[cp] not in (0, SPACE):
                        sys.exit(f"U+{cp:04X} has two classes")
                    if table[cp] == 0:
                        table[cp] = value
    return bytes(table)


def rows(values, per_line):
    for i in range(0, len(values), per_line):
        yield "  " + ",".join(str(v) for v in values[i : i + per_line]) + ",\n"


def word_numbers(ranges):
    """[first, last] of each run, neighbours joined."""
    out = []
    for begin, end in sorted(r for p in WORD_NUMBERS for r in ranges["General_Category/" + p]):
        if out and out[-1][1] + 1 == begin:
            out[-1][1] = end - 1
        else:
            out.append([begin, end - 1])
    return out


def render(table, numbers):
    blocks, stage1 = [], []
    seen = {}
    for at in range(0, LIMIT, 256):
        block = table[at : at + 256]
        if block not in seen:
            seen[block] = len(blocks)
            blocks.append(block)
        stage1.append(seen[block])
    if len(blocks) > 256:
        sys.exit(f"{len(blocks)} blocks do not fit a byte")
    names = ", ".join(f"{value} {name}" for name, value, _ in CLASSES)
    out = [
        "/* unicode_table.c - the class of every code point; generated, do not edit.\n"
        "**\n"
        f"** Generator: data/make_unicode.py, from the npm package {PACKAGE}\n"
        f"** {PACKAGE_VERSION}, Unicode {VERSION}.\n"
        f"** SHA-256 of the classes of U+0000..U+10FFFF, one byte each:\n"
        f"** {hashlib.sha256(table).hexdigest()}\n"
        "**\n"
        "** The class of c is unicode_stage2[unicode_stage1[c >> 8]][c & 255]. Classes:\n"
        f"** {names}.\n"
        "*/\n"
        '#include "unicode.h"\n'
        "\n"
        f'const char unicode_version[] = "{VERSION}";\n'
        "\n"
        f"const uint8_t unicode_stage1[{len(stage1)}] = {{\n"
    ]
    out += rows(stage1, 24)
    out.append("};\n\nconst uint8_t unicode_stage2[][256] = {\n")
    for block in blocks:
        text = "".join(rows(list(block), 48))
        out.append("  {\n" + text + "  },\n")
    out.append("};\n\n")
    out.append(f"const uint32_t unicode_word_numbers[{len(numbers)}][2] = {{\n")
    for i in range(0, len(numbers), 5):
        pairs = ", ".join(f"{{0x{a:x}, 0x{b:x}}}" for a, b in numbers[i : i + 5])
        out.append(f"  {pairs},\n")
    out.append("};\n")
    return "".join(out)


def main():
    args = sys.argv[1:]
    check = args[:1] == ["--check"]
    args = args[check:]
    if len(args) > 1:
        sys.exit(__doc__)
    with tempfile.TemporaryDirectory() as scratch:
        ranges = read_package(args[0] if args else fetch(scratch))
        text = render(classify(ranges), word_numbers(ranges))
    here = os.path.dirname(os.path.abspath(__file__))
    path = os.path.join(here, "..", "src", "unicode_table.c")
    if check:
        with open(path, encoding="utf-8") as f:
            if f.read() != text:
                sys.exit("src/unicode_table.c is not what the package gives")
    else:
        with open(path, "w", encoding="utf-8") as f:
            f.write(text)


if __name__ == "__main__":
    main()
