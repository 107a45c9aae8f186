-- A count that is always there: a generated column, and an index over it.
--
-- bpe_count is deterministic: a name means one tokenizer for good. So SQLite may store what it says.
CREATE TABLE notes(id INTEGER PRIMARY KEY, body TEXT NOT NULL,
                   tokens INTEGER GENERATED ALWAYS AS (bpe_count(body)) STORED);
CREATE INDEX notes_tokens ON notes(tokens);
INSERT INTO notes(id, body) SELECT id, body FROM docs WHERE body <> '';

SELECT id, tokens FROM notes WHERE tokens > 100 ORDER BY tokens DESC, id LIMIT 3;
EXPLAIN QUERY PLAN SELECT id FROM notes WHERE tokens > 100;

UPDATE notes SET body = 'short' WHERE id = 1;
SELECT id, tokens FROM notes WHERE id = 1;

-- Without a column, an index on the expression; the query must say it the same way.
CREATE INDEX docs_gpt4 ON docs(bpe_count(body, 'gpt-4'));
EXPLAIN QUERY PLAN SELECT id FROM docs WHERE bpe_count(body, 'gpt-4') BETWEEN 40 AND 60;
SELECT id, bpe_count(body, 'gpt-4') AS tokens FROM docs WHERE bpe_count(body, 'gpt-4') BETWEEN 40 AND 60 ORDER BY 1;

-- A limit as a rule of the table.
CREATE TABLE prompts(id INTEGER PRIMARY KEY, body TEXT CHECK (bpe_fits(body, 50)));
INSERT OR IGNORE INTO prompts SELECT id, body FROM docs;
SELECT (SELECT count(*) FROM docs) AS documents, count(*) AS prompts, max(bpe_count(body)) AS most FROM prompts;

PRAGMA integrity_check;
