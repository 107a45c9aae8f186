-- What it cost: tokens per day and model, and a table of prices.
--
-- Prices change, so they are rows with a date, not code. The numbers here are made up.
CREATE TABLE calls(id INTEGER PRIMARY KEY, at TEXT, model TEXT, prompt TEXT, answer TEXT);
INSERT INTO calls(at, model, prompt, answer)
  SELECT date('2026-03-01', (id % 5) || ' days'), CASE id % 3 WHEN 0 THEN 'gpt-4' WHEN 1 THEN 'gpt-4o' ELSE 'gpt-5' END,
         title, body
    FROM docs WHERE body <> '' ORDER BY id;
CREATE TABLE prices(model TEXT, valid_from TEXT, input REAL, output REAL, PRIMARY KEY (model, valid_from)); -- per million tokens
INSERT INTO prices VALUES
  ('gpt-4', '2026-01-01', 30, 60), ('gpt-4o', '2026-01-01', 2.5, 10), ('gpt-4o', '2026-03-03', 2, 8),
  ('gpt-5', '2026-01-01', 1.25, 10);

-- The encoding of each model; a name that nobody knows is NULL here and an error in bpe_count.
SELECT model, bpe_resolve(model) AS encoding, count(*) AS calls FROM calls GROUP BY model;

-- A dashboard: tokens per day and model.
SELECT at, model, count(*) AS calls, sum(bpe_count(prompt, model)) AS input, sum(bpe_count(answer, model)) AS output
  FROM calls GROUP BY at, model ORDER BY at, model;

-- And money: the price that was valid on the day.
WITH used AS (
  SELECT at, model, bpe_count(prompt, model) AS input, bpe_count(answer, model) AS output FROM calls
)
SELECT u.model, count(*) AS calls, sum(u.input) AS input, sum(u.output) AS output,
       printf('%.6f', sum(u.input * p.input + u.output * p.output) / 1e6) AS cost
  FROM used u JOIN prices p ON p.model = u.model
   AND p.valid_from = (SELECT max(valid_from) FROM prices WHERE model = u.model AND valid_from <= u.at)
 GROUP BY u.model ORDER BY u.model;

-- What the same texts would be under each model.
SELECT p.model, sum(bpe_count(answer, p.model)) AS output,
       printf('%.6f', sum(bpe_count(answer, p.model) * p.output) / 1e6) AS cost
  FROM calls, (SELECT model, output, max(valid_from) FROM prices GROUP BY model) p GROUP BY p.model ORDER BY p.model;
