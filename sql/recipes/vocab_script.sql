-- How much of a vocabulary goes to which script.
--
-- The script of a token is that of its first letter. SQLite has no Unicode properties, so a table
-- of ranges says which letters are which; it is data like any other, and yours to extend.
CREATE TEMP TABLE script(first INTEGER PRIMARY KEY, last INTEGER, name TEXT);
INSERT INTO script VALUES (0x41, 0x5a, 'Latin'), (0x61, 0x7a, 'Latin'), (0xc0, 0x24f, 'Latin'), (0x1e00, 0x1eff, 'Latin'),
  (0x370, 0x3ff, 'Greek'), (0x400, 0x52f, 'Cyrillic'), (0x530, 0x58f, 'Armenian'), (0x590, 0x5ff, 'Hebrew'),
  (0x600, 0x6ff, 'Arabic'), (0x900, 0x97f, 'Devanagari'), (0x980, 0x9ff, 'Bengali'), (0xb80, 0xbff, 'Tamil'),
  (0xe00, 0xe7f, 'Thai'), (0x10a0, 0x10ff, 'Georgian'), (0x3040, 0x309f, 'Hiragana'), (0x30a0, 0x30ff, 'Katakana'),
  (0x3400, 0x9fff, 'Han'), (0xac00, 0xd7af, 'Hangul');

CREATE TEMP TABLE letter AS
SELECT t.name, unicode(ltrim(v.text)) AS c FROM bpe_tokenizers t, bpe_vocab(t.name) v
WHERE t.name IN ('gpt2', 'cl100k_base', 'o200k_base') AND NOT v.special;

SELECT coalesce(s.name, 'none of these') AS script, sum(l.name = 'gpt2') AS gpt2, sum(l.name = 'cl100k_base') AS cl100k,
  sum(l.name = 'o200k_base') AS o200k
FROM letter l LEFT JOIN script s ON s.first = (SELECT max(first) FROM script WHERE first <= l.c) AND l.c <= s.last
GROUP BY s.name ORDER BY o200k DESC, script;
