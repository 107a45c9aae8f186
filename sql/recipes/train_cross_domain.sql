-- A tokenizer on text it was not trained on: prose, source code, both.
CREATE TEMP VIEW prose AS SELECT body FROM docs WHERE lang <> 'code';
CREATE TEMP VIEW code AS SELECT body FROM docs WHERE lang = 'code';
INSERT INTO bpe_tokenizers(name, source) SELECT 'of_prose', bpe_train(body, 500) FROM prose;
INSERT INTO bpe_tokenizers(name, source) SELECT 'of_code', bpe_train(body, 500) FROM code;
INSERT INTO bpe_tokenizers(name, source) SELECT 'of_both', bpe_train(body, 500) FROM docs;

-- Bytes per token; more is better.
SELECT name,
       (SELECT printf('%.2f', 1.0 * sum(length(CAST(body AS BLOB))) / sum(bpe_count(body, name)))
        FROM prose) AS on_prose,
       (SELECT printf('%.2f', 1.0 * sum(length(CAST(body AS BLOB))) / sum(bpe_count(body, name)))
        FROM code) AS on_code
FROM bpe_tokenizers WHERE name LIKE 'of\_%' ESCAPE '\' ORDER BY name;
