-- Hash indexes: built empty and full, grown through splits and overflow pages, squeezed by
-- vacuum, dead items removed by scans and insertions.
CREATE EXTENSION bloom;
CREATE FUNCTION noise(seed int, pieces int) RETURNS text LANGUAGE sql
  AS $$ SELECT string_agg(md5((seed * 1000 + g)::text), '') FROM generate_series(1, pieces) g $$;
CREATE TABLE hashed (id int, few int, word text) WITH (fillfactor = 70);
CREATE INDEX hashed_id ON hashed USING hash (id);
CREATE INDEX hashed_few ON hashed USING hash (few);
CREATE INDEX hashed_word ON hashed USING hash (word) WITH (fillfactor = 10);
CREATE UNLOGGED TABLE hashed_unlogged (id int);
CREATE INDEX hashed_unlogged_id ON hashed_unlogged USING hash (id);
INSERT INTO hashed SELECT g, g % 7, 'w' || g % 500 FROM generate_series(1, 3000) g;
INSERT INTO hashed SELECT g, g % 7, 'w' || g % 5000 FROM generate_series(3001, 30000) g;
CREATE INDEX hashed_late ON hashed USING hash (id);
INSERT INTO hashed_unlogged SELECT generate_series(1, 100);
-- Whole buckets lose most of their items, so that later pages move forward.
DELETE FROM hashed WHERE id % 10 <> 0;
VACUUM hashed;
INSERT INTO hashed SELECT g, g % 3, 'x' || g FROM generate_series(30001, 40000) g;
DELETE FROM hashed WHERE few = 1 AND id % 5 <> 0;
VACUUM hashed;
-- Rows of an aborted transaction stay in the index until somebody looks.
BEGIN;
INSERT INTO hashed SELECT g, 99, 'aborted' FROM generate_series(50001, 53000) g;
ROLLBACK;
SET enable_seqscan = off;
SET enable_bitmapscan = off;
SELECT count(*) FROM hashed WHERE few = 99;
SELECT count(*) FROM hashed WHERE word = 'aborted';
INSERT INTO hashed SELECT g, 99, 'aborted' FROM generate_series(60001, 62000) g;
UPDATE hashed SET id = id + 100000 WHERE few = 99;
SELECT count(*) FROM hashed WHERE few = 99;
INSERT INTO hashed SELECT g, 99, 'aborted' FROM generate_series(70001, 70500) g;
DELETE FROM hashed WHERE few <> 2;
VACUUM hashed;
-- Enough tuples that the index starts in a late splitpoint, in one of its phases.
CREATE TABLE hashed_many AS SELECT g AS id FROM generate_series(1, 100000) g;
ANALYZE hashed_many;
CREATE INDEX hashed_many_id ON hashed_many USING hash (id) WITH (fillfactor = 30);
INSERT INTO hashed_many SELECT generate_series(100001, 112000);

-- BRIN: all kinds of operator classes, ranges summarised, forgotten and summarised again,
-- tuples that grow until they must leave their page.
CREATE TABLE ranged (id int, at timestamp, word text, place box, net inet, number numeric)
  WITH (fillfactor = 60);
CREATE INDEX ranged_minmax ON ranged USING brin (id, at, word) WITH (pages_per_range = 1);
CREATE INDEX ranged_auto ON ranged USING brin (number)
  WITH (pages_per_range = 2, autosummarize = on);
CREATE INDEX ranged_inclusion ON ranged USING brin (place, net inet_inclusion_ops)
  WITH (pages_per_range = 4);
CREATE INDEX ranged_bloom ON ranged USING brin (id int4_bloom_ops, word text_bloom_ops)
  WITH (pages_per_range = 3);
CREATE INDEX ranged_multi ON ranged USING brin
  (id int4_minmax_multi_ops, at timestamp_minmax_multi_ops) WITH (pages_per_range = 2);
CREATE FUNCTION fill(first int, last int) RETURNS void LANGUAGE sql AS $$
  INSERT INTO ranged SELECT g, timestamp '2024-01-01' + g * interval '1 minute', 'w' || g % 50,
    box(point(g, g), point(g + 1, g + 2)), ('10.0.' || g % 250 || '.0/24')::inet, g / 7.0
    FROM generate_series(first, last) g $$;
SELECT fill(1, 2000);
SELECT brin_summarize_new_values(c) FROM unnest(ARRAY['ranged_minmax', 'ranged_auto',
  'ranged_inclusion', 'ranged_bloom', 'ranged_multi']) c;
SELECT fill(2001, 8000);
VACUUM ranged;
SELECT brin_desummarize_range('ranged_minmax', g) FROM generate_series(0, 60, 3) g;
SELECT brin_desummarize_range('ranged_multi', g) FROM generate_series(0, 60, 4) g;
SELECT brin_desummarize_range('ranged_bloom', g) FROM generate_series(0, 30, 3) g;
SELECT brin_summarize_range('ranged_minmax', 6);
SELECT brin_summarize_new_values('ranged_minmax');
SELECT brin_summarize_new_values('ranged_multi');
-- Longer words no longer fit where the short ones did.
UPDATE ranged SET word = noise(id, 12) WHERE id % 20 = 0;
UPDATE ranged SET word = repeat('z', id % 900), at = at + interval '3 years' WHERE id % 31 = 0;
UPDATE ranged SET id = -id, number = number * 1000 WHERE id % 17 = 0;
SELECT fill(8001, 9000);
VACUUM ranged;
DELETE FROM ranged WHERE id BETWEEN 3000 AND 6000;
VACUUM ranged;
SELECT fill(9001, 12000);
SELECT brin_summarize_new_values('ranged_minmax');
-- So many ranges that the revmap takes pages that hold tuples.
CREATE TABLE ranged_wide (id int, filler text) WITH (fillfactor = 10);
CREATE INDEX ranged_wide_id ON ranged_wide USING brin (id, filler) WITH (pages_per_range = 1);
INSERT INTO ranged_wide SELECT g, repeat('f', 300) FROM generate_series(1, 4000) g;
VACUUM ranged_wide;
INSERT INTO ranged_wide SELECT g, repeat('g', 300) FROM generate_series(4001, 8500) g;
VACUUM ranged_wide;
UPDATE ranged_wide SET filler = repeat('h', 100) WHERE id % 9 = 0;
CREATE INDEX ranged_late ON ranged_wide USING brin (id);

-- bloom, whose WAL is generic.
CREATE TABLE flowered (a int, b int, c text);
CREATE INDEX flowered_abc ON flowered USING bloom (a, b, c) WITH (length = 64, col1 = 3);
INSERT INTO flowered SELECT g, g % 100, 'c' || g % 1000 FROM generate_series(1, 4000) g;
INSERT INTO flowered SELECT g, g % 100, 'c' || g % 1000 FROM generate_series(4001, 12000) g;
DELETE FROM flowered WHERE b < 50 OR a BETWEEN 2000 AND 4000;
VACUUM flowered;
INSERT INTO flowered SELECT g, g % 100, 'd' || g FROM generate_series(12001, 15000) g;
CREATE INDEX flowered_late ON flowered USING bloom (a);
CREATE UNLOGGED TABLE flowered_unlogged (a int);
CREATE INDEX flowered_unlogged_a ON flowered_unlogged USING bloom (a);
