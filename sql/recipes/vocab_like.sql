-- Looking for tokens: LIKE, GLOB, by length, by what they begin with.
--
-- `text` is the token as TEXT, U+FFFD where it is not whole UTF-8. A token's leading space is part
-- of it, which is why so many come twice.
SELECT id, quote(text) AS token FROM bpe_vocab('o200k_base') WHERE text LIKE '%berry' ORDER BY id;

SELECT id, quote(text) AS token FROM bpe_vocab('o200k_base') WHERE text GLOB ' [Tt]oken*' ORDER BY id LIMIT 8;

-- Tokens that are white space only, and the longest run of each kind.
SELECT max(length) AS spaces FROM bpe_vocab('o200k_base') WHERE text NOT GLOB '*[^ ]*';
SELECT max(length) AS dashes FROM bpe_vocab('o200k_base') WHERE text NOT GLOB '*[^-]*';

-- One token is a lookup, and needs no search.
SELECT id, quote(text) AS token FROM bpe_vocab('o200k_base') WHERE text IN ('strawberry', ' strawberry', ' straw');

-- Tokens that hold part of a character: half a Han character, say.
SELECT count(*) AS broken, max(length) AS longest FROM bpe_vocab('o200k_base') WHERE text LIKE '%' || char(0xfffd) || '%';

-- How one of them came to be: its merge, and the two tokens it joins.
SELECT m.rank, quote(l.text) AS left_part, quote(r.text) AS right_part, quote(m.text) AS token
FROM bpe_merges('o200k_base') m JOIN bpe_vocab('o200k_base') l ON l.id = m."left" JOIN bpe_vocab('o200k_base') r ON r.id = m."right"
WHERE m.id = bpe_token_id(' strawberry', 'o200k_base');
