-- The README session. Run by `make demo` on data/docs.sql, and compared with demo.out.
SELECT sum(bpe_count(body)) AS tokens FROM docs;
SELECT bpe_encode('hello world', 'cl100k_base') AS ids;
SELECT t.seq, t.id, t.text, t.start, t.stop FROM docs, bpe_tokens(docs.body, 'gpt-4') t WHERE docs.id = 1 LIMIT 5;
SELECT id, title FROM docs WHERE bpe_decode(bpe_encode(body)) IS NOT body;
SELECT lang, count(*) AS texts, sum(bpe_count(body, 'cl100k_base')) AS gpt4, sum(bpe_count(body, 'o200k_base')) AS gpt5,
       round(1.0 * sum(length(CAST(body AS BLOB))) / sum(bpe_count(body)), 2) AS bytes_per_token
  FROM docs WHERE length(body) > 0 GROUP BY lang ORDER BY bytes_per_token DESC, lang;
SELECT t.text, count(*) AS n FROM docs, bpe_tokens(docs.body) t GROUP BY t.id HAVING length(t.text) > 5 ORDER BY n DESC, t.text LIMIT 5;
SELECT count(*) AS merges, max(length(token)) AS longest FROM bpe_merges('gpt2');
SELECT name, vocab_size, pattern FROM bpe_tokenizers;
