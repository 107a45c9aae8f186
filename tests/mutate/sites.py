"""sites.py - the places of a C file where a small change of meaning can be made.

    for site in sites(text, active_lines): site.kind, site.line, site.variants

Works on tokens, so that comments, strings and preprocessor lines (macro bodies too) are left
alone; so are assertions, asm, the sizes of declared arrays and lines that this machine does not
compile or run. It knows as much C as the sources here need, written as .clang-format has them; what
it misreads does not compile and is not counted.

Kinds, with what becomes of the code:
    compare    < and <=, > and >=, == and != for each other; < and > for each other
    constant   a number, or a character, one more or one less
    sign       + and -, += and -=, ++ and -- for each other
    logic      && and || for each other
    not        ! dropped
    condition  of if, while, for and ?: made true or false; it is still evaluated
    delete     an assignment, a call or a step by itself left out
    return     another value: 0, or 1 where it was nothing, false, NULL or OK
    jump       break and continue for each other
    bits       << and >>, & and | for each other
"""
import collections
import re

Token = collections.namedtuple("Token", "kind text start end line")
Site = collections.namedtuple("Site", "kind start end line variants")

KINDS = ("compare", "constant", "sign", "logic", "not", "condition", "delete", "return", "jump",
         "bits")

TOKEN = re.compile(
    r"""(?P<comment>/\*.*?\*/|//[^\n]*)
      |(?P<directive>^[ \t]*\#(?:/\*.*?\*/|\\\n|[^\n])*)
      |(?P<string>"(?:\\.|[^"\\\n])*")
      |(?P<char>'(?:\\.|[^'\\\n])+')
      |(?P<number>\.?[0-9](?:[eEpP][+-]|[\w.])*)
      |(?P<name>[A-Za-z_]\w*)
      |(?P<mark><<=|>>=|\.\.\.|->|\+\+|--|<<|>>|<=|>=|==|!=|&&|\|\||[-+*/%&|^]=|\S)""",
    re.VERBOSE | re.DOTALL | re.MULTILINE)

SWAPS = {
    "compare": {"<": ("<=", ">"), "<=": ("<", ">"), ">": (">=", "<"), ">=": (">", "<"),
                "==": ("!=",), "!=": ("==",)},
    "sign": {"+": ("-",), "-": ("+",), "+=": ("-=",), "-=": ("+=",), "++": ("--",), "--": ("++",)},
    "logic": {"&&": ("||",), "||": ("&&",)},
    "bits": {"<<": (">>",), ">>": ("<<",), "&": ("|",), "|": ("&",), "<<=": (">>=",),
             ">>=": ("<<=",), "&=": ("|=",), "|=": ("&=",)},
}
BINARY_ONLY = {"+", "-", "&"}  # a sign or an address when nothing stands before it
KEYWORDS = set("return case else do goto sizeof default break continue".split())
TYPE_WORDS = set("const static struct enum union unsigned signed int char long short void double "
                 "float inline typedef extern register volatile".split())
LEFT_ALONE = set("static_assert _Static_assert assert __asm__ asm __attribute__".split())
NOTHING = {"0", "false", "NULL", "BPE_OK", "SQLITE_OK"}
CLOSES = {"(": ")", "[": "]", "{": "}"}


def tokens(text):
    """All tokens but comments and directives."""
    out, line, at = [], 1, 0
    for m in TOKEN.finditer(text):
        line += text.count("\n", at, m.start())
        at = m.start()
        if m.lastgroup not in ("comment", "directive"):
            out.append(Token(m.lastgroup, m.group(), m.start(), m.end(), line))
    return out


def directive_lines(text):
    """Numbers of the lines that belong to preprocessor directives."""
    out = set()
    for m in TOKEN.finditer(text):
        if m.lastgroup == "directive":
            first = text.count("\n", 0, m.start()) + 1
            out.update(range(first, first + m.group().count("\n") + 1))
    return out


class Reader:
    """The tokens of a file with what surrounds each: its bracket, its function, its statement."""

    def __init__(self, text):
        self.text = text
        self.t = tokens(text)
        self.match = {}      # of an opening bracket, the index of the closing one
        self.opening = {}    # and the other way round
        self.inside = []     # of each token, the indices of the open brackets around it
        self.body = []       # whether each token is inside a function's body
        self.bodies = set()  # indices of the braces that open a function's body
        self._brackets()
        self.alone = self._left_alone()

    def _brackets(self):
        stack, functions = [], 0
        for i, token in enumerate(self.t):
            mark = token.text if token.kind == "mark" else ""
            if mark in (")", "]", "}") and stack:
                opened = stack.pop()
                self.match[opened], self.opening[i] = i, opened
                functions -= opened in self.bodies
            self.inside.append(tuple(stack))
            self.body.append(functions > 0)
            if mark in CLOSES:
                stack.append(i)
                if mark == "{" and not stack[:-1] and self.before(i) == ")":
                    self.bodies.add(i)
                    functions += 1

    def before(self, i):
        return self.t[i - 1].text if i > 0 else ""

    def after(self, i):
        return self.t[i + 1].text if i + 1 < len(self.t) else ""

    def _left_alone(self):
        out = set()
        for i, token in enumerate(self.t):
            if token.text in LEFT_ALONE and self.after(i) == "(":
                out.update(range(i, self.match[i + 1] + 1))
        return out

    def is_binary(self, i):
        """Whether + - & at i stands between two operands."""
        previous = self.t[i - 1]
        if previous.kind in ("number", "string", "char") or previous.text in (")", "]"):
            return True
        return previous.kind == "name" and previous.text not in KEYWORDS

    def statement_starts(self):
        """Indices of the tokens that begin a statement in some function's body."""
        headers = set()  # closing brackets of if (...), while (...), for (...), switch (...)
        for i, token in enumerate(self.t):
            if token.text in ("if", "while", "for", "switch") and self.after(i) == "(":
                headers.add(self.match[i + 1])
        for i in range(1, len(self.t)):
            p = self.t[i - 1].text
            if not self.body[i] or not self._in_block(i):
                continue
            label = p == ":" and self._is_label(i - 1)
            if p in (";", "{", "}", "else", "do") or i - 1 in headers or label:
                yield i

    def _in_block(self, i):
        """Whether the innermost bracket around i is a block's, not an initialiser's."""
        opened = self.inside[i][-1]
        if self.t[opened].text != "{" or opened in self.bodies:
            return opened in self.bodies
        if self.before(opened) == ")":  # or of a literal: (type){...}
            return self.before(self.opening[opened - 1]) in ("if", "while", "for", "switch")
        return self.before(opened) in (";", "{", "}", "else", "do", ":")

    def _is_label(self, colon):
        i = colon - 1
        while i > 0 and self.t[i].text not in (";", "{", "}", "case", "default", "?"):
            i -= 1
        return self.t[i].text in ("case", "default") or (
            self.t[colon - 1].kind == "name" and i == colon - 2)

    def end_of_statement(self, i):
        """Index of the semicolon that ends the statement at i; None for a block."""
        while i < len(self.t):
            text = self.t[i].text
            if text == ";":
                return i
            if text == "}":
                return None
            i = self.match.get(i, i) + 1
        return None

    def is_declaration(self, i):
        """Whether the statement at i declares something: type name, type *name, const ..."""
        if self.t[i].text in TYPE_WORDS:
            return True
        if self.t[i].kind != "name":
            return False
        j = i + 1
        while self.t[j].text in ("*", "const"):
            j += 1
        return self.t[j].kind == "name"

    def span(self, first, last):
        return self.text[self.t[first].start:self.t[last].end]


def more_or_less(token):
    """The literal one more and one less."""
    if token.kind == "char":
        return ("(%s + 1)" % token.text, "(%s - 1)" % token.text)
    m = re.fullmatch(r"(0[xX][0-9a-fA-F]+|0[0-7]*|[1-9][0-9]*)([uUlL]*)", token.text)
    if not m:
        return ("(%s + 1)" % token.text, "(%s - 1)" % token.text)
    digits, suffix = m.groups()
    octal = len(digits) > 1 and digits[0] == "0" and digits[1] not in "xX"
    value = int(digits, 8) if octal else int(digits, 0)
    form = "0x%x" if digits[:2].lower() == "0x" else "0%o" if octal else "%d"
    up = form % (value + 1) + suffix
    return (up, form % (value - 1) + suffix) if value > 0 else (up, "(-1)")


def array_sizes(r):
    """Indices of the numbers that are the size of a declared array."""
    out, starts = set(), [i for i in r.statement_starts() if r.is_declaration(i)]
    spans = [(i, r.end_of_statement(i)) for i in starts]
    for i, token in enumerate(r.t):
        if token.kind != "number" or r.before(i) != "[" or r.after(i) != "]":
            continue
        if r.t[i - 2].kind != "name" and r.t[i - 2].text != "]":
            continue
        if not r.body[i]:
            if r.after(i + 1) in (";", ",", "=", "[", ")"):
                out.add(i)
        elif any(a < i < b and "=" not in [x.text for x in r.t[a:i]]
                 for a, b in spans if b is not None):
            out.add(i)
    return out


def of_token(r, i, sizes):
    token = r.t[i]
    if token.kind in ("number", "char") and i not in sizes:
        variants = more_or_less(token)
        if r.before(i) == "(" and r.before(i - 1).endswith("_C"):  # UINT64_C(0)
            variants = tuple(v for v in variants if v[0] != "(")
        yield Site("constant", token.start, token.end, token.line, variants)
    if token.text in ("break", "continue"):
        other = "continue" if token.text == "break" else "break"
        yield Site("jump", token.start, token.end, token.line, (other,))
    if token.kind != "mark":
        return
    if token.text == "!":
        yield Site("not", token.start, token.end, token.line, ("",))
    if token.text == "?":
        yield Site("condition", token.start, token.end, token.line, ("|| 1 ?",))
    for kind, swaps in SWAPS.items():
        if token.text in swaps and (token.text not in BINARY_ONLY or r.is_binary(i)):
            yield Site(kind, token.start, token.end, token.line, swaps[token.text])


def of_condition(r, i):
    """The condition after if, while or for at i."""
    first, last = i + 2, r.match[i + 1] - 1
    if r.t[i].text == "for":
        marks = [j for j in range(first, last + 1)
                 if r.t[j].text == ";" and r.inside[j][-1] == i + 1]
        first, last = marks[0] + 1, marks[1] - 1
    if first > last or r.span(first, last) in ("0", "1", "true", "false"):
        return
    start, end = r.t[first].start, r.t[last].end
    code = r.text[start:end]
    yield Site("condition", start, end, r.t[first].line, ("((%s), 1)" % code, "((%s), 0)" % code))


def of_statement(r, i):
    end = r.end_of_statement(i)
    if end is None:
        return
    first = r.t[i]
    start, stop = first.start, r.t[end - 1].end
    if first.text == "return" and end > i + 1:
        value = r.span(i + 1, end - 1)
        yield Site("return", r.t[i + 1].start, stop, first.line,
                   ("1" if value in NOTHING else "0",))
        return
    if first.text in KEYWORDS or first.text in ("if", "while", "for", "switch"):
        return
    if first.kind != "name" and first.text not in ("*", "(", "++", "--") or r.is_declaration(i):
        return
    yield Site("delete", start, stop, first.line, ("",))


def functions(text):
    """(first line, last line) of each function that has a body."""
    r, out = Reader(text), []
    for opened in sorted(r.bodies):
        i = opened
        while i > 0 and (r.inside[i - 1] or r.t[i - 1].text not in (";", "}")):
            i -= 1
        out.append((r.t[i].line, r.t[r.match[opened]].line))
    return out


def sites(text, active):
    """The sites in the lines of the set `active`, in the order of the text."""
    r = Reader(text)
    sizes = array_sizes(r)
    out = []
    for i, token in enumerate(r.t):
        if i in r.alone:
            continue
        out += of_token(r, i, sizes)
        if token.text in ("if", "while", "for") and r.after(i) == "(" and r.body[i]:
            out += of_condition(r, i)
    for i in r.statement_starts():
        if i not in r.alone:
            out += of_statement(r, i)
    return sorted(s for s in out if s.line in active)
