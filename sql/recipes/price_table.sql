-- What a column costs under several tokenizers: a join with a table of prices.
--
-- The prices are invented; yours go here. A model's name is enough, bpe_resolve says what it uses.
-- A tokenizer of your own stands in the same table, once it is stored.
INSERT INTO bpe_tokenizers(name, source)
SELECT 'house', bpe_train(body, 2000, '{"pattern":"o200k"}') FROM docs;

CREATE TEMP TABLE price(model TEXT PRIMARY KEY, per_million REAL);
INSERT INTO price VALUES ('gpt-4', 30.00), ('gpt-4o', 2.50), ('gpt-4o-mini', 0.15), ('gpt-5', 1.25), ('house', 0.02);

SELECT model, bpe_resolve(model) AS tokenizer, sum(bpe_count(body, model)) AS tokens,
  printf('%.6f', sum(bpe_count(body, model)) * per_million / 1e6) AS cost
FROM price, docs GROUP BY model ORDER BY sum(bpe_count(body, model)) * per_million DESC;

-- By language, the dearest and the cheapest of them side by side.
SELECT lang, sum(bpe_count(body, 'gpt-4')) AS gpt4, sum(bpe_count(body, 'gpt-4o')) AS gpt4o,
  printf('%.2f', 1.0 * sum(bpe_count(body, 'gpt-4')) / sum(bpe_count(body, 'gpt-4o'))) AS ratio
FROM docs WHERE body <> '' GROUP BY lang HAVING sum(bpe_count(body, 'gpt-4o')) > 0 ORDER BY ratio DESC, lang;
