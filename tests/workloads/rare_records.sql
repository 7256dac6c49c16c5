-- Records that ordinary work does not write.
CREATE TABLE kept (a int PRIMARY KEY, b text);
INSERT INTO kept SELECT g, 'b' || g FROM generate_series(1, 20000) g;
SELECT pg_create_restore_point('before');
-- The checkpointer logs that full_page_writes changed once it has read the file again.
ALTER SYSTEM SET full_page_writes = off;
SELECT pg_reload_conf();
SELECT pg_sleep(0.5);
UPDATE kept SET b = 'off' WHERE a % 9 = 0;
ALTER SYSTEM SET full_page_writes = on;
SELECT pg_reload_conf();
SELECT pg_sleep(0.5);
SELECT pg_replication_origin_create('first'), pg_replication_origin_create('second');
SELECT pg_replication_origin_advance('first', '0/1000'),
    pg_replication_origin_advance('second', '0/2000');
SELECT pg_replication_origin_drop('second');
-- Whole pages of a B-tree disappear, up to the root, and are used again by later transactions.
DELETE FROM kept WHERE a > 3;
VACUUM kept;
SELECT txid_current();
SELECT txid_current();
VACUUM kept;
INSERT INTO kept SELECT g, 'c' || g FROM generate_series(4, 20000) g;
DELETE FROM kept WHERE a < 15000;
VACUUM kept;
VACUUM kept;
INSERT INTO kept SELECT g, 'd' || g FROM generate_series(1, 14000) g;
-- One page is left on each level; when it splits, the meta page changes with its parent.
CREATE TABLE shrunk (a int PRIMARY KEY);
INSERT INTO shrunk SELECT generate_series(1, 20000);
DELETE FROM shrunk WHERE a < 19995;
VACUUM (INDEX_CLEANUP ON) shrunk;
VACUUM (INDEX_CLEANUP ON) shrunk;
INSERT INTO shrunk SELECT generate_series(20001, 22000);
-- Leaves of a GiST index become empty; items that a scan found dead make room for others.
CREATE TABLE places (id int, place point);
CREATE INDEX places_place ON places USING gist (place);
INSERT INTO places SELECT g, point(g, g) FROM generate_series(1, 20000) g;
DELETE FROM places WHERE id BETWEEN 4000 AND 16000;
VACUUM (INDEX_CLEANUP ON) places;
DELETE FROM places WHERE id > 17000;
SET enable_seqscan = off;
SET enable_bitmapscan = off;
SELECT count(*) FROM places WHERE place <@ box(point(17000, 17000), point(20001, 20001));
INSERT INTO places SELECT g, point(g + 0.5, g) FROM generate_series(17000, 20000) g;
