"""Our huggingface exports, loaded by PyPI's tokenizers, give the ids of the reference rows.

    hf_export.py EXPORTS VECTORS NAME=VECTOR_FILE ...

EXPORTS/NAME.json is an export; VECTOR_FILE holds rows {"text", "ids"[, "ids_with_special",
"decoded", "decoded_skip_special"]}. Files of tiktoken's encodings (no hf_ in the name) hold plain
text rows: rows whose text spells an added token are left out, since tokenizers always finds those.
"""

import json
import sys

from tokenizers import Tokenizer


def check(path, rows, plain):
    """Returns how many comparisons held and prints those that did not."""
    t = Tokenizer.from_file(path)
    names = [a.content for a in t.get_added_tokens_decoder().values()]
    passed = failed = 0

    def expect(what, row, got, want):
        nonlocal passed, failed
        if got == want:
            passed += 1
        else:
            failed += 1
            if failed < 5:
                print(f"{path}: {what}: {row['text']!r}: {got} is not {want}")

    for line in rows:
        row = json.loads(line)
        if plain and any(n in row["text"] for n in names):
            continue
        got = t.encode(row["text"], add_special_tokens=False).ids
        expect("ids", row, got, row["ids"])
        if "ids_with_special" in row:
            got = t.encode(row["text"]).ids
            expect("document", row, got, row["ids_with_special"])
        if not plain:
            want = row.get("decoded", row["text"])
            expect("decoded", row, t.decode(row["ids"], skip_special_tokens=False), want)
            want = row.get("decoded_skip_special", want)
            expect("skipped", row, t.decode(row["ids"], skip_special_tokens=True), want)
    return passed, failed


def main():
    exports, vectors = sys.argv[1:3]
    passed = failed = 0
    for pair in sys.argv[3:]:
        name, vector_file = pair.split("=")
        with open(f"{vectors}/{vector_file}", encoding="utf-8") as f:
            p, q = check(f"{exports}/{name}.json", f, not vector_file.startswith("hf_"))
        passed += p
        failed += q
    print(f"{passed} passed, {failed} failed")
    sys.exit(failed != 0 or passed == 0)


main()
