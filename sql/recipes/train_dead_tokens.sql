-- Tokens that a corpus hardly uses: steps on the way to longer ones, or left over from other text.
INSERT INTO bpe_tokenizers(name, source) SELECT 'mine', bpe_train(body, 700) FROM docs;

-- Each use of a token, counted once.
CREATE TEMP TABLE uses AS
SELECT t.id, count(*) AS n FROM docs, bpe_tokens(docs.body, 'mine') t GROUP BY t.id;

-- How many of the learned tokens are used never, once, seldom.
SELECT sum(n = 0) AS never, sum(n = 1) AS once, sum(n BETWEEN 2 AND 4) AS seldom,
       count(*) AS learned
FROM (SELECT v.id, coalesce(u.n, 0) AS n FROM bpe_vocab('mine') v LEFT JOIN uses u ON u.id = v.id
      WHERE v.length > 1);

-- Tokens without any use, and what has swallowed them.
SELECT v.text AS token, m.text AS became, m.count AS times
FROM bpe_vocab('mine') v JOIN bpe_merges('mine') m ON m.left = v.id OR m.right = v.id
WHERE v.length > 1 AND v.id NOT IN (SELECT id FROM uses)
ORDER BY m.count DESC, m.rank LIMIT 5;
