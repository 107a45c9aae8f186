-- A table of chunks for retrieval, kept in step with its documents.
--
-- Each chunk counts to at most `most` tokens, ends with a sentence where one ends in reach, and knows
-- the bytes of the document that it is.
PRAGMA foreign_keys = ON;
CREATE TABLE chunks(
  doc_id INTEGER NOT NULL REFERENCES docs(id) ON DELETE CASCADE,
  seq INTEGER NOT NULL,
  text TEXT NOT NULL,
  tokens INTEGER NOT NULL,
  start INTEGER NOT NULL,
  stop INTEGER NOT NULL,
  PRIMARY KEY (doc_id, seq)
) WITHOUT ROWID;

INSERT INTO chunks
  SELECT d.id, c.seq, c.text, c.tokens, c.start, c.stop
    FROM docs d, bpe_chunks(d.body, 40, 'o200k_base', '{"at": "sentence"}') c;

CREATE TRIGGER docs_insert AFTER INSERT ON docs BEGIN
  INSERT INTO chunks SELECT new.id, c.seq, c.text, c.tokens, c.start, c.stop
    FROM bpe_chunks(new.body, 40, 'o200k_base', '{"at": "sentence"}') c;
END;
CREATE TRIGGER docs_update AFTER UPDATE OF body ON docs WHEN old.body IS NOT new.body BEGIN
  DELETE FROM chunks WHERE doc_id = new.id;
  INSERT INTO chunks SELECT new.id, c.seq, c.text, c.tokens, c.start, c.stop
    FROM bpe_chunks(new.body, 40, 'o200k_base', '{"at": "sentence"}') c;
END;

SELECT seq, tokens, start, stop, substr(replace(text, char(10), ' '), 1, 30) AS begins FROM chunks WHERE doc_id = 1;

-- They are the documents: nothing is lost, nothing is over the limit.
SELECT count(*) AS documents, sum(whole = body) AS whole, max(most) AS most_tokens
  FROM (SELECT d.body, group_concat(c.text, '') AS whole, max(c.tokens) AS most
          FROM docs d JOIN chunks c ON c.doc_id = d.id GROUP BY d.id);

-- New, changed and deleted documents.
INSERT INTO docs(id, lang, title, body) VALUES (1001, 'en', 'A note', 'First thing. Second thing.');
UPDATE docs SET body = body || ' Third thing.' WHERE id = 1001;
SELECT seq, tokens, text FROM chunks WHERE doc_id = 1001;
DELETE FROM docs WHERE id = 1001;
SELECT count(*) AS left_over FROM chunks WHERE doc_id = 1001;

-- Chunks that share ten tokens with the one before, for questions whose answer lies across a cut.
SELECT seq, tokens, start, stop FROM docs, bpe_chunks(body, 40, 'o200k_base', '{"overlap": 10}') c WHERE docs.id = 1;
