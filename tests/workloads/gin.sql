-- Everything that GIN indexes log.
SET gin_pending_list_limit = '64kB';
CREATE TABLE document (id int, tags int[], words tsvector, body jsonb);
INSERT INTO document
    SELECT g, ARRAY[1, 2 + g % 3, 100 + g % 2000],
        to_tsvector('simple', 'all w' || g % 500 || ' x' || g % 7 || ' ' || md5(g::text)),
        jsonb_build_object('n', g % 100, 'k' || g % 40, ARRAY[g % 9, g % 11])
    FROM generate_series(1, 6000) g;
CREATE INDEX document_tags ON document USING gin (tags) WITH (fastupdate = off);
CREATE INDEX document_words ON document USING gin (words) WHERE id % 4 = 0;
CREATE INDEX document_body ON document USING gin (body) WITH (fastupdate = off) WHERE id % 8 = 0;
CREATE INDEX document_path ON document USING gin (body jsonb_path_ops, tags) WHERE id % 8 = 0;
CREATE TABLE alike (id int, tags int[] DEFAULT '{1}');
INSERT INTO alike SELECT g FROM generate_series(1, 100000) g;
CREATE INDEX alike_tags ON alike USING gin (tags) WITH (fastupdate = off);
CHECKPOINT;
-- Into trees that exist: posting lists become posting trees, leaves split; the pending list
-- fills, overflows and is emptied by the insertions themselves.
INSERT INTO document
    SELECT g, ARRAY[1, 2 + g % 3, 100 + g % 2000],
        to_tsvector('simple', 'all w' || g % 500 || ' x' || g % 7 || ' ' || md5(g::text)),
        jsonb_build_object('n', g % 100, 'k' || g % 40, ARRAY[g % 9, g % 11])
    FROM generate_series(6001, 22000) g;
SELECT gin_clean_pending_list('document_words'), gin_clean_pending_list('document_path');
-- Rows whose entries need several pages of the pending list, nulls and empty values.
INSERT INTO document
    SELECT -g, (SELECT array_agg(x * g) FROM generate_series(1, 900) x),
        (SELECT to_tsvector('simple', string_agg(md5((x * g)::text), ' '))
            FROM generate_series(1, 900) x), '{}'
    FROM generate_series(8, 24, 8) g;
INSERT INTO document VALUES (0, NULL, NULL, NULL), (0, '{}', '', '[]'), (0, '{NULL,1}', 'all', '1');
-- Gaps inside posting lists, which new rows then fill: the segments shrink, grow and split.
DELETE FROM document WHERE id % 5 < 2 AND id < 9000;
VACUUM document;
INSERT INTO document
    SELECT g, ARRAY[1, 2 + g % 2, 100 + g % 300], to_tsvector('simple', 'all w' || g % 50),
        jsonb_build_object('n', g % 100)
    FROM generate_series(30001, 34000) g;
UPDATE document SET tags = tags || 1 WHERE id % 101 = 0;
-- Whole leaves of the posting trees become empty: their pages are deleted, then used again.
DELETE FROM document WHERE id BETWEEN 500 AND 17000;
VACUUM document;
VACUUM document;
INSERT INTO document
    SELECT g, ARRAY[1, 2, 100 + g % 300], to_tsvector('simple', 'all w' || g % 50),
        jsonb_build_object('n', 1)
    FROM generate_series(40001, 52000) g;
DELETE FROM document WHERE id > 45000;
VACUUM document;
-- A tree that was built, not grown, loses leaves in its middle, again and again.
DELETE FROM alike WHERE id BETWEEN 20000 AND 60000;
VACUUM alike;
DELETE FROM alike WHERE id BETWEEN 10000 AND 80000 OR id % 3 = 0;
VACUUM alike;
INSERT INTO alike SELECT g FROM generate_series(100001, 101000) g;
-- Keys so long that few fit on a page: an entry tree of several levels, whose inner pages split.
CREATE TABLE long_keys (keys text[]);
CREATE INDEX long_keys_keys ON long_keys USING gin (keys) WITH (fastupdate = off);
INSERT INTO long_keys
    SELECT ARRAY['all', md5(g::text) || (SELECT string_agg(md5((g * x)::text), '')
        FROM generate_series(1, 25) x)]
    FROM generate_series(1, 1500) g;
DELETE FROM long_keys WHERE ctid < '(70,0)';
VACUUM long_keys;
-- Unlogged, dropped and rolled back.
CREATE UNLOGGED TABLE unlogged_tags (tags int[]);
CREATE INDEX unlogged_tags_tags ON unlogged_tags USING gin (tags);
INSERT INTO unlogged_tags SELECT ARRAY[g, 1] FROM generate_series(1, 500) g;
BEGIN;
INSERT INTO document SELECT 4 * -g, ARRAY[1, g], 'all', '{}' FROM generate_series(1, 1000) g;
ROLLBACK;
INSERT INTO document SELECT 4 * -g, ARRAY[1, g], 'all', '{"n": 2}' FROM generate_series(1, 400) g;
