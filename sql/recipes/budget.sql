-- Filling a budget: the best rows, in order, as long as they fit together.
--
-- Counts do not add up when texts are put together, so the limit is checked on what is sent: the
-- rows joined as they will be. A running sum finds the candidates, bpe_fits has the last word.
CREATE TEMP TABLE hits(rank INTEGER PRIMARY KEY, id INTEGER, body TEXT);
INSERT INTO hits(id, body) SELECT id, body FROM docs WHERE lang IN ('en', 'de') AND body <> '' ORDER BY length(body) DESC, id;

-- How many tokens each has, and how many there are up to it.
SELECT rank, id, bpe_count(body) AS tokens, sum(bpe_count(body)) OVER (ORDER BY rank) AS so_far FROM hits;

-- The rows of a budget of 250 tokens, with blank lines between.
WITH running AS (
  SELECT rank, id, body, group_concat(body, char(10, 10)) OVER (ORDER BY rank) AS context FROM hits
)
SELECT rank, id, bpe_count(context) AS tokens_with_it FROM running WHERE bpe_fits(context, 250) ORDER BY rank;

-- The same as one text, and the rest of the budget filled with the start of the next row.
WITH running AS (
  SELECT rank, body, group_concat(body, char(10, 10)) OVER (ORDER BY rank) AS context FROM hits
), kept AS (
  SELECT max(rank) AS rank, context FROM running WHERE bpe_fits(context, 250)
)
SELECT bpe_count(prompt) AS tokens, length(prompt) AS characters
  FROM (SELECT bpe_truncate(k.context || char(10, 10) || h.body, 250) AS prompt
          FROM kept k JOIN hits h ON h.rank = k.rank + 1);

-- A conversation: the newest messages that fit, oldest first.
CREATE TEMP TABLE messages(n INTEGER PRIMARY KEY, role TEXT, content TEXT);
INSERT INTO messages VALUES
  (1, 'user', 'When does the ferry leave?'),
  (2, 'assistant', 'At seven, and again at nine.'),
  (3, 'user', 'Is there a later boat?'),
  (4, 'assistant', 'There is not; there never was.'),
  (5, 'user', 'Then I shall stay the night.');
WITH history AS (
  SELECT n, group_concat(role || ': ' || content, char(10)) OVER (ORDER BY n ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING) AS rest
    FROM messages
)
SELECT replace(rest, char(10), ' / ') AS history, bpe_count(rest) AS tokens FROM history WHERE bpe_fits(rest, 30) ORDER BY n LIMIT 1;
