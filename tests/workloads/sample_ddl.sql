-- Many small tables, made, truncated and dropped.
CREATE TABLE kept (id int PRIMARY KEY, body text);
INSERT INTO kept SELECT g, md5(g::text) FROM generate_series(1, 300) g;
BEGIN;
SELECT format('CREATE TABLE small_%s (id int PRIMARY KEY); INSERT INTO small_%s SELECT generate_series(1, 20);', g, g)
  FROM generate_series(1, 60) g \gexec
COMMIT;
SELECT format('TRUNCATE small_%s', g) FROM generate_series(1, 20) g \gexec
SELECT format('DROP TABLE small_%s', g) FROM generate_series(21, 40) g \gexec
BEGIN;
SELECT format('DROP TABLE small_%s', g) FROM generate_series(41, 50) g \gexec
SELECT format('INSERT INTO small_%s VALUES (100)', g) FROM generate_series(51, 60) g \gexec
ROLLBACK;
BEGIN;
CREATE TABLE never (id serial PRIMARY KEY, body text);
INSERT INTO never (body) SELECT 'x' FROM generate_series(1, 500);
SAVEPOINT one;
TRUNCATE kept;
ROLLBACK TO one;
UPDATE kept SET body = 'changed' WHERE id < 50;
DROP TABLE never;
COMMIT;
DELETE FROM kept WHERE id > 100;
VACUUM kept;
ALTER TABLE kept ADD COLUMN more int DEFAULT 1;
ALTER TABLE kept ALTER COLUMN more TYPE bigint;
CREATE SEQUENCE counter;
SELECT nextval('counter');
CREATE UNLOGGED TABLE forgotten (id int PRIMARY KEY);
INSERT INTO forgotten SELECT generate_series(1, 100);
