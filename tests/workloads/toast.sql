-- Wide rows: stored apart, compressed, updated with and without their wide parts, deleted.
CREATE FUNCTION noise(seed int, pieces int) RETURNS text LANGUAGE sql
  AS $$ SELECT string_agg(md5((seed * 1000 + g)::text), '') FROM generate_series(1, pieces) g $$;
CREATE TABLE wide (id int PRIMARY KEY, plain text, apart text, other text);
ALTER TABLE wide ALTER apart SET STORAGE EXTERNAL;
CHECKPOINT;
INSERT INTO wide SELECT g, repeat('compressible ', 900), noise(g, 400), noise(-g, 90)
  FROM generate_series(1, 150) g;
UPDATE wide SET plain = plain || 'tail' WHERE id % 3 = 0;
UPDATE wide SET apart = noise(id + 1000, 500) WHERE id % 4 = 0;
UPDATE wide SET id = id + 10000 WHERE id % 5 = 0;
DELETE FROM wide WHERE id % 6 = 0;
VACUUM wide;
INSERT INTO wide SELECT g, NULL, noise(g, 300), repeat('y', 3000) FROM generate_series(200, 260) g;
BEGIN;
UPDATE wide SET apart = noise(7, 800);
ROLLBACK;
CREATE TABLE lined (id int, line text) WITH (toast_tuple_target = 256);
INSERT INTO lined SELECT g, noise(g, 30) FROM generate_series(1, 400) g;
COPY (SELECT id + 5000, line FROM lined) TO '/dev/null';
INSERT INTO lined SELECT id + 5000, line FROM lined;
SELECT lo_from_bytea(0, convert_to(noise(3, 1000), 'UTF8')) AS object \gset
SELECT lo_put(:object, 5000, 'overwritten');
SELECT lo_from_bytea(0, 'second');
SELECT lo_unlink(:object);
