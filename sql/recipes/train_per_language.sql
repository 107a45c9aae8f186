-- One tokenizer for each language, and what each makes of the others' texts.
INSERT INTO bpe_tokenizers(name, source)
SELECT 'only ' || lang, bpe_train(body, 500, '{"special_tokens": ["<|endoftext|>"]}')
FROM docs GROUP BY lang HAVING count(*) > 1;

-- Bytes per token: a row for each tokenizer, a column for each language of text.
SELECT name,
       printf('%.2f', sum(CASE lang WHEN 'en' THEN bytes END)
                      / sum(CASE lang WHEN 'en' THEN tokens END)) AS en,
       printf('%.2f', sum(CASE lang WHEN 'code' THEN bytes END)
                      / sum(CASE lang WHEN 'code' THEN tokens END)) AS code
FROM (SELECT t.name, d.lang, 1.0 * length(CAST(d.body AS BLOB)) AS bytes,
             bpe_count(d.body, t.name) AS tokens
      FROM bpe_tokenizers t, docs d WHERE t.name LIKE 'only %')
GROUP BY name ORDER BY name;
