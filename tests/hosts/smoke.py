#!/usr/bin/env python3
"""smoke.py - the statements of smoke.test in a Python host.

    smoke.py sqlite3|pysqlite3|sqlean|apsw|datasette ./bpe [FILE]

The host loads the extension in its own documented way and runs FILE (default: smoke.test beside
this file) in a fresh database. Then come the things that only a host can do: values bound, bytes
given back. Refuses a file with anything that it does not understand, or with too few records:
statements must not be lost between here and there. Last line: N passed, N failed.
"""
import asyncio
import importlib
import json
import os
import sys
import urllib.parse

LEAST_RECORDS = 50


def parse(path):
    """The records of a file: (line, option or None, head, SQL, expected rows or None)."""
    records, block, start = [], [], 0
    with open(path, encoding="utf-8") as f:
        lines = f.read().split("\n") + [""]
    for number, line in enumerate(lines, 1):
        if line:
            start = start if block else number
            block.append(line)
            continue
        while block and block[0].startswith("#"):
            block.pop(0)
        if block:
            records.append(record(start, block))
        block = []
    return records


def record(start, block):
    option = None
    if block[0].startswith("onlyif option:"):
        option = block.pop(0)[len("onlyif option:"):]
    head, rest = block[0], block[1:]
    if not head.startswith(("statement ok", "statement error ", "query ")):
        raise SystemExit(f"line {start}: not understood: {head}")
    if head.startswith("query ") != ("----" in rest):
        raise SystemExit(f"line {start}: a query, and only that, has ----")
    if "----" not in rest:
        return start, option, head, "\n".join(rest), None
    cut = rest.index("----")
    return start, option, head, "\n".join(rest[:cut]), rest[cut + 1:]


def shown(value, kind):
    """A value as the file has it; a type that is not the one wanted shows."""
    if value is None:
        return "NULL"
    if (kind, type(value)) not in (("I", int), ("T", str)):
        return f"{type(value).__name__} {value!r}"
    return str(value)


def check(run, rec):
    """None, or what is wrong."""
    _, option, head, sql, expected = rec
    if option and run("SELECT sqlite_compileoption_used(?)", option)[0][0] == 0:
        return None
    try:
        rows = run(sql)
    except Exception as e:  # each host has exceptions of its own
        wanted = head[len("statement error "):] if head.startswith("statement error ") else None
        return None if wanted and wanted in str(e) else f"{type(e).__name__}: {e}"
    if head.startswith("statement"):
        return None if head == "statement ok" else "no error"
    kinds = head.split()[1]
    got = ["|".join(map(shown, row, kinds)) for row in rows]
    if any(len(row) != len(kinds) for row in rows):
        return "another number of columns"
    return None if got == expected else f"expected {expected}\n      got {got}"


def own_checks(run):
    """(name, whether it holds) of what needs values from outside SQL."""
    data = b"\xff\x00 na\xc3\xafve \xf0\x9f\x91\x8d\x00"
    yield "bytes bound", run("SELECT bpe_decode_blob(bpe_encode_blob(?))", data)[0][0] == data
    text = "naïve\0日本語 👍"
    yield "text bound", run("SELECT bpe_decode(bpe_encode(?, 'gpt2'), 'gpt2')", text)[0][0] == text
    ids = json.loads(run("SELECT bpe_encode(?, ?)", "hello world", "cl100k_base")[0][0])
    yield "ids read as JSON", ids == [15339, 1917]
    packed = run("SELECT bpe_encode_blob(?)", "hello world")[0][0]
    yield "ids as bytes", len(packed) == 8 and isinstance(packed, bytes)
    yield "None", run("SELECT bpe_count(?)", None)[0][0] is None


def run_file(run, path):
    """The totals, and the failures printed."""
    passed = failed = 0
    records = parse(path)
    results = [(f"{path}:{rec[0]}", check(run, rec)) for rec in records]
    results += [(name, None if held else "wrong") for name, held in own_checks(run)]
    if len(records) < LEAST_RECORDS:
        results.append((path, f"only {len(records)} records"))
    for name, wrong in results:
        passed, failed = passed + (wrong is None), failed + (wrong is not None)
        if wrong is not None:
            print(f"{name}: {wrong}")
    return passed, failed


# ---- Hosts --------------------------------------------------------------------------------------


def dbapi(module_name, extension, path):
    module = importlib.import_module(module_name)
    db = module.connect(":memory:", isolation_level=None)
    db.enable_load_extension(True)
    db.load_extension(extension)
    db.enable_load_extension(False)
    print(f"{module_name}, SQLite {module.sqlite_version}")
    totals = run_file(lambda sql, *args: db.execute(sql, args).fetchall(), path)
    db.close()
    return totals


def apsw(extension, path):
    module = importlib.import_module("apsw")
    db = module.Connection(":memory:")
    db.enable_load_extension(True)
    db.load_extension(extension)
    print(f"apsw {module.apsw_version()}, SQLite {module.sqlite_lib_version()}")
    totals = run_file(lambda sql, *args: list(db.execute(sql, args)), path)
    db.close()
    return totals


async def datasette(extension, path):
    """On Datasette's own write connection, then through its pages as a reader has it."""
    from datasette import version
    from datasette.app import Datasette

    host = Datasette(memory=True, sqlite_extensions=[extension])
    database = host.add_memory_database("smoke")

    def write(db):
        db.isolation_level = None
        db.row_factory = None
        return run_file(lambda sql, *args: db.execute(sql, args).fetchall(), path)

    passed, failed = await database.execute_write_fn(write)
    sql = "SELECT bpe_count(:text), bpe_encode('hello world', 'cl100k_base')"
    query = urllib.parse.urlencode({"sql": sql, "text": "hello world", "_shape": "arrays"})
    answer = (await host.client.get("/smoke.json?" + query)).json()
    held = answer.get("rows") == [[2, "[15339,1917]"]]
    print(f"datasette {version.__version__}" + ("" if held else f": {answer}"))
    return passed + held, failed + (not held)


def main():
    if len(sys.argv) not in (3, 4):
        raise SystemExit(__doc__)
    name, extension = sys.argv[1], os.path.abspath(sys.argv[2])
    here = os.path.dirname(os.path.abspath(__file__))
    path = sys.argv[3] if len(sys.argv) > 3 else os.path.join(here, "smoke.test")
    if name == "apsw":
        passed, failed = apsw(extension, path)
    elif name == "datasette":
        passed, failed = asyncio.run(datasette(extension, path))
    else:
        module = {"pysqlite3": "pysqlite3.dbapi2"}.get(name, name)
        passed, failed = dbapi(module, extension, path)
    print(f"{passed} passed, {failed} failed")
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
