-- What two tokenizers have in common, and what only one of them has.
--
-- Vocabularies are tables, so this is a join. It goes by the tokens' bytes: ids differ for the same
-- token, and BLOBs compare byte by byte. Special tokens are left out.
CREATE TEMP TABLE a AS SELECT id, token, text, length FROM bpe_vocab('cl100k_base') WHERE NOT special;
CREATE TEMP TABLE b AS SELECT id, token, text, length FROM bpe_vocab('o200k_base') WHERE NOT special;
CREATE INDEX a_token ON a(token);
CREATE INDEX b_token ON b(token);

SELECT (SELECT count(*) FROM a) AS cl100k, (SELECT count(*) FROM b) AS o200k, count(*) AS both,
  sum(a.id = b.id) AS same_id
FROM a JOIN b USING (token);

-- Words of cl100k_base that o200k_base gave up: the longest of those that are letters only.
SELECT a.id, a.text FROM a
WHERE a.token NOT IN (SELECT token FROM b) AND a.text NOT GLOB '*[^A-Za-z]*' ORDER BY a.length DESC, a.id LIMIT 8;

-- What it has instead, by the script of the first letter.
SELECT CASE WHEN c BETWEEN 0x41 AND 0x24f THEN 'Latin' WHEN c BETWEEN 0x370 AND 0x3ff THEN 'Greek'
    WHEN c BETWEEN 0x400 AND 0x52f THEN 'Cyrillic' WHEN c BETWEEN 0x530 AND 0x58f THEN 'Armenian'
    WHEN c BETWEEN 0x590 AND 0x5ff THEN 'Hebrew' WHEN c BETWEEN 0x600 AND 0x6ff THEN 'Arabic'
    WHEN c BETWEEN 0x900 AND 0xdff THEN 'Indic' WHEN c BETWEEN 0xe00 AND 0xe7f THEN 'Thai'
    WHEN c BETWEEN 0x3040 AND 0x30ff THEN 'Kana' WHEN c BETWEEN 0x3400 AND 0x9fff THEN 'Han'
    WHEN c BETWEEN 0xac00 AND 0xd7af THEN 'Hangul' ELSE 'other' END AS script,
  count(*) AS new_tokens
FROM (SELECT unicode(ltrim(text)) AS c FROM b WHERE token NOT IN (SELECT token FROM a))
GROUP BY script ORDER BY new_tokens DESC, script;

-- Merges work the same way: the rank of a pair, where both have it.
CREATE TEMP TABLE ma AS SELECT rank, token FROM bpe_merges('cl100k_base') LIMIT 1000;
CREATE TEMP TABLE mb AS SELECT rank, token FROM bpe_merges('o200k_base') LIMIT 1000;
SELECT quote(CAST(token AS TEXT)) AS token, ma.rank AS cl100k, mb.rank AS o200k FROM ma JOIN mb USING (token)
ORDER BY abs(ma.rank - mb.rank) DESC, ma.rank LIMIT 5;
