-- How a tokenizer treats a collection of texts.
--
-- bpe_token_stats counts in one pass; its JSON becomes rows with json_each.
CREATE TEMP TABLE stats AS SELECT bpe_token_stats(body, 'cl100k_base') AS s FROM docs;
SELECT json_extract(s, '$.texts') AS texts, json_extract(s, '$.bytes') AS bytes, json_extract(s, '$.tokens') AS tokens, json_extract(s, '$.distinct') AS "distinct",
       json_extract(s, '$.unused') AS unused FROM stats;

-- The most frequent tokens of at least four bytes, and in how many documents they are.
SELECT v.id, v.text, json_extract(c.value, '$[1]') AS occurrences, json_extract(c.value, '$[2]') AS documents
  FROM stats, json_each(s, '$.counts') c JOIN bpe_vocab('cl100k_base') v ON v.id = json_extract(c.value, '$[0]')
 WHERE v.length >= 4 ORDER BY occurrences DESC, v.id LIMIT 6;

-- Bytes per token by language: what is dear under this tokenizer.
SELECT lang, sum(length(CAST(body AS BLOB))) AS bytes, sum(bpe_count(body, 'cl100k_base')) AS tokens,
       round(1.0 * sum(length(CAST(body AS BLOB))) / sum(bpe_count(body, 'cl100k_base')), 2) AS bytes_per_token
  FROM docs WHERE body <> '' GROUP BY lang ORDER BY bytes_per_token DESC, lang LIMIT 6;

-- Tokens of the vocabulary that never occurred, by length.
WITH used(id) AS (SELECT json_extract(value, '$[0]') FROM stats, json_each(s, '$.counts'))
SELECT min(length, 8) AS up_to_8_bytes, count(*) AS unused
  FROM bpe_vocab('cl100k_base') WHERE special = 0 AND id NOT IN (SELECT id FROM used) GROUP BY 1 ORDER BY 1;

-- Words that come apart into the most tokens.
SELECT p.text, count(*) AS tokens FROM docs, bpe_pieces(body, 'cl100k_base') p, bpe_tokens(p.piece, 'cl100k_base') t
 WHERE lang = 'en' GROUP BY docs.id, p.seq ORDER BY tokens DESC, p.text LIMIT 5;

-- Why a word has so many: its merges.
SELECT step, left, right, id, after FROM bpe_trace('zyzzyva', 'cl100k_base');
