-- One statement per library and per table of calls that another extension could capture:
-- PCRE2 (compile, match, its error texts), jansson (options, ids, their errors), the core, SQLite.
SELECT bpe_count('hello world'), bpe_encode('hello world', 'cl100k_base');
SELECT hex(bpe_encode_blob('naïve 東京 🙂', 'o200k_base'));
SELECT bpe_decode('[15339, 1917]', 'cl100k_base'), bpe_decode(x'EB3B0000', 'cl100k_base');
SELECT bpe_encode('a<|endoftext|>b', 'gpt2', '{"special":["<|endoftext|>"]}');
SELECT seq, text, start, stop FROM bpe_pieces('Tokyo 2020, two words', 'gpt2', '{"regex":"\\p{L}+|\\d"}');
SELECT seq, id, text FROM bpe_tokens('It''s 12 o''clock', 'o200k_base');
SELECT count(*), sum(length) FROM bpe_vocab('gpt2');
SELECT rank, "left", "right", id FROM bpe_merges('gpt2') LIMIT 3;
SELECT name, vocab_size FROM bpe_tokenizers ORDER BY name;
SELECT bpe_token_id('hello', 'cl100k_base'), bpe_resolve('gpt-4o'), bpe_version();
SELECT json_valid(bpe_debug());
SELECT * FROM bpe_pieces('x', 'gpt2', '{"regex":"("}');
SELECT bpe_decode('[1, 2', 'gpt2');
SELECT bpe_encode('x', 'gpt2', '{"no such key":1}');
SELECT bpe_count('x', 'nope');
