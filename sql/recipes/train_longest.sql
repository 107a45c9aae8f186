-- The longest tokens that were learned, and how often they were seen when they were.
INSERT INTO bpe_tokenizers(name, source)
SELECT 'mine', bpe_train(body, 900, '{"min_frequency": 2}') FROM docs;

SELECT v.id, v.length, v.text, m.count
FROM bpe_vocab('mine') v JOIN bpe_merges('mine') m ON m.id = v.id
ORDER BY v.length DESC, v.id LIMIT 8;

-- No token longer than six bytes.
INSERT INTO bpe_tokenizers(name, source)
SELECT 'short', bpe_train(body, 900, '{"min_frequency": 2, "max_token_length": 6}') FROM docs;

SELECT name, vocab_size, (SELECT max(length) FROM bpe_vocab(name)) AS longest,
       (SELECT sum(bpe_count(body, name)) FROM docs) AS tokens
FROM bpe_tokenizers WHERE name IN ('mine', 'short') ORDER BY name;
