-- A transaction that is still open at the crash, with files of its own.
BEGIN;
CREATE TABLE unfinished (id int PRIMARY KEY, body text);
INSERT INTO unfinished SELECT g, md5(g::text) FROM generate_series(1, 3000) g;
SAVEPOINT inner_one;
INSERT INTO unfinished SELECT g, md5(g::text) FROM generate_series(4000, 5000) g;
UPDATE item SET body = 'never' WHERE id % 5 = 0;
CREATE TEMP TABLE private AS SELECT g FROM generate_series(1, 1000) g;
-- Long enough for the WAL writer to flush whole pages, which tears the last record.
SELECT pg_sleep(1);
