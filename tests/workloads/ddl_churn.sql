-- Objects made, changed and dropped, in transactions that commit, abort and half abort.
CREATE SCHEMA churn;
SET search_path = churn;

CREATE TABLE kept (id int PRIMARY KEY, body text);
INSERT INTO kept SELECT g, repeat(md5(g::text), 4) FROM generate_series(1, 4000) g;
CREATE INDEX kept_body ON kept (body);
CREATE MATERIALIZED VIEW summary AS SELECT id % 10 AS digit, count(*) FROM kept GROUP BY 1;
CREATE UNIQUE INDEX ON summary (digit);
CREATE SEQUENCE counter;
SELECT count(nextval('counter')) FROM generate_series(1, 100);
CHECKPOINT;

SELECT count(nextval('counter')) FROM generate_series(1, 100);
ALTER SEQUENCE counter RESTART WITH 1000 INCREMENT BY 5;
SELECT nextval('counter');
SELECT setval('counter', 5000);

-- Rewrites of a table, and columns that come and go.
ALTER TABLE kept ADD COLUMN stamp timestamptz DEFAULT now();
ALTER TABLE kept ADD COLUMN code uuid DEFAULT gen_random_uuid();
ALTER TABLE kept ADD COLUMN small int DEFAULT 7;
ALTER TABLE kept ALTER COLUMN small TYPE bigint;
ALTER TABLE kept DROP COLUMN stamp;
UPDATE kept SET body = 'x' || body WHERE id % 7 = 0;
REFRESH MATERIALIZED VIEW summary;
REFRESH MATERIALIZED VIEW CONCURRENTLY summary;
REINDEX TABLE kept;
REINDEX INDEX CONCURRENTLY kept_body;

-- Whole transactions undone, whose files go at the abort.
BEGIN;
CREATE TABLE never (id serial PRIMARY KEY, body text);
INSERT INTO never (body) SELECT md5(g::text) FROM generate_series(1, 2000) g;
TRUNCATE kept;
INSERT INTO kept SELECT g, 'rolled back' FROM generate_series(1, 100) g;
ROLLBACK;

-- Parts of a transaction undone.
BEGIN;
CREATE TABLE half (id int PRIMARY KEY, body text);
INSERT INTO half SELECT g, md5(g::text) FROM generate_series(1, 500) g;
SAVEPOINT one;
CREATE TABLE undone (id int);
INSERT INTO undone SELECT generate_series(1, 500);
DROP TABLE half;
ROLLBACK TO one;
SAVEPOINT two;
INSERT INTO half SELECT g, md5(g::text) FROM generate_series(501, 900) g;
TRUNCATE half;
RELEASE two;
INSERT INTO half SELECT g, md5(g::text) FROM generate_series(1, 50) g;
COMMIT;

-- A relation that is made, truncated and dropped, over and over.
DO $$
BEGIN
  FOR i IN 1..60 LOOP
    EXECUTE format('CREATE TABLE brief_%s (id int PRIMARY KEY, body text)', i);
    EXECUTE format('INSERT INTO brief_%s SELECT g, repeat(%L, 300) FROM generate_series(1, 40) g', i, 'z');
    IF i % 3 = 0 THEN EXECUTE format('TRUNCATE brief_%s', i); END IF;
    IF i % 2 = 0 THEN EXECUTE format('DROP TABLE brief_%s', i); END IF;
  END LOOP;
END $$;

-- One transaction for each of many small changes.
SELECT format('CREATE TABLE single_%s (id int, body text); INSERT INTO single_%s VALUES (1, %L);
               ALTER TABLE single_%s ADD COLUMN more int DEFAULT 3;', g, g, 'b', g)
  FROM generate_series(1, 30) g \gexec
SELECT format('DROP TABLE single_%s', g) FROM generate_series(1, 30, 2) g \gexec

CREATE TYPE colour AS ENUM ('red', 'green');
ALTER TYPE colour ADD VALUE 'blue';
CREATE VIEW seen AS SELECT id, body FROM kept WHERE id > 10;
CREATE FUNCTION double(int) RETURNS int LANGUAGE sql AS 'SELECT 2 * $1';
COMMENT ON TABLE kept IS 'still here';
CREATE ROLE reader;
GRANT SELECT ON ALL TABLES IN SCHEMA churn TO reader;
ALTER TABLE kept SET (fillfactor = 70);
CREATE TABLE parts (id int, body text) PARTITION BY RANGE (id);
CREATE TABLE parts_low PARTITION OF parts FOR VALUES FROM (0) TO (500);
CREATE TABLE parts_high PARTITION OF parts FOR VALUES FROM (500) TO (1000);
INSERT INTO parts SELECT g, md5(g::text) FROM generate_series(0, 999) g;
ALTER TABLE parts DETACH PARTITION parts_low;
DROP TABLE parts_low;
CREATE TEMP TABLE private AS SELECT g FROM generate_series(1, 1000) g;
