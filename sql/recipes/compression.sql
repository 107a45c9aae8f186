-- Compression: bytes per token, per tokenizer and language. More is better; it is what a context
-- window holds.
--
-- One that was trained on these few texts stands beside the public ones. Where a language has but
-- one short text it learned whole lines by heart: a ratio like that says nothing about other text.
INSERT INTO bpe_tokenizers(name, source) SELECT 'house', bpe_train(body, 2000, '{"pattern":"o200k"}') FROM docs;

WITH t(name) AS (VALUES ('gpt2'), ('cl100k_base'), ('o200k_base'), ('house')),
  per AS (SELECT t.name, lang, 1.0 * sum(length(CAST(body AS BLOB))) / sum(bpe_count(body, t.name)) AS ratio
          FROM t, docs WHERE body <> '' GROUP BY t.name, lang)
SELECT lang, printf('%.2f', max(ratio) FILTER (WHERE name = 'gpt2')) AS gpt2,
  printf('%.2f', max(ratio) FILTER (WHERE name = 'cl100k_base')) AS cl100k,
  printf('%.2f', max(ratio) FILTER (WHERE name = 'o200k_base')) AS o200k,
  printf('%.2f', max(ratio) FILTER (WHERE name = 'house')) AS house
FROM per GROUP BY lang ORDER BY lang;

-- The same per document: the extremes.
SELECT id, lang, title, printf('%.2f', 1.0 * length(CAST(body AS BLOB)) / bpe_count(body)) AS bytes_per_token
FROM docs WHERE bpe_count(body) >= 20
ORDER BY 1.0 * length(CAST(body AS BLOB)) / bpe_count(body) DESC LIMIT 4;
