-- The same questions to the documents of this machine: licence texts and documentation under
-- /usr/share, and the sources of this project. What it prints differs from machine to machine.
CREATE TEMP TABLE files(path TEXT, body BLOB);
INSERT INTO files SELECT name, readfile(name) FROM fsdir('/usr/share/common-licenses') WHERE (mode & 61440) = 32768;
INSERT INTO files SELECT name, readfile(name) FROM fsdir('/usr/share/doc') WHERE name LIKE '%/copyright' AND (mode & 61440) = 32768 LIMIT 300;
INSERT INTO files SELECT name, readfile(name) FROM fsdir('.') WHERE (name GLOB './src/*.[ch]' OR name GLOB './ext/*.[ch]' OR name GLOB './*.md') AND (mode & 61440) = 32768;
SELECT count(*) AS files, sum(length(body)) AS bytes, sum(bpe_count(body)) AS tokens,
       sum(bpe_decode_blob(bpe_encode_blob(body)) = body) AS decoded_back FROM files WHERE length(body) > 0;
SELECT path, bpe_count(body) AS tokens, round(1.0 * length(body) / bpe_count(body), 2) AS bytes_per_token
  FROM files WHERE length(body) > 0 ORDER BY tokens DESC LIMIT 5;
