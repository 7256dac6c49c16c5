-- GiST and SP-GiST: splits at every level, dead items, deleted and reused pages, redirects.
SET client_min_messages = warning;
SELECT setseed(0.5);
CREATE TABLE shape (id int, p point, b box, r int4range, t tsvector);
CREATE TABLE word (id int, w text, p point, q point, a inet, r int4range);
CREATE TABLE churn (id int, p point);
CREATE TABLE nullish (id int, w text, p point);
CREATE TABLE tiny (id int, w text, p point);
CREATE UNLOGGED TABLE forgotten (id int, p point, w text);
CREATE INDEX shape_p ON shape USING gist (p);
CREATE INDEX shape_b ON shape USING gist (b);
CREATE INDEX shape_r ON shape USING gist (r);
CREATE INDEX shape_t ON shape USING gist (t);
CREATE INDEX shape_two ON shape USING gist (b, r) INCLUDE (id);
CREATE INDEX word_w ON word USING spgist (w);
CREATE INDEX word_p ON word USING spgist (p);
CREATE INDEX word_q ON word USING spgist (q kd_point_ops);
CREATE INDEX word_a ON word USING spgist (a) INCLUDE (id);
CREATE INDEX word_r ON word USING spgist (r);
CREATE INDEX churn_p ON churn USING gist (p);
CREATE INDEX nullish_w ON nullish USING spgist (w);
CREATE INDEX nullish_p ON nullish USING gist (p);
CREATE INDEX tiny_w ON tiny USING spgist (w);
CREATE INDEX tiny_p ON tiny USING spgist (p);
CREATE INDEX forgotten_p ON forgotten USING gist (p);
CREATE INDEX forgotten_w ON forgotten USING spgist (w);
CREATE FUNCTION scatter(n int) RETURNS double precision LANGUAGE sql IMMUTABLE
    AS 'SELECT (n * 7919::bigint % 100003)::double precision / 13';
CREATE PROCEDURE fill_shape(low int, high int) LANGUAGE sql AS $$
    INSERT INTO shape
    SELECT g, point(scatter(g), scatter(g * 3)),
           box(point(scatter(g), scatter(g * 5)), point(scatter(g) + g % 9, scatter(g * 5) + 2)),
           int4range((g * 7919::bigint % 100003)::int, (g * 7919::bigint % 100003)::int + g % 50 + 1),
           to_tsvector('simple', 'w' || g % 977 || ' x' || g % 89 || ' ' || md5(g::text))
    FROM generate_series(low, high) g
$$;
CREATE PROCEDURE fill_word(low int, high int) LANGUAGE sql AS $$
    INSERT INTO word
    SELECT g, CASE g % 4 WHEN 0 THEN md5(g::text)
                         WHEN 1 THEN 'https://example.org/' || g % 37 || '/' || md5(g::text)
                         WHEN 2 THEN repeat(chr(97 + g % 26), g % 40) || g
                         ELSE 'same' END,
           point(scatter(g), scatter(g * 3)), point(scatter(g * 11), scatter(g)),
           ('10.' || g % 250 || '.' || g / 250 % 250 || '.' || g % 13 || CASE g % 3
               WHEN 0 THEN '/24' ELSE '/32' END)::inet,
           CASE WHEN g % 101 = 0 THEN 'empty'::int4range ELSE int4range(g % 9973, g % 9973 + g % 60 + 1) END
    FROM generate_series(low, high) g
$$;
CALL fill_shape(1, 3000);
CALL fill_word(1, 3000);
CHECKPOINT;
CALL fill_shape(3001, 9000);
CALL fill_word(3001, 12000);
INSERT INTO nullish SELECT g, nullif('n' || g % 5, 'n1'), CASE WHEN g % 3 > 0 THEN point(g, g) END
    FROM generate_series(1, 4000) g;
INSERT INTO nullish SELECT g FROM generate_series(1, 3000) g;
INSERT INTO tiny SELECT g, 'tiny' || g, point(g, -g) FROM generate_series(1, 60) g;
INSERT INTO churn SELECT g, point(g, g) FROM generate_series(1, 9000) g;
INSERT INTO forgotten SELECT g, point(scatter(g), g), md5(g::text) FROM generate_series(1, 3000) g;
-- Prefixes that come late split inner tuples; single nodes are added one after the other.
INSERT INTO word (id, w) SELECT g, 'https://exa' || chr(65 + g % 57) || repeat('z', g % 300)
    FROM generate_series(20001, 20600) g;
INSERT INTO word (id, w) SELECT g, chr(1000 + g % 700) || chr(2000 + g % 31) || g
    FROM generate_series(21001, 25000) g;
INSERT INTO word (id, w) SELECT g, repeat('long', g % 500) || md5(g::text)
    FROM generate_series(26001, 26400) g;
INSERT INTO word (id, w) SELECT 27000 + g, md5((g % 40)::text) || md5((g % 41 % 40)::text) || repeat('-', 40) || g
    FROM generate_series(1, 8000) g ORDER BY g % 40;
INSERT INTO word (id, w) SELECT 36000 + g, left(md5((g % 40)::text), 3 + g % 28) || '!' || g
    FROM generate_series(1, 400) g;
-- Scans mark items dead, and insertions then make room of them.
DELETE FROM churn WHERE id % 2 = 0;
SET enable_seqscan = off;
SET enable_bitmapscan = off;
SELECT count(*) FROM churn WHERE p <@ box(point(0, 0), point(9000, 9000));
INSERT INTO churn SELECT g, point(g % 9000, g % 9000) FROM generate_series(9001, 13000) g;
RESET enable_seqscan;
RESET enable_bitmapscan;
-- Whole leaves die and are used again.
DELETE FROM shape WHERE p <@ box(point(0, 0), point(4000, 9000));
DELETE FROM churn WHERE id < 8000;
DELETE FROM word WHERE id % 3 = 0 OR w LIKE 'https%';
DELETE FROM tiny WHERE id % 4 = 1;
DELETE FROM nullish WHERE id % 2 = 0;
DELETE FROM forgotten WHERE id % 2 = 0;
VACUUM shape, churn, word, tiny, nullish, forgotten;
CHECKPOINT;
CALL fill_shape(9001, 14000);
CALL fill_word(30001, 36000);
INSERT INTO churn SELECT g, point(g % 9000, g % 9000) FROM generate_series(13001, 20000) g;
INSERT INTO tiny SELECT g, 'again' || g, point(g, -g) FROM generate_series(61, 100) g;
DELETE FROM tiny;
DELETE FROM shape WHERE id % 3 > 0;
DELETE FROM word WHERE id % 5 > 0;
VACUUM shape, churn, word, tiny, nullish;
VACUUM word;
INSERT INTO tiny SELECT g, 'late' || g, point(g, -g) FROM generate_series(1, 700) g;
CALL fill_word(40001, 43000);
UPDATE word SET w = w || 'u', q = point(id, id) WHERE id % 10 = 0;
UPDATE shape SET b = b + point(1, 1), r = int4range(id, id + 5) WHERE id % 6 = 0;
-- Builds of every kind.
CREATE INDEX shape_buffered ON shape USING gist (b) WITH (buffering = on, fillfactor = 60);
CREATE INDEX shape_unbuffered ON shape USING gist (p, r) WITH (buffering = off);
CREATE INDEX word_built ON word USING spgist (w) WITH (fillfactor = 40);
CREATE INDEX CONCURRENTLY shape_late ON shape USING gist (t);
REINDEX INDEX word_p;
CALL fill_shape(15001, 18000);
CALL fill_word(50001, 52000);
-- In one transaction with its index, which a server with wal_level = minimal does not log.
BEGIN;
CREATE TABLE skipped (id int, p point, w text);
CREATE INDEX skipped_p ON skipped USING gist (p);
CREATE INDEX skipped_w ON skipped USING spgist (w);
INSERT INTO skipped SELECT g, point(scatter(g), g), md5(g::text) FROM generate_series(1, 3000) g;
COMMIT;
INSERT INTO skipped SELECT g, point(scatter(g), g), md5(g::text) FROM generate_series(3001, 6000) g;
BEGIN;
CALL fill_shape(20001, 21000);
CALL fill_word(60001, 61000);
ROLLBACK;
VACUUM shape;
