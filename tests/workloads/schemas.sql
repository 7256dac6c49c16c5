-- A thousand schemas with a table each, made in one transaction; half of them dropped and half
-- truncated in another: many relations in few commit records.
SET client_min_messages = error;
BEGIN;
SELECT format('CREATE SCHEMA tenant_%s; CREATE TABLE tenant_%s.item (id int PRIMARY KEY, body text);
               INSERT INTO tenant_%s.item SELECT g, %L FROM generate_series(1, 5) g;', g, g, g, 'row')
  FROM generate_series(1, 1000) g \gexec
COMMIT;
BEGIN;
SELECT format('DROP SCHEMA tenant_%s CASCADE', g) FROM generate_series(1, 500) g \gexec
SELECT format('TRUNCATE tenant_%s.item', g) FROM generate_series(501, 1000) g \gexec
COMMIT;
SELECT format('INSERT INTO tenant_%s.item VALUES (7, %L)', g, 'after') FROM generate_series(501, 1000, 5) g \gexec
