-- The longest tokens of several tokenizers.
--
-- In characters, for bytes favour scripts with long encodings; and of letters only, after one space
-- or none, for the longest of all are rules, tables and white space.
WITH word AS (
  SELECT t.name, v.id, v.text, length(v.text) AS characters,
    row_number() OVER (PARTITION BY t.name ORDER BY length(v.text) DESC, v.id) AS place
  FROM (SELECT 'gpt2' AS name UNION ALL SELECT 'cl100k_base' UNION ALL SELECT 'o200k_base') t, bpe_vocab(t.name) v
  WHERE NOT v.special AND ltrim(v.text) GLOB '[A-Za-z]*' AND ltrim(v.text) NOT GLOB '*[^A-Za-z]*'
)
SELECT name, id, characters, quote(text) AS token FROM word WHERE place <= 5 ORDER BY name, place;

-- How long tokens are, in bytes.
SELECT t.name, count(*) AS tokens, round(avg(v.length), 2) AS mean, max(v.length) AS longest
FROM bpe_tokenizers t, bpe_vocab(t.name) v WHERE NOT v.special GROUP BY t.name ORDER BY tokens, t.name;
