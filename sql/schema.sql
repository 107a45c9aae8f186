-- schema.sql - stored tokenizers as ordinary tables: readable, joinable and copied with the file,
-- with or without the extension. It makes them in a schema when the first tokenizer is stored
-- there; they are part of the interface, and the text below is compared with what a database has.
--
-- bpe_model          one row a tokenizer. digest is the SHA-256 of all that decides its ids, and
--                    NULL as soon as any of that, or a count, changes: it is then refused until
--                    UPDATE bpe_tokenizers SET sealed = 1 WHERE name = ... has checked it.
--                    options is a JSON object; its key "format" is the version of all this.
-- bpe_model_vocab    its tokens; kind is token, special or added
-- bpe_model_merges   its merges, by rank; count is how often training saw the pair
--
-- The triggers use no function of the extension, so they work where it is not loaded.

CREATE TABLE IF NOT EXISTS bpe_model(
  id INTEGER PRIMARY KEY,
  name TEXT UNIQUE NOT NULL,
  pattern TEXT,
  options TEXT,
  stats TEXT,
  digest BLOB
);

CREATE TABLE IF NOT EXISTS bpe_model_vocab(
  model_id INTEGER NOT NULL,
  id INTEGER NOT NULL,
  token BLOB NOT NULL,
  kind TEXT NOT NULL,
  PRIMARY KEY(model_id, id, token)
) WITHOUT ROWID;

CREATE TABLE IF NOT EXISTS bpe_model_merges(
  model_id INTEGER NOT NULL,
  rank INTEGER NOT NULL,
  "left" INTEGER NOT NULL,
  "right" INTEGER NOT NULL,
  id INTEGER NOT NULL,
  count INTEGER,
  PRIMARY KEY(model_id, rank, "left", "right")
) WITHOUT ROWID;

CREATE TRIGGER IF NOT EXISTS bpe_model_changed
AFTER UPDATE OF id, pattern, options ON bpe_model
BEGIN
  UPDATE bpe_model SET digest = NULL WHERE id = NEW.id;
END;

CREATE TRIGGER IF NOT EXISTS bpe_model_deleted
AFTER DELETE ON bpe_model
BEGIN
  DELETE FROM bpe_model_vocab WHERE model_id = OLD.id;
  DELETE FROM bpe_model_merges WHERE model_id = OLD.id;
END;

CREATE TRIGGER IF NOT EXISTS bpe_model_vocab_inserted
AFTER INSERT ON bpe_model_vocab
BEGIN
  UPDATE bpe_model SET digest = NULL WHERE id = NEW.model_id AND digest IS NOT NULL;
END;

CREATE TRIGGER IF NOT EXISTS bpe_model_vocab_updated
AFTER UPDATE ON bpe_model_vocab
BEGIN
  UPDATE bpe_model SET digest = NULL WHERE id IN (OLD.model_id, NEW.model_id) AND digest IS NOT NULL;
END;

CREATE TRIGGER IF NOT EXISTS bpe_model_vocab_deleted
AFTER DELETE ON bpe_model_vocab
BEGIN
  UPDATE bpe_model SET digest = NULL WHERE id = OLD.model_id AND digest IS NOT NULL;
END;

CREATE TRIGGER IF NOT EXISTS bpe_model_merges_inserted
AFTER INSERT ON bpe_model_merges
BEGIN
  UPDATE bpe_model SET digest = NULL WHERE id = NEW.model_id AND digest IS NOT NULL;
END;

CREATE TRIGGER IF NOT EXISTS bpe_model_merges_updated
AFTER UPDATE ON bpe_model_merges
BEGIN
  UPDATE bpe_model SET digest = NULL WHERE id IN (OLD.model_id, NEW.model_id) AND digest IS NOT NULL;
END;

CREATE TRIGGER IF NOT EXISTS bpe_model_merges_deleted
AFTER DELETE ON bpe_model_merges
BEGIN
  UPDATE bpe_model SET digest = NULL WHERE id = OLD.model_id AND digest IS NOT NULL;
END;
