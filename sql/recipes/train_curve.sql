-- How many bytes a token holds, by size of the vocabulary: one training, many cuts.
INSERT INTO bpe_tokenizers(name, source) SELECT 'large', bpe_train(body, 1200) FROM docs;

-- The first merges of a training are a training of their own.
CREATE TEMP TABLE sizes AS SELECT value AS k FROM json_each('[256, 300, 400, 600, 800, 1200]');
INSERT INTO bpe_tokenizers(name, source, options)
SELECT 'first_' || k, bpe_export('large', 'model'), json_object('vocab_size', k)
FROM sizes WHERE k <= (SELECT vocab_size FROM bpe_tokenizers WHERE name = 'large');

SELECT t.vocab_size, sum(bpe_count(d.body, t.name)) AS tokens,
       printf('%.3f', 1.0 * sum(length(CAST(d.body AS BLOB))) / sum(bpe_count(d.body, t.name)))
         AS bytes_per_token
FROM bpe_tokenizers t, docs d
WHERE t.name LIKE 'first_%'
GROUP BY t.name ORDER BY t.vocab_size;
