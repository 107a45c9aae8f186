-- Texts as training data: rows of 16-bit ids that NumPy reads without a copy.
--
--   import sqlite3, numpy
--   ids, = sqlite3.connect('docs.db').execute("SELECT ids FROM shards WHERE name = 'train'").fetchone()
--   ids = numpy.frombuffer(ids, dtype='<u2')
--
-- Every document is followed by an end token. Ids of GPT-2 fit 16 bits.
CREATE TABLE shards(name TEXT PRIMARY KEY, ids BLOB);
INSERT INTO shards
  SELECT 'train', bpe_encode_blob(group_concat(body || '<|endoftext|>', ''), 'gpt2', '{"width": 16, "special": ["<|endoftext|>"]}')
    FROM (SELECT body FROM docs WHERE body <> '' AND instr(body, '<|endoftext|>') = 0 ORDER BY id);
SELECT name, length(ids) AS bytes, bpe_ids_length(ids, 16) AS ids, hex(bpe_ids_slice(ids, 0, 4, 16)) AS first_four FROM shards;

-- Training windows of 64 ids, each beginning where the one before ended.
WITH RECURSIVE w(at) AS (
  SELECT 0 UNION ALL SELECT at + 64 FROM w, shards WHERE at + 64 < bpe_ids_length(ids, 16)
)
SELECT at, bpe_ids_length(bpe_ids_slice(ids, at, 64, 16), 16) AS n,
       bpe_decode(bpe_ids_slice(ids, at, 6, 16), 'gpt2', '{"width": 16}') AS begins
  FROM w, shards ORDER BY at LIMIT 4;

-- Ids as rows, to be counted or joined.
SELECT count(*) AS ids, count(DISTINCT i.id) AS distinct_ids, sum(i.id = bpe_token_id('<|endoftext|>', 'gpt2')) AS ends
  FROM shards, bpe_ids(ids, 16) i;

-- One row for each document, where they are to be mixed later; BOS and EOS come with {"document": true}
-- from a tokenizer that has them.
CREATE TABLE packed(id INTEGER PRIMARY KEY, ids BLOB);
INSERT INTO packed SELECT id, bpe_encode_blob(body, 'gpt2', '{"width": 16}') FROM docs WHERE body <> '';
SELECT count(*) AS documents, sum(bpe_ids_length(ids, 16)) AS ids FROM packed;

-- A collection larger than memory: the same ids as the shard, row by row, from a statement.
SELECT count(*) AS ids FROM bpe_stream('SELECT body || ''<|endoftext|>'' FROM docs
  WHERE body <> '''' AND instr(body, ''<|endoftext|>'') = 0 ORDER BY id', 'gpt2', '{"special": ["<|endoftext|>"]}');
