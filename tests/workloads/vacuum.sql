-- Everything that reorganises tables and btrees.
CREATE TABLE worked (id int PRIMARY KEY, grp int, body text);
INSERT INTO worked SELECT g, g % 50, md5(g::text) FROM generate_series(1, 30000) g;
CREATE INDEX worked_grp ON worked (grp);
CREATE TABLE emptied (id int PRIMARY KEY, body text);
INSERT INTO emptied SELECT g, repeat('e', 200) FROM generate_series(1, 8000) g;
CHECKPOINT;
-- Dead line pointers, all-visible pages, deleted btree pages.
DELETE FROM worked WHERE id BETWEEN 5000 AND 15000;
UPDATE worked SET body = 'hot ' || body WHERE id % 11 = 0;
VACUUM worked;
INSERT INTO worked SELECT g, g % 50, 'again' FROM generate_series(5000, 9000) g;
VACUUM (FREEZE) worked;
UPDATE worked SET grp = grp + 1 WHERE id % 13 = 0;
DELETE FROM worked WHERE id % 17 = 0;
VACUUM (INDEX_CLEANUP off) worked;
VACUUM (DISABLE_PAGE_SKIPPING) worked;
-- The empty tail is given back, then grows again.
DELETE FROM emptied WHERE id > 500;
VACUUM emptied;
INSERT INTO emptied SELECT g, repeat('f', 200) FROM generate_series(9000, 12000) g;
DELETE FROM emptied;
VACUUM emptied;
INSERT INTO emptied SELECT g, 'one' FROM generate_series(1, 30) g;
-- Duplicates: posting lists, splits of them, bottom-up deletion.
CREATE TABLE repeated (id int, grp int);
CREATE INDEX repeated_grp ON repeated (grp);
INSERT INTO repeated SELECT g, g % 3 FROM generate_series(1, 9000) g;
UPDATE repeated SET id = -id, grp = grp WHERE id % 2 = 0;
UPDATE repeated SET grp = 3 WHERE id % 5 = 0;
DELETE FROM repeated WHERE grp = 1;
VACUUM repeated;
INSERT INTO repeated SELECT g, 1 FROM generate_series(1, 3000) g;
-- Whole rewrites.
CREATE TABLE rewritten AS SELECT * FROM worked WHERE id < 4000;
CREATE INDEX rewritten_grp ON rewritten (grp);
CLUSTER rewritten USING rewritten_grp;
VACUUM FULL rewritten;
VACUUM FULL pg_class;
VACUUM FULL pg_proc;
CLUSTER pg_attribute USING pg_attribute_relid_attnum_index;
REINDEX TABLE pg_index;
CREATE INDEX CONCURRENTLY rewritten_body ON rewritten (body text_pattern_ops);
CREATE INDEX rewritten_include ON rewritten (id) INCLUDE (body) WHERE grp > 5;
DROP INDEX CONCURRENTLY rewritten_grp;
VACUUM (FREEZE, ANALYZE);
ANALYZE worked;
