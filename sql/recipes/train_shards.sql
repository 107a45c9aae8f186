-- Counting here, training there: pieces and their counts are all that has to travel.
CREATE TABLE counts(piece BLOB, n INTEGER);

-- On each shard: its own rows, cut into pieces and counted.
INSERT INTO counts SELECT piece, count(*) FROM docs, bpe_pieces(docs.body, 'o200k_base')
WHERE docs.id % 2 = 0 GROUP BY piece;
INSERT INTO counts SELECT piece, count(*) FROM docs, bpe_pieces(docs.body, 'o200k_base')
WHERE docs.id % 2 = 1 GROUP BY piece;

-- In one place: the counts of all shards.
INSERT INTO bpe_tokenizers(name, source)
SELECT 'from_counts', bpe_train(piece, 600, '{"pretokenized": true}', n) FROM counts;

-- Exactly what training on all rows gives.
INSERT INTO bpe_tokenizers(name, source) SELECT 'from_rows', bpe_train(body, 600) FROM docs;

SELECT count(*) AS tokenizers, count(DISTINCT digest) AS different
FROM bpe_tokenizers WHERE name IN ('from_counts', 'from_rows');
