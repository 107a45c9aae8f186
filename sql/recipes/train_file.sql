-- A corpus that is one text, its documents divided by <|endoftext|>: one row for each.
CREATE TEMP TABLE corpus AS
SELECT group_concat(body, '<|endoftext|>') AS text FROM (SELECT body FROM docs ORDER BY id);
-- (From a file: SELECT readfile('corpus.txt') AS text, in the shell of SQLite.)

CREATE TEMP TABLE documents AS
WITH RECURSIVE cut(body, rest) AS (
  SELECT NULL, text || '<|endoftext|>' FROM corpus
  UNION ALL
  SELECT substr(rest, 1, instr(rest, '<|endoftext|>') - 1),
         substr(rest, instr(rest, '<|endoftext|>') + length('<|endoftext|>'))
  FROM cut WHERE rest <> '')
SELECT body FROM cut WHERE body IS NOT NULL;

-- A row that spells the mark itself is cut there, too.
SELECT (SELECT count(*) FROM docs) AS rows, (SELECT count(*) FROM documents) AS documents,
       (SELECT count(*) FROM docs WHERE instr(body, '<|endoftext|>')) AS rows_with_the_mark;

-- Not needed for training: as a special token the mark divides documents by itself.
INSERT INTO bpe_tokenizers(name, source)
SELECT 'rows', bpe_train(body, 400, '{"special_tokens": ["<|endoftext|>"]}') FROM documents;
INSERT INTO bpe_tokenizers(name, source)
SELECT 'text', bpe_train(text, 400, '{"special_tokens": ["<|endoftext|>"]}') FROM corpus;

SELECT count(*) AS tokenizers, count(DISTINCT digest) AS different
FROM bpe_tokenizers WHERE name IN ('rows', 'text');
